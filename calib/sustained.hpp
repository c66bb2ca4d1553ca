// SPDX-License-Identifier: Apache-2.0
// What training sustains over short benchmarks: one GEMM scale from a few named training steps.
#pragma once

#include <string>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/cost/profile.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::calib {

/// A training step as measured.
struct MeasuredStep {
  std::string name;  ///< of the row
  spec::Scenario scenario;
  Seconds step_time;
};

/// [M175] The gemm.scale for which the predicted step is the measured one.
double sustained_scale(const cost::Profile& profile, const MeasuredStep& step);

/// [M175] gemm.scale: geometric mean of the scales of all steps, at least one; range 10 % beyond
/// their extremes. Appends to the report.
void fit_sustained(cost::Profile& profile, const std::vector<MeasuredStep>& steps,
                   const cost::Origin& source, std::string& report);

}  // namespace scapesim::calib
