// SPDX-License-Identifier: Apache-2.0
// What a reader must know before trusting a number.
#pragma once

#include <vector>

#include "sim/cost/profile.hpp"
#include "sim/engine/timeline.hpp"
#include "sim/result/result.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim {

/// Extrapolation outside sampled curves or fitted sizes, a transport far under the line rate,
/// assumed numbers, an unsteady step. In a fixed order.
std::vector<result::Warning> warnings_of(const spec::Scenario& scenario,
                                         const cost::Profile& profile,
                                         const graph::StepGraph& graph,
                                         const engine::Timeline& timeline);

}  // namespace scapesim
