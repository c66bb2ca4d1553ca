// SPDX-License-Identifier: Apache-2.0
// Max-min fair rates by progressive filling: all rates rise together until a resource is full or a
// cap is reached; what is held there stays, the rest goes on.
#pragma once

#include <span>
#include <vector>

#include "sim/graph/graph.hpp"

namespace scapesim::engine {

/// Solver over a fixed set of resources; keeps its scratch memory between calls.
class MaxMin {
 public:
  explicit MaxMin(std::span<const graph::Resource> resources);

  /// rates[i] becomes the rate per flow of phases[i]; infinite without loads and cap.
  void solve(std::span<const graph::Phase* const> phases, std::span<BytesPerSecond> rates);

 private:
  struct Share {
    BytesPerSecond capacity;
    BytesPerSecond left;  ///< not taken by held phases
    double flows = 0;     ///< of phases still rising
    int rising = 0;       ///< phases still rising that load this resource
    bool full = false;
    BytesPerSecond level() const { return left / flows; }
  };
  void collect(std::span<const graph::Phase* const> phases);
  BytesPerSecond next_level(std::span<const graph::Phase* const> phases, BytesPerSecond level);
  void hold(const graph::Phase& phase, BytesPerSecond rate);

  std::vector<Share> shares_;           ///< per resource
  std::vector<std::uint32_t> touched_;  ///< resources that the phases load
  std::vector<bool> rising_;            ///< per phase
};

}  // namespace scapesim::engine
