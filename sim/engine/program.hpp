// SPDX-License-Identifier: Apache-2.0
// A step graph laid out for replay: flat arrays of operations, streams, dependencies and members.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/graph/graph.hpp"

namespace scapesim::engine {

/// Position of an operation among those of all classes, class after class.
using GlobalOp = std::uint32_t;
/// Position of a used stream, class after class.
using StreamId = std::uint32_t;

/// Half-open range in one of the arrays of Program.
struct Range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

struct Program {
  struct Wait {
    GlobalOp op = 0;
    int steps_back = 0;
  };
  struct Op {
    Seconds duration;                               ///< local
    const graph::Phase* transfer = nullptr;         ///< transfer
    const graph::Collective* collective = nullptr;  ///< collective
    std::uint32_t collective_id = 0;
    StreamId stream = 0;
    Range waits;
    bool ends_step = false;  ///< last of its class's compute stream
  };
  std::vector<Op> ops;
  std::vector<Wait> waits;
  std::vector<GlobalOp> issue;          ///< operations of a stream in order, stream after stream
  std::vector<Range> streams;           ///< in issue
  std::vector<std::uint32_t> first_op;  ///< per class
  std::vector<int> members;             ///< per collective: operations that enter it
};

/// Refers to phases and collectives of the graph, which must outlive it. Throws InternalError for a
/// graph that breaks its own rules: unknown ids, a collective entered twice by one class or not by
/// all of its members, a class without operations, negative durations.
Program program_of(const graph::StepGraph& graph);

}  // namespace scapesim::engine
