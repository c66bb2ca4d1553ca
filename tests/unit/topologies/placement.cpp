// SPDX-License-Identifier: Apache-2.0
#include "topologies/placement.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/support/fabrics.hpp"

using namespace scapesim;
using namespace scapesim::topology;
using namespace scapesim::test;

namespace {

std::vector<std::uint32_t> ranks(spec::Cluster cluster, int gpus, spec::Placement placed) {
  cluster.gpus = gpus;
  cluster.placement = placed;
  std::vector<std::uint32_t> list;
  for (const GpuId gpu : placement(cluster)) list.push_back(gpu.value);
  return list;
}

}  // namespace

TEST_CASE("ranks are placed node by node, rack by rack in turn, or rail by rail") {
  const spec::Cluster racks = with_gpus_per_node(fat_tree_cluster(6, 2, 1), 2, 2);
  using enum spec::Placement;
  CHECK(ranks(racks, 12, packed) ==
        std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(ranks(racks, 12, strided) ==
        std::vector<std::uint32_t>{0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11});
  CHECK(ranks(racks, 8, rail) == std::vector<std::uint32_t>{0, 2, 4, 6, 1, 3, 5, 7});
  CHECK(ranks(racks, 1, rail) == std::vector<std::uint32_t>{0});
}

TEST_CASE("rings keep the GPUs of a node together, nodes in order of their first rank") {
  const spec::Cluster cluster =
      with_gpus_per_node(bare_cluster(spec::FabricKind::switch_, 3), 2, 2);
  const Fabric fabric = build_fabric(cluster, 3);
  const std::vector<GpuId> given = {{4}, {0}, {2}, {5}, {1}, {3}};
  CHECK(node_by_node(fabric, given) == std::vector<GpuId>{{4}, {5}, {0}, {1}, {2}, {3}});
}

TEST_CASE("along a torus neighbours in rank are neighbours in place") {
  const spec::Cluster cluster = torus_cluster({3, 4, 2}, 10e9);
  const auto order = ranks(cluster, 24, spec::Placement::topology);
  const Fabric fabric = build_fabric(cluster, 24);
  for (std::size_t i = 0; i + 1 < order.size(); ++i)
    CHECK(fabric.path({order[i]}, {order[i + 1]}).size() == 5);  // lane, NIC, one cable, NIC, lane
}

TEST_CASE("every placement gives every rank a GPU of its own, on the job's nodes") {
  for (NamedCluster row : small_clusters())
    for (const auto& placed : names<spec::Placement>())
      for (const auto& allocated : names<spec::Allocation>()) {
        INFO(row.name << ", " << placed.name << ", " << allocated.name);
        row.cluster.allocation = allocated.value;
        row.cluster.gpus = std::max(1, row.cluster.nodes / 2) * row.cluster.gpus_per_node;
        const auto gpus = ranks(row.cluster, row.cluster.gpus, placed.value);
        CHECK(std::set(gpus.begin(), gpus.end()).size() == gpus.size());
        CHECK(static_cast<int>(gpus.size()) == row.cluster.gpus);
        std::set<int> nodes;
        for (const std::uint32_t gpu : gpus)
          nodes.insert(static_cast<int>(gpu) / row.cluster.gpus_per_node);
        const std::vector<int> expected = allocated_nodes(row.cluster);
        CHECK(std::vector(nodes.begin(), nodes.end()) == expected);
        CHECK(nodes_to_build(row.cluster) == expected.back() + 1);
        CHECK(expected.back() < row.cluster.nodes);
      }
}

TEST_CASE("a job is spread over the machine, or drawn by its seed") {
  spec::Cluster cluster = fat_tree_cluster(100, 10, 1);
  cluster.gpus = 4;
  cluster.allocation = spec::Allocation::spread;
  CHECK(allocated_nodes(cluster) == std::vector{0, 25, 50, 75});
  cluster.allocation = spec::Allocation::random;
  const std::vector<int> first = allocated_nodes(cluster);
  CHECK(first == allocated_nodes(cluster));
  cluster.placement_seed = 1;
  CHECK(first != allocated_nodes(cluster));
}
