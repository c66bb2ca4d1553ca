// SPDX-License-Identifier: Apache-2.0
// Blocks of values in few bits with an fp32 scale each.
#pragma once

#include <cmath>
#include <cstdint>

#include "sim/base/units.hpp"

namespace scapesim::strategy {

/// [M310] Codes and scales of so many values.
struct Quantised {
  double values = 0;
  double bits = 8;
  double scales = 0;
  double code_bytes() const { return values * bits / 8; }
  double bytes() const { return code_bytes() + 4 * scales; }
};

/// One scale for each `block` values begun, in each of `parts` equal parts.
inline Quantised quantised(double values, double bits, double block, double parts) {
  const double part = std::ceil(values / parts);
  return {.values = values, .bits = bits, .scales = parts * std::ceil(part / block)};
}

}  // namespace scapesim::strategy
