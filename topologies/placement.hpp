// SPDX-License-Identifier: Apache-2.0
// Which nodes of a machine a job gets, and which of their GPUs has which rank.
#pragma once

#include <vector>

#include "topologies/fabric.hpp"

namespace scapesim::topology {

/// Nodes of the machine that the job's GPUs are on, ascending: the first (packed), evenly over the
/// machine (spread), or any, by the seed (random). The job is cluster.gpus.
std::vector<int> allocated_nodes(const spec::Cluster& cluster);

/// How many nodes a fabric needs to hold them: build_fabric(cluster, nodes_to_build(cluster)).
int nodes_to_build(const spec::Cluster& cluster);

/// GPU of each rank of the job:
///   packed: node by node;
///   strided: node by node, taking one from every rack in turn, which is the worst on a taper;
///   random: node by node, in an order drawn by the seed;
///   rail: first GPUs of all nodes, then the second ones;
///   topology: node by node along neighbours: a torus to and fro, else in order of switches.
std::vector<GpuId> placement(const spec::Cluster& cluster);

/// The same GPUs with those of a node side by side, nodes in order of their first one: as NCCL lays
/// rings whatever the order of ranks.
std::vector<GpuId> node_by_node(const Fabric& fabric, std::span<const GpuId> gpus);

}  // namespace scapesim::topology
