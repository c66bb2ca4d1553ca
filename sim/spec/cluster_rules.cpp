// SPDX-License-Identifier: Apache-2.0
// Rules of a cluster: its counts, its nodes, its fabric.
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/spec/network_rules.hpp"

namespace scapesim::spec {
namespace {

using Violations = std::vector<Violation>;

void check_dragonfly(const Cluster& cluster, Violations& list) {
  constexpr std::int64_t kMostCables = 10'000'000;  // bounds the memory of the fabric
  const Fabric& fabric = cluster.fabric;
  const std::size_t before = list.size();
  if (fabric.groups < 1)
    list.push_back({"cluster.groups", "a dragonfly needs 1 or more", "such as 25"});
  if (fabric.nodes_per_router < 1)
    list.push_back({"cluster.nodes_per_router", "a dragonfly needs 1 or more", "such as 16"});
  if (fabric.groups > 1 && fabric.global_bandwidth.si() <= 0)
    list.push_back({"cluster.global_bandwidth",
                    fmt::format("missing for a dragonfly of {} groups", fabric.groups),
                    "of all cables between two groups, such as \"800GB/s\""});
  if (fabric.routers_per_group > 1 && fabric.local_bandwidth.si() <= 0)
    list.push_back({"cluster.local_bandwidth",
                    fmt::format("missing with {} routers per group", fabric.routers_per_group),
                    "between two routers of a group, such as \"25GB/s\""});
  if (list.size() > before) return;
  const std::int64_t groups = fabric.groups, routers = fabric.routers_per_group;
  const std::int64_t cables = groups * (routers * (routers - 1) + groups - 1) / 2;
  if (cables > kMostCables)
    list.push_back({"cluster.groups", fmt::format("{} cables between routers", cables),
                    fmt::format("at most {} are built", kMostCables)});
  if (cluster.nodes > groups * routers * fabric.nodes_per_router)
    list.push_back({"cluster.nodes",
                    fmt::format("{} nodes are more than {} = {} groups x {} routers x {} nodes",
                                cluster.nodes, groups * routers * fabric.nodes_per_router, groups,
                                routers, fabric.nodes_per_router),
                    "give more groups, routers_per_group or nodes_per_router"});
}

void check_grid(const Cluster& cluster, Violations& list, std::string_view kind, int per_router) {
  const Fabric& fabric = cluster.fabric;
  if (fabric.cable_bandwidth.si() <= 0)
    list.push_back({"cluster.cable_bandwidth", fmt::format("missing for a {}", kind),
                    "between two neighbours, such as \"50GB/s\""});
  if (fabric.dimensions.empty()) {
    list.push_back(
        {"cluster.dimensions", fmt::format("missing for a {}", kind), "such as \"8x8x4\""});
    return;
  }
  std::int64_t points = per_router;
  for (const int extent : fabric.dimensions) points *= extent;
  const std::string dimensions = fmt::format("{}", fmt::join(fabric.dimensions, "x"));
  if (kind == "torus" && points != cluster.nodes)
    list.push_back({"cluster.dimensions",
                    fmt::format("{} have {} points, the cluster has {} nodes", dimensions, points,
                                cluster.nodes),
                    "one node per point is needed"});
  if (kind == "hyperx" && points < cluster.nodes)
    list.push_back({"cluster.dimensions",
                    fmt::format("{} routers of {} hold {} nodes, the cluster has {}", dimensions,
                                per_router, points, cluster.nodes),
                    "give more dimensions or nodes_per_router"});
}

void check_hyperx(const Cluster& cluster, Violations& list) {
  constexpr std::int64_t kMostCables = 10'000'000;  // bounds the memory of the fabric
  if (cluster.fabric.nodes_per_router < 1)
    list.push_back({"cluster.nodes_per_router", "a hyperx needs 1 or more", "such as 8"});
  else
    check_grid(cluster, list, "hyperx", cluster.fabric.nodes_per_router);
  double routers = 1, neighbours = 0;
  for (const int extent : cluster.fabric.dimensions) {
    routers *= extent;
    neighbours += extent;
  }
  if (routers * neighbours > 2.0 * kMostCables)
    list.push_back({"cluster.dimensions", fmt::format("{:.0f} cables", routers * neighbours / 2),
                    fmt::format("at most {} are built", kMostCables)});
}

void check_dragonfly_plus(const Cluster& cluster, Violations& list) {
  const Fabric& fabric = cluster.fabric;
  const std::size_t before = list.size();
  if (fabric.groups < 1)
    list.push_back({"cluster.groups", "a dragonfly_plus needs 1 or more", "such as 25"});
  if (fabric.nodes_per_router < 1)
    list.push_back({"cluster.nodes_per_router", "a dragonfly_plus needs 1 or more", "such as 16"});
  if (fabric.groups > 1 && fabric.global_bandwidth.si() <= 0)
    list.push_back({"cluster.global_bandwidth",
                    fmt::format("missing for a dragonfly_plus of {} groups", fabric.groups),
                    "of all cables between two groups, such as \"800GB/s\""});
  if (list.size() > before) return;
  const std::int64_t places =
      std::int64_t{fabric.groups} * fabric.routers_per_group * fabric.nodes_per_router;
  if (cluster.nodes > places)
    list.push_back(
        {"cluster.nodes",
         fmt::format("{} nodes are more than {} = {} groups x {} leaf routers x {} nodes",
                     cluster.nodes, places, fabric.groups, fabric.routers_per_group,
                     fabric.nodes_per_router),
         "give more groups, routers_per_group or nodes_per_router"});
}

void check_sites(const Cluster& cluster, Violations& list) {
  const Fabric& fabric = cluster.fabric;
  if (fabric.wan_bandwidth.si() <= 0)
    list.push_back({"cluster.wan_bandwidth", "missing between sites", "such as \"100Gbps\""});
  if (fabric.nodes_per_site < 1) {
    list.push_back({"cluster.nodes_per_site", "sites need 1 or more", "such as 64"});
    return;
  }
  if (cluster.nodes > std::int64_t{fabric.sites} * fabric.nodes_per_site)
    list.push_back({"cluster.sites",
                    fmt::format("{} sites of {} nodes are fewer than the cluster's {} nodes",
                                fabric.sites, fabric.nodes_per_site, cluster.nodes),
                    "give more sites or nodes_per_site"});
  if (fabric.nodes_per_rack > 0 && fabric.nodes_per_site % fabric.nodes_per_rack != 0)
    list.push_back({"cluster.nodes_per_rack",
                    fmt::format("racks of {} nodes do not fill a site of {}", fabric.nodes_per_rack,
                                fabric.nodes_per_site),
                    "a divisor of nodes_per_site, or 0 without racks"});
}

void check_radix(const Cluster& cluster, Violations& list) {
  const Fabric& fabric = cluster.fabric;
  const TreeShape shape = tree_shape(cluster);
  if (fabric.nodes_per_rack > 0 || fabric.racks_per_pod > 0)
    list.push_back({"cluster.switch_radix", "gives racks and pods, which are given too",
                    "leave out nodes_per_rack and racks_per_pod, or switch_radix"});
  if (shape.nodes_per_rack < 1)
    list.push_back({"cluster.switch_radix",
                    fmt::format("{} ports at a taper of {} do not hold the {} adapters of a node",
                                fabric.switch_radix, fabric.taper, cluster.nics_per_node),
                    "a larger radix, or fabric = \"rail_optimized\""});
  else if (cluster.nodes > shape.most_nodes)
    list.push_back(
        {"cluster.switch_radix",
         fmt::format("{} levels of {}-port switches hold {} nodes, the cluster has {}",
                     fabric.tree_levels, fabric.switch_radix, shape.most_nodes, cluster.nodes),
         "more tree_levels, a larger switch_radix or a higher taper"});
}

void check_racks(const Cluster& cluster, Violations& list) {
  if (cluster.fabric.nodes_per_rack < 1)
    list.push_back(
        {"cluster.nodes_per_rack",
         fmt::format("missing for {}",
                     cluster.fabric.kind == FabricKind::fat_tree ? "a fat tree" : "rails"),
         "such as 32"});
}

void check_fabric(const Cluster& cluster, Violations& list) {
  switch (cluster.fabric.kind) {
    case FabricKind::switch_:
      return;
    case FabricKind::fat_tree:
      return cluster.fabric.switch_radix > 0 ? check_radix(cluster, list)
                                             : check_racks(cluster, list);
    case FabricKind::rail_optimized:
    case FabricKind::rail_only:
      return check_racks(cluster, list);
    case FabricKind::dragonfly:
      return check_dragonfly(cluster, list);
    case FabricKind::torus:
      return check_grid(cluster, list, "torus", 1);
    case FabricKind::dragonfly_plus:
      return check_dragonfly_plus(cluster, list);
    case FabricKind::hyperx:
      return check_hyperx(cluster, list);
    case FabricKind::sites:
      return check_sites(cluster, list);
    case FabricKind::graph:
      return check_graph(cluster, list);
  }
}

/// Slow parts and other GPUs are parts of the machine; a node has one kind of GPU.
void check_parts(const Cluster& cluster, Violations& list) {
  for (const Straggler& straggler : cluster.stragglers) {
    const bool node = straggler.part == JitterScope::node;
    const std::int64_t count =
        node ? cluster.nodes : std::int64_t{cluster.nodes} * cluster.gpus_per_node;
    const std::string_view name = node ? "node" : "GPU";
    if (straggler.last >= count)
      list.push_back({"cluster.stragglers",
                      fmt::format("the cluster has no {} {}", name, straggler.last),
                      fmt::format("{} 0 to {}", name, count - 1)});
  }
  std::vector<int> taken;
  for (const OtherGpus& other : cluster.other_gpus) {
    if (other.last >= cluster.nodes) {
      list.push_back({"cluster.other_gpus", fmt::format("the cluster has no node {}", other.last),
                      fmt::format("node 0 to {}", cluster.nodes - 1)});
      continue;
    }
    taken.resize(static_cast<std::size_t>(cluster.nodes));
    for (int node = other.first; node <= other.last; ++node)
      if (taken[static_cast<std::size_t>(node)]++ == 1)
        list.push_back({"cluster.other_gpus", fmt::format("node {} has two kinds of GPU", node),
                        "name it once"});
  }
}

}  // namespace

TreeShape tree_shape(const Cluster& cluster) {
  const Fabric& fabric = cluster.fabric;
  if (fabric.switch_radix == 0)
    return {.nodes_per_rack = fabric.nodes_per_rack,
            .racks_per_pod = fabric.racks_per_pod,
            .taper = fabric.taper,
            .pod_taper = fabric.pod_taper};
  constexpr double kRounding = 1e-9;
  const std::int64_t radix = fabric.switch_radix;
  TreeShape shape;
  const auto down =
      fabric.tree_levels == 1
          ? radix
          : static_cast<std::int64_t>(std::floor(
                static_cast<double>(radix) * fabric.taper / (1 + fabric.taper) + kRounding));
  const std::int64_t up = radix - down;
  shape.nodes_per_rack = down / cluster.nics_per_node;
  shape.most_nodes = shape.nodes_per_rack;
  if (fabric.tree_levels == 1 || shape.nodes_per_rack == 0) return shape;
  shape.taper =
      static_cast<double>(shape.nodes_per_rack * cluster.nics_per_node) / static_cast<double>(up);
  shape.racks_per_pod = fabric.tree_levels == 3 ? radix / 2 : 0;
  shape.most_nodes = shape.nodes_per_rack * radix * (fabric.tree_levels == 3 ? radix / 2 : 1);
  return shape;
}

std::vector<Violation> violations(const Cluster& cluster) {
  Violations list;
  const std::int64_t most = std::int64_t{cluster.nodes} * cluster.gpus_per_node;
  if (cluster.gpus > most)
    list.push_back({"cluster.gpus",
                    fmt::format("{} GPUs are more than the cluster's {}", cluster.gpus, most),
                    fmt::format("{} nodes with {} each", cluster.nodes, cluster.gpus_per_node)});
  else if (cluster.gpus > cluster.gpus_per_node && cluster.gpus % cluster.gpus_per_node != 0)
    list.push_back({"cluster.gpus", fmt::format("{} GPUs do not fill whole nodes", cluster.gpus),
                    fmt::format("a multiple of {} is needed", cluster.gpus_per_node)});
  if ((cluster.gpus_per_node > 1 || cluster.nvlink_domain_nodes > 1) &&
      cluster.node_link_bandwidth.si() <= 0)
    list.push_back({"cluster.node_link_bandwidth",
                    fmt::format("missing with {} GPUs per node", cluster.gpus_per_node),
                    "such as \"450GB/s\""});
  check_node(cluster, list);
  check_routing(cluster, list);
  check_fabric(cluster, list);
  check_parts(cluster, list);
  return list;
}

}  // namespace scapesim::spec
