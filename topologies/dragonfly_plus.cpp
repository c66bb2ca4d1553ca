// SPDX-License-Identifier: Apache-2.0
// Groups of leaf routers below spine routers; the spines of two groups are joined by one global
// link that stands for all cables between them, and the spines of a group are one router (Shpiner
// et al., "Dragonfly+: Low cost topology for scaling datacenters", HiPINEB 2017, with adaptive
// routing). Routes are minimal: up, over, down. Only groups that hold nodes are built.
#include <algorithm>

#include "sim/base/check.hpp"
#include "topologies/build.hpp"

namespace scapesim::topology {

namespace {

/// Routers by ordinal: the leaves of all groups, then a spine per group.
struct Groups {
  std::uint32_t groups = 0;  ///< that are built
  std::uint32_t leaves = 0;  ///< per group

  std::uint32_t spine(std::uint32_t group) const { return groups * leaves + group; }
  /// Cables are in this order: up from every leaf, then the pairs of groups.
  LinkId up(std::uint32_t leaf) const { return {2 * leaf}; }
  LinkId global(std::uint32_t from, std::uint32_t to) const {
    const auto [low, high] = std::minmax({from, to});
    const std::uint32_t pair = low * (2 * groups - low - 1) / 2 + (high - low - 1);
    return {2 * (groups * leaves + pair) + (from < to ? 0 : 1)};
  }
  void append(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& path) const {
    if (from == to) return;
    path.push_back(up(from));
    if (from / leaves != to / leaves) path.push_back(global(from / leaves, to / leaves));
    path.push_back({up(to).value + 1});
  }
  /// Group by group, each with its spine last or first.
  std::vector<std::vector<std::uint32_t>> orders() const {
    std::vector<std::vector<std::uint32_t>> list(2);
    for (std::uint32_t group = 0; group < groups; ++group) {
      list[1].push_back(spine(group));
      for (std::uint32_t leaf = 0; leaf < leaves; ++leaf)
        for (std::vector<std::uint32_t>& order : list) order.push_back(group * leaves + leaf);
      list[0].push_back(spine(group));
    }
    return list;
  }
};

}  // namespace

Fabric dragonfly_plus(const spec::Cluster& cluster, int nodes) {
  const spec::Fabric& fabric = cluster.fabric;
  const int per_leaf = fabric.nodes_per_router;
  const int per_group = per_leaf * fabric.routers_per_group;
  SCAPESIM_CHECK(per_leaf > 0 && per_group > 0, "{} nodes per group", per_group);
  const Groups shape{.groups = static_cast<std::uint32_t>((nodes + per_group - 1) / per_group),
                     .leaves = static_cast<std::uint32_t>(fabric.routers_per_group)};
  const BytesPerSecond down = per_leaf * node_capacity(cluster);
  const Link local{LinkKind::local, down / fabric.taper};
  Fabric::Parts parts = empty_parts(cluster, nodes);
  const std::vector<VertexId> routers =
      new_routers(parts, shape.groups * shape.leaves + shape.groups);
  for (std::uint32_t leaf = 0; leaf < shape.groups * shape.leaves; ++leaf)
    connect(parts, routers[leaf], routers[shape.spine(leaf / shape.leaves)], local);
  for (std::uint32_t low = 0; low < shape.groups; ++low)
    for (std::uint32_t high = low + 1; high < shape.groups; ++high)
      connect(parts, routers[shape.spine(low)], routers[shape.spine(high)],
              {LinkKind::global, fabric.global_bandwidth});
  for (int node = 0; node < nodes; ++node)
    add_node(parts, cluster, routers[static_cast<std::size_t>(node / per_leaf)]);

  parts.levels = {{"leaf router", down, local.capacity}};
  if (fabric.groups > 1)
    parts.levels.push_back(
        {"group", fabric.routers_per_group * down, (fabric.groups - 1) * fabric.global_bandwidth});
  parts.switch_hops = nodes <= per_leaf ? 0 : shape.groups == 1 ? 2 : 3;
  parts.routing = Routing{[shape](std::uint32_t from, std::uint32_t to, std::uint64_t,
                                  std::vector<LinkId>& path) { shape.append(from, to, path); },
                          [shape] { return shape.orders(); }};
  return Fabric(std::move(parts));
}

}  // namespace scapesim::topology
