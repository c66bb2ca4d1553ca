// SPDX-License-Identifier: Apache-2.0
// Clusters and step graphs that tests of fabric and engine share.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/replay.hpp"
#include "sim/plan/ring.hpp"

namespace scapesim::test {

using namespace scapesim::literals;

/// One 50 GB/s NIC per one-GPU node, 5 us between nodes.
inline spec::Cluster flat_cluster() {
  spec::Cluster cluster;
  cluster.nic_bandwidth = 50_GBps;
  cluster.fabric.latency = 5_us;
  return cluster;
}

inline spec::Cluster tree_cluster(int nodes_per_rack, double taper) {
  spec::Cluster cluster = flat_cluster();
  cluster.fabric.kind = spec::FabricKind::fat_tree;
  cluster.fabric.nodes_per_rack = nodes_per_rack;
  cluster.fabric.taper = taper;
  return cluster;
}

inline spec::Cluster node_cluster(int gpus_per_node, int nics_per_node) {
  spec::Cluster cluster = flat_cluster();
  cluster.gpus_per_node = gpus_per_node;
  cluster.nics_per_node = nics_per_node;
  cluster.node_link_bandwidth = 300_GBps;
  return cluster;
}

/// GPUs first, first + stride, ... below `gpus`, then the same from the next offset.
inline plan::Group strided_ring(std::uint32_t gpus, std::uint32_t stride) {
  plan::Group ring;
  for (std::uint32_t offset = 0; offset < stride; ++offset)
    for (std::uint32_t gpu = offset; gpu < gpus; gpu += stride) ring.push_back({gpu});
  return ring;
}

inline plan::CollectiveCall call(graph::CollectiveKind kind, Bytes size, std::size_t group = 0,
                                 const plan::NetworkTerms& terms = {}) {
  return {.name = std::string(name_of(kind)),
          .kind = kind,
          .size = size,
          .group = group,
          .members = {{0}},
          .terms = terms};
}

inline graph::Operation local(Seconds duration, graph::Stream stream = graph::Stream::compute) {
  graph::Operation operation;
  operation.name = "local";
  operation.stream = stream;
  operation.duration = duration;
  return operation;
}

inline graph::Operation enter(std::uint32_t collective, graph::Stream stream) {
  graph::Operation operation;
  operation.name = "collective";
  operation.kind = graph::Kind::communication;
  operation.stream = stream;
  operation.work = graph::Work::collective;
  operation.collective = {collective};
  return operation;
}

/// All calls begin together, each on a stream of its own (five at most), and a step begins when all
/// calls of the one before have ended. Operation i is call i.
inline graph::StepGraph only_calls(const topology::Fabric& fabric,
                                   const std::vector<plan::GroupSet>& groups,
                                   const std::vector<plan::CollectiveCall>& calls) {
  plan::NetworkPlan network = plan::plan_collectives(fabric, groups, calls);
  graph::StepGraph graph;
  graph.collectives = std::move(network.collectives);
  graph.resources = std::move(network.resources);
  graph::RankClass& all = graph.classes.emplace_back();
  all.ranks = fabric.gpus();
  const graph::OpId join{static_cast<std::uint32_t>(calls.size())};
  graph::Operation end_of_step = local(0_s);
  for (std::uint32_t i = 0; i < calls.size(); ++i) {
    all.operations.push_back(enter(i, static_cast<graph::Stream>(1 + i)));
    all.operations.back().waits_for = {{join, 1}};
    end_of_step.waits_for.push_back({{i}, 0});
  }
  all.operations.push_back(end_of_step);
  return graph;
}

/// When each call has ended, if all begin at 0 and nothing else runs.
inline std::vector<Seconds> fluid_ends(const topology::Fabric& fabric,
                                       const std::vector<plan::GroupSet>& groups,
                                       const std::vector<plan::CollectiveCall>& calls) {
  const auto graph = only_calls(fabric, groups, calls);
  const auto timeline = engine::replay(graph, {.driver = engine::Driver::standalone});
  std::vector<Seconds> ends;
  for (std::size_t i = 0; i < calls.size(); ++i) ends.push_back(timeline.spans[i].end);
  return ends;
}

}  // namespace scapesim::test
