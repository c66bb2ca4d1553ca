// SPDX-License-Identifier: Apache-2.0
// What happened when: spans of every operation of the simulated steps.
#pragma once

#include <vector>

#include "sim/graph/graph.hpp"

namespace scapesim::engine {

/// An operation of one rank class in one step. ready is when its dependencies and its stream
/// allowed it to begin; a collective begins when its last member is ready.
struct Span {
  graph::RankClassId rank_class;
  graph::OpId op;
  int step = 0;
  Seconds ready;
  Seconds begin;
  Seconds end;
};

struct Timeline {
  std::vector<Span> spans;  ///< ordered by (step, rank class, operation)
  std::vector<Seconds>
      step_begin;                 ///< per simulated step: end of the step before (0 for the first)
  std::vector<Seconds> step_end;  ///< when the compute stream of the slowest class has done with it
  int warmup = 1;                 ///< steps before the pattern repeats
  bool steady = true;             ///< false: the cap on steps was reached first
};

}  // namespace scapesim::engine
