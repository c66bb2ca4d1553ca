// SPDX-License-Identifier: Apache-2.0
// Which of many pipelines a step waits for: the longest path through copies of a step graph whose
// transfers keep the durations of one timeline. Thousands of copies cost milliseconds each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/timeline.hpp"

namespace scapesim::engine {

struct Pipelines {
  const graph::StepGraph& graph;
  const Timeline& timeline;  ///< of the graph, for what transfers and collectives take
  std::vector<bool> within;  ///< per collective: one per copy, else all copies wait for each other
  /// Per copy, operation after operation of all classes: what local work takes.
  std::span<const std::vector<Seconds>> durations;
};

struct LongestPath {
  Seconds step_time;                  ///< of the second of two steps
  std::vector<std::uint32_t> copies;  ///< that lie on it, ascending
};

/// [M403] Exact where transfers take what they took in the timeline, else a bound by how far they
/// do not.
LongestPath longest_path(const Pipelines& pipelines);

}  // namespace scapesim::engine
