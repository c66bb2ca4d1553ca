// SPDX-License-Identifier: Apache-2.0
// What a timeline uses over time: links and copy engines, by the calls that run.
#pragma once

#include <vector>

#include "sim/engine/timeline.hpp"
#include "sim/graph/graph.hpp"

namespace scapesim::result {

/// From this instant on, until the next level.
struct Level {
  Seconds time;
  double value = 0;
};

/// [M491] Share of every resource's capacity that is used, in the order of graph.resources: a call
/// or a copy counts with its mean over its run. Empty for a resource that nothing uses.
std::vector<std::vector<Level>> resource_use(const graph::StepGraph& graph,
                                             const engine::Timeline& timeline);

}  // namespace scapesim::result
