// SPDX-License-Identifier: Apache-2.0
// [M406] Collectives hold multiprocessors and memory bandwidth: kernels beside them take longer.
#pragma once

#include "sim/engine/timeline.hpp"
#include "sim/graph/graph.hpp"

namespace scapesim {

/// Adds to every kernel's duration what collectives that the timeline shows beside it cost.
/// `overlap_slowdown` is the share by which a kernel beside one takes longer. The sum over one step
/// of the rank class that it adds most to; 0: nothing overlaps and the graph is as it was.
Seconds slow_beside_collectives(graph::StepGraph& graph, const engine::Timeline& timeline,
                                double overlap_slowdown);

}  // namespace scapesim
