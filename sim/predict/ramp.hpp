// SPDX-License-Identifier: Apache-2.0
// The steps before a growing batch has grown.
#pragma once

#include <vector>

#include "sim/predict/predict.hpp"

namespace scapesim {

/// [M434] Every stage of training.batch_ramp with its step time; empty without a ramp. `full` is
/// the prediction of the scenario itself. Of more than 32 stages as many are simulated, evenly
/// spaced, and those between them lie on a line.
std::vector<result::RampRow> ramp_of(const spec::Scenario& scenario, const cost::Profile& profile,
                                     const result::Run& full);

}  // namespace scapesim
