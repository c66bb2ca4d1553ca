// SPDX-License-Identifier: Apache-2.0
// What benchmarks do not show, from a few named training steps: what GEMMs sustain, what launches
// cost the host.
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

/// A number of the profile that steps depend on, and a value to start from.
struct FreeNumber {
  std::string key = "gemm.scale";
  cost::Factor factor = cost::Factor::gemm;
  double start = 1;
};

/// [M175] The number's value for which the predicted step is the measured one.
double value_that_meets(const cost::Profile& profile, const FreeNumber& number,
                        const MeasuredStep& step);

/// [M175] The number: geometric mean of the values that meet each step, at least one; range 10 %
/// beyond their extremes. Appends to the report.
void fit_to_steps(cost::Profile& profile, const FreeNumber& number,
                  const std::vector<MeasuredStep>& steps, const cost::Origin& source,
                  std::string& report);

}  // namespace scapesim::calib
