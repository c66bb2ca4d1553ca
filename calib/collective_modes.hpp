// SPDX-License-Identifier: Apache-2.0
// Timed calls that ran the same algorithms, and what their fit says of the modes of a profile.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calib/collective_regimes.hpp"
#include "sim/cost/collective_traffic.hpp"
#include "sim/cost/profile.hpp"

namespace scapesim::calib {

/// A timed call on full nodes, with the line rates it ran on.
struct TimedCall {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  cost::Layout layout;
  cost::LineRates rates;
  Bytes size;
  Seconds time;
  std::optional<graph::Algorithm> algorithm;  ///< none: as NCCL picks by itself, [M123]
};

/// [M123] What NCCL runs for small and for large calls: `bulk` is Simple, `small` LL and LL128.
struct Algorithms {
  graph::Algorithm bulk = graph::Algorithm::ring;
  graph::Algorithm small = graph::Algorithm::ring;
  auto operator<=>(const Algorithms&) const = default;
};
/// `nvls_ranks`: fewest ranks of a node that use NVLS; none: the machine has none.
Algorithms algorithms_of(graph::CollectiveKind kind, const cost::Layout& layout,
                         std::optional<int> nvls_ranks);

/// Inside a node or between nodes.
cost::Scope scope_of(const TimedCall& call);
/// The call as this algorithm moves it.
CollectiveRow row_of(const TimedCall& call, graph::Algorithm algorithm);

/// Calls that ran the same algorithms, as one fit.
struct Group {
  cost::Scope scope;
  Algorithms algorithms;
  std::vector<TimedCall> calls;
};

/// Fits a group of kFewestRows calls or more and sets latencies, efficiencies and size limits of
/// its modes, one for each regime that has a protocol.
void write_modes(cost::Profile& profile, const Group& group, const cost::Origin& origin,
                 std::string& report, std::vector<std::string>& gaps);

}  // namespace scapesim::calib
