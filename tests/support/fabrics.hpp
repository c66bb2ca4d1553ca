// SPDX-License-Identifier: Apache-2.0
// One or more small clusters of every kind of fabric. A new kind gets its rows here, and with them
// all property tests.
#pragma once

#include <string>
#include <vector>

#include "topologies/fabric.hpp"

namespace scapesim::test {

struct NamedCluster {
  std::string name;
  spec::Cluster cluster;
  int nodes = 0;  ///< that are built; cluster.nodes are there
};

/// Nodes of one GPU, 50 GB/s, 5 us, on a fabric without a kind.
inline spec::Cluster bare_cluster(spec::FabricKind kind, int nodes) {
  spec::Cluster cluster;
  cluster.nodes = nodes;
  cluster.nic_bandwidth = BytesPerSecond(50e9);
  cluster.node_link_bandwidth = BytesPerSecond(300e9);
  cluster.fabric.kind = kind;
  cluster.fabric.latency = Seconds(5e-6);
  return cluster;
}

inline spec::Cluster fat_tree_cluster(int nodes, int per_rack, double taper) {
  spec::Cluster cluster = bare_cluster(spec::FabricKind::fat_tree, nodes);
  cluster.fabric.nodes_per_rack = per_rack;
  cluster.fabric.taper = taper;
  return cluster;
}

inline spec::Cluster pod_tree_cluster(int nodes, int per_rack, int racks, double pod_taper) {
  spec::Cluster cluster = fat_tree_cluster(nodes, per_rack, 1);
  cluster.fabric.racks_per_pod = racks;
  cluster.fabric.pod_taper = pod_taper;
  return cluster;
}

inline spec::Cluster dragonfly_cluster(int groups, int routers, int per_router, double global) {
  const int nodes = groups * routers * per_router;
  spec::Cluster cluster = bare_cluster(spec::FabricKind::dragonfly, nodes);
  cluster.fabric.groups = groups;
  cluster.fabric.routers_per_group = routers;
  cluster.fabric.nodes_per_router = per_router;
  cluster.fabric.local_bandwidth = BytesPerSecond(25e9);
  cluster.fabric.global_bandwidth = BytesPerSecond(global);
  return cluster;
}

inline spec::Cluster torus_cluster(std::vector<int> dimensions, double cable) {
  int nodes = 1;
  for (const int extent : dimensions) nodes *= extent;
  spec::Cluster cluster = bare_cluster(spec::FabricKind::torus, nodes);
  cluster.fabric.dimensions = std::move(dimensions);
  cluster.fabric.cable_bandwidth = BytesPerSecond(cable);
  return cluster;
}

inline spec::Cluster rails_cluster(spec::FabricKind kind, int nodes, int per_rack, double taper) {
  spec::Cluster cluster = bare_cluster(kind, nodes);
  cluster.gpus_per_node = cluster.nics_per_node = 4;
  cluster.fabric.nodes_per_rack = per_rack;
  cluster.fabric.taper = taper;
  return cluster;
}

inline spec::Cluster dragonfly_plus_cluster(int groups, int leaves, int per_leaf, double taper) {
  spec::Cluster cluster = dragonfly_cluster(groups, leaves, per_leaf, 40e9);
  cluster.fabric.kind = spec::FabricKind::dragonfly_plus;
  cluster.fabric.taper = taper;
  return cluster;
}

inline spec::Cluster hyperx_cluster(std::vector<int> dimensions, int per_router, double cable) {
  spec::Cluster cluster = torus_cluster(std::move(dimensions), cable);
  cluster.nodes *= per_router;
  cluster.fabric.kind = spec::FabricKind::hyperx;
  cluster.fabric.nodes_per_router = per_router;
  return cluster;
}

inline spec::Cluster sites_cluster(int sites, int per_site, int per_rack, double wan) {
  spec::Cluster cluster = bare_cluster(spec::FabricKind::sites, sites * per_site);
  cluster.fabric.sites = sites;
  cluster.fabric.nodes_per_site = per_site;
  cluster.fabric.nodes_per_rack = per_rack;
  cluster.fabric.wan_bandwidth = BytesPerSecond(wan);
  return cluster;
}

/// Nodes of one GPU below switches "s0", "s1" ..., joined as the pairs say at 40 GB/s.
inline spec::Cluster graph_cluster(std::vector<int> switch_of_node,
                                   std::vector<std::pair<int, int>> cables) {
  spec::Cluster cluster =
      bare_cluster(spec::FabricKind::graph, static_cast<int>(switch_of_node.size()));
  spec::NetworkGraph& graph = cluster.fabric.graph;
  graph.file = "drawn";
  for (std::size_t node = 0; node < switch_of_node.size(); ++node)
    graph.edges.push_back({"node " + std::to_string(node),
                           "s" + std::to_string(switch_of_node[node]), BytesPerSecond(0)});
  for (const auto& [from, to] : cables)
    graph.edges.push_back(
        {"s" + std::to_string(from), "s" + std::to_string(to), BytesPerSecond(40e9)});
  return cluster;
}

inline spec::Cluster with_ecmp(spec::Cluster cluster) {
  cluster.fabric.routing = spec::Routing::ecmp;
  cluster.fabric.routing_seed = 7;
  return cluster;
}

inline spec::Cluster with_mesh(spec::Cluster cluster) {
  cluster.node_fabric = spec::NodeFabric::mesh;
  return cluster;
}

inline spec::Cluster with_domain(spec::Cluster cluster, int nodes) {
  cluster.nvlink_domain_nodes = nodes;
  return cluster;
}

/// Nodes of four GPUs and two NICs on two sockets.
inline spec::Cluster pcie_cluster(int nodes, spec::PeerAccess access) {
  spec::Cluster cluster = bare_cluster(spec::FabricKind::switch_, nodes);
  cluster.gpus_per_node = 4;
  cluster.nics_per_node = 2;
  cluster.node_fabric = spec::NodeFabric::pcie;
  cluster.node_link_bandwidth = BytesPerSecond(32e9);
  cluster.socket_bandwidth = BytesPerSecond(20e9);
  cluster.host_memory_bandwidth = BytesPerSecond(400e9);
  cluster.peer_access = access;
  cluster.pcie_tree = {{"socket 0", {"switch 0"}},
                       {"switch 0", {"GPU 0", "GPU 1", "NIC 0"}},
                       {"socket 1", {"GPU 2", "GPU 3", "NIC 1"}}};
  return cluster;
}

inline spec::Cluster with_gpus_per_node(spec::Cluster cluster, int gpus, int nics) {
  cluster.gpus_per_node = gpus;
  cluster.nics_per_node = nics;
  return cluster;
}

inline std::vector<NamedCluster> small_clusters() {
  return {
      {"switch", bare_cluster(spec::FabricKind::switch_, 8), 8},
      {"switch of nodes with four GPUs",
       with_gpus_per_node(bare_cluster(spec::FabricKind::switch_, 3), 4, 2), 3},
      {"fat tree", fat_tree_cluster(12, 4, 1), 12},
      {"tapered fat tree", fat_tree_cluster(11, 4, 4), 11},
      {"pods", pod_tree_cluster(16, 2, 3, 2), 16},
      {"dragonfly of large switches", dragonfly_cluster(5, 1, 4, 40e9), 20},
      {"dragonfly", dragonfly_cluster(9, 4, 1, 20e9), 36},
      {"part of a dragonfly", dragonfly_cluster(9, 4, 2, 10e9), 21},
      {"dragonfly of nodes with four GPUs",
       with_gpus_per_node(dragonfly_cluster(3, 2, 2, 25e9), 4, 4), 12},
      {"ring", torus_cluster({9}, 20e9), 9},
      {"torus", torus_cluster({4, 5}, 10e9), 20},
      {"torus of three dimensions", torus_cluster({3, 2, 4}, 30e9), 24},
      {"part of a torus", torus_cluster({4, 2, 3}, 25e9), 11},
      {"tree by radix",
       [] {
         spec::Cluster cluster = bare_cluster(spec::FabricKind::fat_tree, 14);
         cluster.fabric.switch_radix = 4;
         cluster.fabric.tree_levels = 3;
         return cluster;
       }(),
       14},
      {"fat tree with ECMP", with_ecmp(fat_tree_cluster(11, 4, 2)), 11},
      {"pods with ECMP", with_ecmp(pod_tree_cluster(16, 2, 3, 1)), 16},
      {"rails below one spine", rails_cluster(spec::FabricKind::rail_optimized, 7, 3, 2), 7},
      {"rails apart", rails_cluster(spec::FabricKind::rail_only, 7, 3, 2), 7},
      {"rack-wide NVLink on rails",
       with_domain(rails_cluster(spec::FabricKind::rail_optimized, 6, 3, 1), 3), 6},
      {"quads on a switch",
       with_mesh(with_gpus_per_node(bare_cluster(spec::FabricKind::switch_, 3), 4, 4)), 3},
      {"PCIe", pcie_cluster(3, spec::PeerAccess::all), 3},
      {"PCIe without peers", pcie_cluster(3, spec::PeerAccess::none), 3},
      {"PCIe with peers on a socket", pcie_cluster(2, spec::PeerAccess::socket), 2},
      {"dragonfly+", dragonfly_plus_cluster(4, 3, 2, 2), 24},
      {"part of a dragonfly+", dragonfly_plus_cluster(4, 3, 2, 1), 9},
      {"HyperX", hyperx_cluster({3, 4}, 2, 10e9), 24},
      {"part of a full mesh", hyperx_cluster({5}, 3, 20e9), 11},
      {"two sites", sites_cluster(2, 5, 0, 10e9), 10},
      {"three sites of racks", sites_cluster(3, 6, 3, 20e9), 16},
      {"a ring of switches and a chord",
       graph_cluster({0, 1, 2, 3, 4, 4, 5},
                     {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 0}, {0, 3}}),
       7},
      {"torus of nodes with two GPUs", with_gpus_per_node(torus_cluster({4, 3}, 25e9), 2, 2), 12},
  };
}

}  // namespace scapesim::test
