// SPDX-License-Identifier: Apache-2.0
// How a machine's transport, algorithms and protocols use a fabric: what a profile says about the
// network, for one collective at a time. No links in here.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cost/profile.hpp"
#include "sim/graph/graph.hpp"

namespace scapesim::cost {

/// How well one algorithm with one protocol uses the links it crosses.
struct NetworkTerms {
  double efficiency = 1;               ///< share of the line rate of NICs and trunks reached
  double node_efficiency = 1;          ///< the same for links inside a node
  BytesPerSecond transport_cap;        ///< per NIC and direction, all calls together; 0: none
  std::optional<Seconds> hop_latency;  ///< between nodes, per step; none: the fabric's
  Seconds node_hop_latency;            ///< inside a node, per step
  Seconds base_latency;                ///< once per call
};

/// Where the ranks of a group sit.
struct Layout {
  int ranks = 1;
  int nodes = 1;
  int nics_per_node = 1;  ///< that the group's ranks use
};

/// One way to run a call.
struct Mode {
  graph::Algorithm algorithm = graph::Algorithm::ring;
  graph::Protocol protocol = graph::Protocol::simple;
  NetworkTerms terms;
  /// False: known, but at this size the library uses it only when told to.
  bool offered = true;
};

/// Calls among ranks of one node, and all others, have terms of their own.
enum class Scope { inside, between };

/// The key of a mode's number or curve in a profile: "network.between.tree_ll128.hop_latency_s".
/// Every algorithm has Simple; ring and tree have LL and LL128 too.
std::string mode_key(Scope scope, graph::Algorithm algorithm, graph::Protocol protocol,
                     std::string_view what);
bool has_protocol(graph::Algorithm algorithm, graph::Protocol protocol);

/// [M29] The ways a profile knows to run a collective of this size on this layout; without a
/// profile, or with one that names no algorithms, a ring (pairwise: all-to-all and send-recv). At
/// least one is offered; of those the fastest runs. See collective_traffic.hpp for what each moves.
std::vector<Mode> modes_of(const Profile* profile, graph::CollectiveKind kind, Bytes size,
                           const Layout& layout);

}  // namespace scapesim::cost
