// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/ring.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "sim/base/check.hpp"
#include "sim/plan/link_classes.hpp"

namespace scapesim::plan {

namespace {

using graph::CollectiveKind;
using topology::Fabric;
using topology::GpuId;
using topology::LinkId;
using topology::LinkKind;

/// Neighbours in a ring that sit in one node.
using NodePart = std::span<const GpuId>;

std::vector<NodePart> node_parts(const Fabric& fabric, const Group& group) {
  std::vector<NodePart> parts;
  for (std::size_t begin = 0, i = 1; i <= group.size(); ++i) {
    if (i < group.size() && fabric.node_of(group[i]) == fabric.node_of(group[begin])) continue;
    parts.push_back(NodePart(group).subspan(begin, i - begin));
    begin = i;
  }
  return parts;
}

/// Where the last GPU of each of a part's NICs stands, in order of NICs.
std::vector<std::size_t> nic_ends(const Fabric& fabric, NodePart part) {
  std::map<std::uint32_t, std::size_t> last;
  for (std::size_t i = 0; i < part.size(); ++i) last[fabric.nic_of(part[i])] = i;
  std::vector<std::size_t> ends;
  for (const auto& [nic, end] : last) ends.push_back(end);
  return ends;
}

/// How the rings of a group lie on the fabric; `hops` n closes the ring, n-1 leaves it open.
struct Pattern {
  std::size_t rings = 1;
  std::size_t hops = 0;
  std::size_t hops_between_nodes = 0;
  Seconds fabric_latency;  ///< of one hop between nodes
  std::size_t column = 0;  ///< its flow counts in the link classes
};

/// Adds a group's rings to the flows per link; the pattern keeps the slowest group's hops.
void add_rings(const Fabric& fabric, const Group& group, std::size_t hops, Pattern& pattern,
               std::vector<std::uint32_t>& flows) {
  const std::vector<Group> rings = rings_of(fabric, group);
  pattern.rings = std::min(pattern.rings, rings.size());
  std::size_t between_nodes = 0;
  std::vector<LinkId> path;
  for (const Group& ring : rings)
    for (std::size_t i = 0; i < hops; ++i) {
      const GpuId from = ring[i];
      const GpuId to = ring[(i + 1) % ring.size()];
      path.clear();
      fabric.append_path(from, to, path);
      for (const LinkId link : path) ++flows[index(link)];
      if (&ring != &rings.front() || fabric.node_of(from) == fabric.node_of(to)) continue;
      ++between_nodes;
      pattern.fabric_latency = std::max(pattern.fabric_latency, fabric.latency(from, to));
    }
  pattern.hops_between_nodes = std::max(pattern.hops_between_nodes, between_nodes);
}

Pattern lay(const Fabric& fabric, const GroupSet& set, std::size_t hops, LinkClasses& classes) {
  Pattern pattern;
  pattern.rings = set.groups.front().size();
  pattern.hops = hops;
  std::vector<std::uint32_t> flows(static_cast<std::size_t>(fabric.links()));
  for (const Group& group : set.groups) add_rings(fabric, group, hops, pattern, flows);
  pattern.column = classes.refine(flows);
  return pattern;
}

/// [M26] A hop between nodes pays the transport's latency, one inside a node its own; where both
/// occur in a ring a step pays their mean, as a chunk does that travels around.
Seconds ring_latency(int steps, const Pattern& pattern, const NetworkTerms& terms) {
  const double between =
      static_cast<double>(pattern.hops_between_nodes) / static_cast<double>(pattern.hops);
  const Seconds network = terms.hop_latency.value_or(pattern.fabric_latency);
  return steps * (between * network + (1 - between) * terms.node_hop_latency);
}

graph::Phase phase_of(const CollectiveCall& call, int ranks, const Pattern& pattern,
                      ResourceTable& resources) {
  const RingWork work = ring_work(call.kind, call.size, ranks);
  return {.latency = ring_latency(work.steps, pattern, call.terms),
          .bytes = work.bytes / static_cast<double>(pattern.rings),
          .rate_cap = {},
          .loads = resources.loads(pattern.column, call.terms)};
}

}  // namespace

/// The rings of a group: one inside a node, else one per NIC of the node with the fewest; ring c is
/// turned inside every node so that its last GPU there uses the node's c-th NIC.
std::vector<Group> rings_of(const Fabric& fabric, const Group& group) {
  const std::vector<NodePart> parts = node_parts(fabric, group);
  if (parts.size() == 1 || parts.size() == group.size()) return {group};
  std::vector<std::vector<std::size_t>> ends;
  std::size_t rings = group.size();
  for (const NodePart part : parts) {
    ends.push_back(nic_ends(fabric, part));
    rings = std::min(rings, ends.back().size());
  }
  std::vector<Group> list(rings);
  for (std::size_t ring = 0; ring < rings; ++ring)
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto first = static_cast<std::ptrdiff_t>(ends[i][ring]) + 1;
      list[ring].insert(list[ring].end(), parts[i].begin() + first, parts[i].end());
      list[ring].insert(list[ring].end(), parts[i].begin(), parts[i].begin() + first);
    }
  return list;
}

/// [M20] all-reduce, [M21] reduce-scatter and all-gather, [M25] broadcast: what one link of the
/// ring carries and how often a hop's latency is paid. Patarasuk and Yuan 2009.
RingWork ring_work(CollectiveKind kind, Bytes size, int ranks) {
  const Bytes chunk = size / ranks;
  const int around = ranks - 1;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return {2 * around, 2 * around * chunk};
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
      return {around, around * chunk};
    case CollectiveKind::broadcast:
      return {around, size};
    case CollectiveKind::all_to_all:
    case CollectiveKind::send_recv:
      break;
  }
  throw InternalError("no ring algorithm for " + std::string(name_of(kind)));
}

NetworkPlan plan_collectives(const Fabric& fabric, const std::vector<GroupSet>& sets,
                             const std::vector<CollectiveCall>& calls) {
  LinkClasses classes(fabric);
  std::map<std::pair<std::size_t, std::size_t>, Pattern> patterns;  // by group and hops
  std::vector<const Pattern*> pattern_of(calls.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::size_t ranks = sets.at(calls[i].group).groups.front().size();
    SCAPESIM_CHECK(ranks > 0, "{}: empty group", calls[i].name);
    if (ranks == 1) continue;
    const std::size_t hops = calls[i].kind == CollectiveKind::broadcast ? ranks - 1 : ranks;
    const auto [entry, is_new] = patterns.try_emplace({calls[i].group, hops});
    if (is_new) entry->second = lay(fabric, sets[calls[i].group], hops, classes);
    pattern_of[i] = &entry->second;
  }

  ResourceTable resources(classes);
  NetworkPlan plan;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const CollectiveCall& call = calls[i];
    graph::Collective& out = plan.collectives.emplace_back();
    out.name = call.name;
    out.kind = call.kind;
    out.group_size = static_cast<int>(sets[call.group].groups.front().size());
    out.bytes = call.size;
    out.members = call.members;
    if (pattern_of[i] != nullptr)
      out.phases.push_back(phase_of(call, out.group_size, *pattern_of[i], resources));
  }
  plan.resources = resources.take();
  return plan;
}

Group consecutive_gpus(int count) {
  Group group(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < group.size(); ++i) group[i].value = static_cast<std::uint32_t>(i);
  return group;
}

}  // namespace scapesim::plan
