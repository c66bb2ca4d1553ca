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
      {"torus of nodes with two GPUs", with_gpus_per_node(torus_cluster({4, 3}, 25e9), 2, 2), 12},
  };
}

}  // namespace scapesim::test
