// SPDX-License-Identifier: Apache-2.0
// Collective calls -> phases on shared links. Every call is laid on the fabric by each algorithm
// that its profile knows and that fits its groups; the one that is fastest alone is taken.
// Members of a collective move in lockstep, so each of its phases is one rate.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/cost/network_terms.hpp"
#include "sim/graph/graph.hpp"
#include "topologies/fabric.hpp"

namespace scapesim::plan {

using cost::NetworkTerms;

/// What becomes of a call that a forced algorithm or protocol cannot run: it is refused, or runs as
/// it would without.
enum class Forcing { strict, where_possible };

/// One call of a collective by all groups of sets[group] at the same time.
struct CollectiveCall {
  std::string name;
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  Bytes size;  ///< as nccl-tests counts: what a rank holds at most before or after
  std::size_t group = 0;
  std::vector<graph::RankClassId> members;
  NetworkTerms terms{};                         ///< without a profile
  const cost::Profile* profile = nullptr;       ///< its modes are tried; null: the terms count
  std::optional<graph::Algorithm> algorithm{};  ///< forced; none: the fastest alone
  std::optional<graph::Protocol> protocol{};    ///< forced
  Forcing forcing = Forcing::strict;
  std::vector<double> peer_shares{};  ///< all-to-all-v: of every rank's buffer, what goes to rank i
};

/// Collectives in the order of the calls, on resources numbered from 0.
struct NetworkPlan {
  std::vector<graph::Collective> collectives;
  std::vector<graph::Resource> resources;
};

/// GPUs in ring order.
using Group = std::vector<topology::GpuId>;

/// Disjoint groups of one size that make the same calls at the same time, each among its own
/// members, as the tensor-parallel groups of a pipeline stage do. At least one.
struct GroupSet {
  std::vector<Group> groups;
  GroupSet(Group group) : groups{std::move(group)} {}  // NOLINT: one group is a set
  explicit GroupSet(std::vector<Group> list) : groups(std::move(list)) {}
};

/// All collectives of a plan together, since they share links. A group lists its GPUs with those of
/// a node side by side. A group of one has no phases. A send-recv of two ranks goes from the first
/// to the second; of more, from each to the next, around. Throws InputError for a forced algorithm
/// that cannot run the call.
NetworkPlan plan_collectives(const topology::Fabric& fabric, const std::vector<GroupSet>& sets,
                             const std::vector<CollectiveCall>& calls);

/// The call with what a scenario forces its kind to, where that can run it.
CollectiveCall forced(CollectiveCall call, const spec::Collectives& collectives);

/// The same for several plans on the same groups, as under drawn profiles: what has been laid once
/// is kept. Fabric and sets must outlive it.
class CollectivePlanner {
 public:
  CollectivePlanner(const topology::Fabric& fabric, const std::vector<GroupSet>& sets);
  ~CollectivePlanner();
  NetworkPlan plan(const std::vector<CollectiveCall>& calls);

 private:
  std::unique_ptr<class Drawer> drawer_;
};

/// Where the ranks of a set's groups sit: most nodes, fewest NICs.
cost::Layout layout_of(const topology::Fabric& fabric, const GroupSet& set);

/// GPUs 0 .. count-1 in order.
Group consecutive_gpus(int count);

}  // namespace scapesim::plan
