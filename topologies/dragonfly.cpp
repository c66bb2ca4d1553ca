// SPDX-License-Identifier: Apache-2.0
// Groups of routers: all pairs inside a group are joined, and all pairs of groups, by one global
// link that stands for all cables between them. Routes are minimal: at most a local, a global and a
// local link (Kim, Dally, Scott, Abts, ISCA 2008). Only the groups that hold nodes are built, since
// a minimal route visits no other; Valiant's detours over a third group are not modelled.
#include <algorithm>
#include <numeric>

#include "sim/base/check.hpp"
#include "topologies/build.hpp"

namespace scapesim::topology {

namespace {

/// Number of the pair (low, high) among the pairs of `count` things, by low and then high.
std::uint32_t pair_number(std::uint32_t low, std::uint32_t high, std::uint32_t count) {
  return low * (2 * count - low - 1) / 2 + (high - low - 1);
}

struct Dragonfly {
  std::uint32_t groups = 0;      ///< of the machine
  std::uint32_t used = 0;        ///< groups that are built
  std::uint32_t routers = 0;     ///< per group
  std::uint32_t per_router = 0;  ///< global links, at most

  std::uint32_t local_pairs() const { return routers * (routers - 1) / 2; }

  /// The router of a group that holds its link to another: links are dealt out in order of the
  /// distance around the groups, so that every group looks alike.
  std::uint32_t gateway(std::uint32_t group, std::uint32_t other) const {
    const std::uint32_t around = (other + groups - group - 1) % groups;
    return group * routers + around / per_router;
  }
  LinkId local(std::uint32_t from, std::uint32_t to) const {
    const auto [low, high] = std::minmax({from % routers, to % routers});
    const std::uint32_t cable = from / routers * local_pairs() + pair_number(low, high, routers);
    return {2 * cable + (from < to ? 0 : 1)};
  }
  LinkId global(std::uint32_t from_group, std::uint32_t to_group) const {
    const auto [low, high] = std::minmax({from_group, to_group});
    const std::uint32_t cable = used * local_pairs() + pair_number(low, high, used);
    return {2 * cable + (from_group < to_group ? 0 : 1)};
  }
  void append(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& path) const {
    const std::uint32_t from_group = from / routers, to_group = to / routers;
    if (from_group != to_group) {
      const std::uint32_t leave = gateway(from_group, to_group);
      const std::uint32_t enter = gateway(to_group, from_group);
      if (from != leave) path.push_back(local(from, leave));
      path.push_back(global(from_group, to_group));
      from = enter;
    }
    if (from != to) path.push_back(local(from, to));
  }
  /// Whole groups first, or the same routers of all groups first.
  std::vector<std::vector<std::uint32_t>> orders() const {
    std::vector<std::uint32_t> by_group(used * routers);
    std::iota(by_group.begin(), by_group.end(), 0);
    std::vector<std::uint32_t> by_router = by_group;
    std::ranges::stable_sort(by_router, {}, [&](std::uint32_t r) { return r % routers; });
    return {std::move(by_group), std::move(by_router)};
  }
  /// Links between routers on the longest route between the first `holders` routers.
  int diameter(std::uint32_t holders) const {
    const std::size_t groups_built = std::min(used, 2U);
    const std::size_t most = groups_built - 1 + (routers > 1 ? groups_built : 0);
    std::size_t longest = 0;
    std::vector<LinkId> path;
    for (std::uint32_t from = 0; from < holders; ++from)
      for (std::uint32_t to = 0; to < holders && longest < most; ++to) {
        path.clear();
        append(from, to, path);
        longest = std::max(longest, path.size());
      }
    return static_cast<int>(longest);
  }
};

}  // namespace

Fabric dragonfly(const spec::Cluster& cluster, int nodes) {
  const spec::Fabric& fabric = cluster.fabric;
  const int per_router = fabric.nodes_per_router;
  const int per_group = fabric.routers_per_group * per_router;
  SCAPESIM_CHECK(per_group > 0 && nodes <= fabric.groups * per_group, "{} nodes in {} groups of {}",
                 nodes, fabric.groups, per_group);
  Dragonfly shape;
  shape.groups = static_cast<std::uint32_t>(fabric.groups);
  shape.used = static_cast<std::uint32_t>((nodes + per_group - 1) / per_group);
  shape.routers = static_cast<std::uint32_t>(fabric.routers_per_group);
  shape.per_router = std::max((shape.groups - 1 + shape.routers - 1) / shape.routers, 1U);

  Fabric::Parts parts = empty_parts(cluster, nodes);
  const std::vector<VertexId> routers = new_routers(parts, shape.used * shape.routers);
  for (std::uint32_t group = 0; group < shape.used; ++group)
    for (std::uint32_t low = 0; low < shape.routers; ++low)
      for (std::uint32_t high = low + 1; high < shape.routers; ++high)
        connect(parts, routers[group * shape.routers + low], routers[group * shape.routers + high],
                {LinkKind::local, fabric.local_bandwidth});
  for (std::uint32_t low = 0; low < shape.used; ++low)
    for (std::uint32_t high = low + 1; high < shape.used; ++high)
      connect(parts, routers[shape.gateway(low, high)], routers[shape.gateway(high, low)],
              {LinkKind::global, fabric.global_bandwidth});
  for (int node = 0; node < nodes; ++node)
    add_node(parts, cluster, routers[static_cast<std::size_t>(node / per_router)]);

  const BytesPerSecond router = per_router * node_capacity(cluster);
  if (shape.routers > 1)
    parts.levels.push_back({"router", router, (shape.routers - 1) * fabric.local_bandwidth});
  if (shape.groups > 1)
    parts.levels.push_back(
        {"group", shape.routers * router, (shape.groups - 1) * fabric.global_bandwidth});
  parts.switch_hops =
      shape.diameter(static_cast<std::uint32_t>((nodes + per_router - 1) / per_router));
  parts.routing = Routing{[shape](std::uint32_t from, std::uint32_t to, std::uint64_t,
                                  std::vector<LinkId>& path) { shape.append(from, to, path); },
                          [shape] { return shape.orders(); }};
  return Fabric(std::move(parts));
}

}  // namespace scapesim::topology
