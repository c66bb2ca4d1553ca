// SPDX-License-Identifier: Apache-2.0
// Symmetric codes in blocks with an fp32 scale, as ZeRO++ (arXiv 2306.10209) and QSDP send them.
// Values and codes one by one for the kernels, whole arrays for tests.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/reference/bf16.hpp"

namespace scapesim::reference {

/// Scale of a block from the bits of its largest magnitude: NaN when one is infinite or NaN.
SCAPESIM_SHARED inline float scale_of(std::uint32_t largest_bits, float largest_code) {
  if (largest_bits >= 0x7f800000U) return float_of(0x7fc00000U);
  return float_of(largest_bits) / largest_code;
}

/// Nearest code, ties to even; 0 when the scale is 0 or NaN.
SCAPESIM_SHARED inline int code_of(float value, float scale, float largest_code) {
  if (!(scale > 0)) return 0;
  const float code = rintf(value / scale);
  return static_cast<int>(fminf(fmaxf(code, -largest_code), largest_code));
}

SCAPESIM_SHARED inline float value_of(int code, float scale) {
  return static_cast<float>(code) * scale;
}

/// Codes -7..7 or -127..127, one int each.
struct Quantised {
  std::vector<int> codes;
  std::vector<float> scales;
};

Quantised quantised(std::span<const float> values, std::size_t block, int largest_code);

/// factor x sum over the contributions, in their order.
std::vector<float> dequantised_sum(std::span<const Quantised> contributions, std::size_t block,
                                   float factor);

}  // namespace scapesim::reference
