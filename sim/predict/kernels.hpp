// SPDX-License-Identifier: Apache-2.0
// The kernels of a step apart, as a roofline shows them: arithmetic, traffic, time.
#pragma once

#include <string>
#include <vector>

#include "sim/cost/profile.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim {

/// Kernels of one name and shape.
struct Kernel {
  std::string name;   ///< "attention projection"
  std::string kind;   ///< "gemm", "attention", "pass"
  std::string shape;  ///< "m8192 n4096 k1024"; empty: a pass
  int calls = 0;      ///< per micro-batch of the whole model
  Flops flops{};      ///< of one call
  Bytes bytes{};      ///< [M490] of one call, every operand once
  Seconds time{};     ///< of one call
};

/// [M490] Kernels of the model's layers, forward and backward, most time first. Exchanges and the
/// optimizer's work have no place here.
std::vector<Kernel> kernels_of(const spec::Scenario& scenario, const cost::Profile& profile);

}  // namespace scapesim
