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

/// A step ends for a class when the last operation of its compute stream does (of any stream, for a
/// class that computes nothing): the next step's computation follows it at once. Copies out or mask
/// traffic of the step may still run then, and count in the step that waits for them.
struct Timeline {
  std::vector<Span> spans;  ///< ordered by (step, rank class, operation)
  std::vector<Seconds>
      step_begin;                 ///< per simulated step: end of the step before (0 for the first)
  std::vector<Seconds> step_end;  ///< when the step has ended for the slowest class
  int warmup = 1;      ///< steps not to average over; after them come whole periods, at least one
  bool steady = true;  ///< false: the cap on steps was reached before they repeated
};

}  // namespace scapesim::engine
