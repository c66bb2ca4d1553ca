// SPDX-License-Identifier: Apache-2.0
#include "topologies/placement.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/base/check.hpp"
#include "sim/base/random.hpp"

namespace scapesim::topology {

namespace {

int nodes_used(const spec::Cluster& cluster) {
  return (cluster.gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
}

Random source(const spec::Cluster& cluster, std::uint64_t purpose) {
  return Random(2 * static_cast<std::uint64_t>(cluster.placement_seed) + purpose);
}

/// Nodes below one leaf switch or router; 0 for all.
int nodes_per_switch(const spec::Cluster& cluster) {
  const spec::Fabric& fabric = cluster.fabric;
  switch (fabric.kind) {
    case spec::FabricKind::fat_tree:
      return static_cast<int>(spec::tree_shape(cluster).nodes_per_rack);
    case spec::FabricKind::rail_optimized:
    case spec::FabricKind::rail_only:
      return fabric.nodes_per_rack;
    case spec::FabricKind::dragonfly:
    case spec::FabricKind::dragonfly_plus:
    case spec::FabricKind::hyperx:
      return fabric.nodes_per_router;
    case spec::FabricKind::sites:
      return fabric.nodes_per_rack > 0 ? fabric.nodes_per_rack : fabric.nodes_per_site;
    case spec::FabricKind::torus:
      return 1;
    case spec::FabricKind::switch_:
    case spec::FabricKind::graph:
      return 0;
  }
  throw InternalError("kind of fabric");
}

/// The n-th nodes of all racks, rack by rack, for n = 0, 1 ...
std::vector<int> strided(const std::vector<int>& nodes, int per_switch) {
  if (per_switch == 0) return nodes;
  std::map<int, int> taken;  // by switch
  std::vector<std::pair<int, int>> keyed;
  for (const int node : nodes) keyed.emplace_back(taken[node / per_switch]++, node);
  std::ranges::sort(keyed);
  std::vector<int> order;
  for (const auto& [turn, node] : keyed) order.push_back(node);
  return order;
}

/// A point's place on a walk through the grid that turns at every border.
std::int64_t place_on_walk(int node, const std::vector<int>& dimensions) {
  std::int64_t place = 0, stride = 1;
  for (const int extent : dimensions) stride *= extent;
  for (const int extent : dimensions) {
    stride /= extent;
    const auto at = static_cast<int>(node / stride % extent);
    const bool backwards = place % 2 != 0;
    place = place * extent + (backwards ? extent - 1 - at : at);
  }
  return place;
}

std::vector<int> in_order(const spec::Cluster& cluster, std::vector<int> nodes) {
  switch (cluster.placement) {
    case spec::Placement::packed:
    case spec::Placement::rail:
      return nodes;
    case spec::Placement::strided:
      return strided(nodes, nodes_per_switch(cluster));
    case spec::Placement::random: {
      Random random = source(cluster, 0);
      shuffle(nodes, random);
      return nodes;
    }
    case spec::Placement::topology:
      if (cluster.fabric.kind == spec::FabricKind::torus)
        std::ranges::sort(nodes, {},
                          [&](int node) { return place_on_walk(node, cluster.fabric.dimensions); });
      return nodes;
  }
  throw InternalError("kind of placement");
}

}  // namespace

std::vector<int> allocated_nodes(const spec::Cluster& cluster) {
  const int count = nodes_used(cluster);
  std::vector<int> nodes(static_cast<std::size_t>(count));
  std::iota(nodes.begin(), nodes.end(), 0);
  if (cluster.allocation == spec::Allocation::spread)
    for (int& node : nodes) node = static_cast<int>(std::int64_t{node} * cluster.nodes / count);
  if (cluster.allocation == spec::Allocation::random) {
    std::vector<int> all(static_cast<std::size_t>(cluster.nodes));
    std::iota(all.begin(), all.end(), 0);
    Random random = source(cluster, 1);
    shuffle(all, random);
    nodes.assign(all.begin(), all.begin() + count);
    std::ranges::sort(nodes);
  }
  return nodes;
}

int nodes_to_build(const spec::Cluster& cluster) { return allocated_nodes(cluster).back() + 1; }

std::vector<GpuId> placement(const spec::Cluster& cluster) {
  const std::vector<int> nodes = in_order(cluster, allocated_nodes(cluster));
  const int per_node = std::min(cluster.gpus, cluster.gpus_per_node);
  std::vector<GpuId> gpus;
  gpus.reserve(static_cast<std::size_t>(cluster.gpus));
  // The job's last node may have fewer.
  const int in_last = cluster.gpus - per_node * (static_cast<int>(nodes.size()) - 1);
  const auto add = [&](int node, int local) {
    if (node == nodes.back() && local >= in_last) return;
    gpus.push_back({static_cast<std::uint32_t>(node * cluster.gpus_per_node + local)});
  };
  if (cluster.placement == spec::Placement::rail) {
    for (int local = 0; local < per_node; ++local)
      for (const int node : nodes) add(node, local);
  } else {
    for (const int node : nodes)
      for (int local = 0; local < per_node; ++local) add(node, local);
  }
  return gpus;
}

std::vector<GpuId> node_by_node(const Fabric& fabric, std::span<const GpuId> gpus) {
  std::map<int, std::size_t> turns;  // of nodes
  for (const GpuId gpu : gpus) turns.try_emplace(fabric.node_of(gpu), turns.size());
  std::vector<GpuId> order(gpus.begin(), gpus.end());
  std::ranges::stable_sort(order, {}, [&](GpuId gpu) { return turns.at(fabric.node_of(gpu)); });
  return order;
}

}  // namespace scapesim::topology
