// SPDX-License-Identifier: Apache-2.0
// Every instant of one rank class's step, given to the operation that holds the compute stream up.
#pragma once

#include <optional>
#include <vector>

#include "sim/engine/timeline.hpp"
#include "sim/graph/graph.hpp"

namespace scapesim::result {

/// Begin and end of an interval of time.
struct Window {
  Seconds begin;
  Seconds end;
};

/// A piece of the window and what it goes to; no operation: nothing of this class is running that
/// its compute stream waits for.
struct Piece {
  Seconds length;
  std::optional<graph::OpId> op;
};

/// [M72] Pieces in order of time; their lengths sum to the window.
std::vector<Piece> attribute(const graph::StepGraph& graph, const engine::Timeline& timeline,
                             graph::RankClassId rank_class, Window window);

/// The span of an operation in a step. Throws InternalError when the timeline lacks it.
const engine::Span& span_of(const graph::StepGraph& graph, const engine::Timeline& timeline,
                            int step, graph::RankClassId rank_class, graph::OpId op);

/// Part of a span inside the window.
Seconds overlap(const engine::Span& span, Window window);

}  // namespace scapesim::result
