// SPDX-License-Identifier: Apache-2.0
// Ring collectives on a fabric: flows per link, links with equal loads merged into classes, phases.
// Members of a ring move in lockstep, so a collective is one rate; latency under contention is
// where that is optimistic (rings drift apart when a hop's latency exceeds a tenth of a chunk).
#pragma once

#include <string>
#include <vector>

#include "sim/cost/network_terms.hpp"
#include "sim/graph/graph.hpp"
#include "topologies/fabric.hpp"

namespace scapesim::plan {

using cost::NetworkTerms;

/// One call of a collective by all groups of sets[group] at the same time.
struct CollectiveCall {
  std::string name;
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  Bytes size;  ///< as nccl-tests counts: what a rank holds at most before or after
  std::size_t group = 0;
  std::vector<graph::RankClassId> members;
  NetworkTerms terms;
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

/// All collectives of a plan together, since they share links. A group is in ring order with the
/// GPUs of a node side by side; with several NICs per node there is a ring per NIC, of which ring c
/// leaves the node through NIC c, and each carries its share of the bytes. A group of one has no
/// phases. Kinds other than all_reduce, reduce_scatter, all_gather and broadcast are refused.
NetworkPlan plan_collectives(const topology::Fabric& fabric, const std::vector<GroupSet>& sets,
                             const std::vector<CollectiveCall>& calls);

/// The rings of a group: the group itself without several NICs per node, see plan_collectives().
std::vector<Group> rings_of(const topology::Fabric& fabric, const Group& group);

/// Steps of a ring, and what crosses each of its links in all of them.
struct RingWork {
  int steps = 0;
  Bytes bytes;
};
RingWork ring_work(graph::CollectiveKind kind, Bytes size, int ranks);

/// GPUs 0 .. count-1 in order.
Group consecutive_gpus(int count);

}  // namespace scapesim::plan
