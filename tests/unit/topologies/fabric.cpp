// SPDX-License-Identifier: Apache-2.0
#include "topologies/fabric.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/max_flow.hpp"

using namespace scapesim;
using namespace scapesim::literals;
using namespace scapesim::topology;
using scapesim::test::smallest_flow;

namespace {

spec::Cluster cluster_of(int gpus_per_node, int nics_per_node) {
  spec::Cluster cluster;
  cluster.gpus_per_node = gpus_per_node;
  cluster.nics_per_node = nics_per_node;
  cluster.nic_bandwidth = 50_GBps;
  cluster.node_link_bandwidth = 300_GBps;
  cluster.fabric.latency = 5_us;
  return cluster;
}

spec::Cluster tree_of(int nodes_per_rack, double taper) {
  spec::Cluster cluster = cluster_of(1, 1);
  cluster.fabric.kind = spec::FabricKind::fat_tree;
  cluster.fabric.nodes_per_rack = nodes_per_rack;
  cluster.fabric.taper = taper;
  return cluster;
}

spec::Cluster pods_of(int nodes_per_rack, int racks_per_pod, double taper, double pod_taper) {
  spec::Cluster cluster = tree_of(nodes_per_rack, taper);
  cluster.fabric.racks_per_pod = racks_per_pod;
  cluster.fabric.pod_taper = pod_taper;
  return cluster;
}

std::vector<LinkKind> kinds(const Fabric& fabric, GpuId from, GpuId to) {
  std::vector<LinkKind> list;
  for (const LinkId id : fabric.path(from, to)) list.push_back(fabric.link(id).kind);
  return list;
}

/// True when the path's links are edges that join one vertex to the next.
bool is_walk(const Fabric& fabric, GpuId from, GpuId to) {
  const Graph& graph = fabric.graph();
  auto at = fabric.vertex(from);
  for (const LinkId id : fabric.path(from, to)) {
    const auto edges = boost::make_iterator_range(out_edges(at, graph));
    const auto edge =
        std::find_if(edges.begin(), edges.end(), [&](const auto& e) { return graph[e].id == id; });
    if (edge == edges.end()) return false;
    at = target(*edge, graph);
  }
  return at == fabric.vertex(to);
}

}  // namespace

TEST_CASE("one-GPU nodes reach each other over two NIC links of a switch") {
  const Fabric fabric = build_fabric(cluster_of(1, 1), 4);
  using enum LinkKind;
  REQUIRE(fabric.gpus() == 4);
  REQUIRE(kinds(fabric, {0}, {3}) == std::vector{lane, nic, nic, lane});
  REQUIRE(kinds(fabric, {2}, {2}).empty());
  REQUIRE(fabric.latency({0}, {3}) == 5_us);
}

TEST_CASE("inside a node the node switch is used, not the NICs") {
  const Fabric fabric = build_fabric(cluster_of(4, 4), 2);
  using enum LinkKind;
  REQUIRE(kinds(fabric, {4}, {7}) == std::vector{node, node});
  REQUIRE(fabric.latency({4}, {7}) == Seconds(0));
  REQUIRE(kinds(fabric, {3}, {4}) == std::vector{lane, nic, nic, lane});
}

TEST_CASE("only nodes of different racks load the trunks") {
  const Fabric fabric = build_fabric(tree_of(4, 1), 12);
  using enum LinkKind;
  REQUIRE(kinds(fabric, {4}, {7}) == std::vector{lane, nic, nic, lane});
  REQUIRE(kinds(fabric, {3}, {4}) == std::vector{lane, nic, trunk, trunk, nic, lane});
}

TEST_CASE("every path is a walk in the graph") {
  spec::Cluster cluster = cluster_of(4, 2);
  cluster.fabric.kind = spec::FabricKind::fat_tree;
  cluster.fabric.nodes_per_rack = 2;
  const Fabric fabric = build_fabric(cluster, 5);
  for (std::uint32_t from = 0; from < 20; ++from)
    for (std::uint32_t to = 0; to < 20; ++to) REQUIRE(is_walk(fabric, {from}, {to}));
}

TEST_CASE("local GPU i leaves through NIC i nics / gpus") {
  const Fabric fabric = build_fabric(cluster_of(4, 2), 3);
  const std::vector<std::uint32_t> expected = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5};
  for (std::uint32_t gpu = 0; gpu < 12; ++gpu) REQUIRE(fabric.nic_of({gpu}) == expected[gpu]);
}

TEST_CASE("a GPU with several NICs has their joint capacity") {
  const Fabric fabric = build_fabric(cluster_of(1, 4), 2);
  REQUIRE(fabric.link(fabric.path({0}, {1})[1]).capacity == 200_GBps);
}

TEST_CASE("a tapered trunk carries a full rack's traffic divided by the taper") {
  const Fabric fabric = build_fabric(tree_of(4, 2), 8);
  REQUIRE(fabric.link(fabric.path({0}, {4})[2]).capacity == 100_GBps);
}

TEST_CASE("bisection: half of all NICs on a switch, half of the trunks on a tapered tree") {
  REQUIRE(build_fabric(cluster_of(8, 8), 6).bisection() == 3 * 8 * 50_GBps);
  REQUIRE(build_fabric(tree_of(4, 1), 16).bisection() == 8 * 50_GBps);
  REQUIRE(build_fabric(tree_of(4, 2), 16).bisection() == 4 * 50_GBps);
}

TEST_CASE("[M28] bisection is the smallest maximal flow over all halves of the nodes") {
  const auto [nodes, per_rack, taper] = GENERATE(table<int, int, double>(
      {{2, 4, 1}, {6, 2, 1}, {7, 3, 3}, {8, 3, 3}, {8, 4, 4}, {9, 4, 2}, {10, 4, 4}, {5, 2, 2}}));
  const Fabric fabric = build_fabric(tree_of(per_rack, taper), nodes);
  REQUIRE(fabric.bisection() / 50_GBps ==
          Approx(static_cast<double>(smallest_flow(fabric, 50_GBps))).epsilon(1e-12));
}

TEST_CASE("racks of one pod meet at its spine, pods at the core") {
  const Fabric fabric = build_fabric(pods_of(2, 2, 2, 2), 12);
  using enum LinkKind;
  CHECK(kinds(fabric, {0}, {2}) == std::vector{lane, nic, trunk, trunk, nic, lane});
  CHECK(kinds(fabric, {0}, {4}) == std::vector{lane, nic, trunk, pod, pod, trunk, nic, lane});
  CHECK(fabric.link(fabric.path({0}, {4})[3]).capacity == 50_GBps);  // 4 nodes, 2:1 twice
  CHECK(fabric.levels()[1].taper() == 4);
}

TEST_CASE("[M28] bisection of three levels is the smallest maximal flow over all halves") {
  // Nodes, per rack, racks per pod, tapers.
  const auto [nodes, per_rack, per_pod, taper, pod_taper] =
      GENERATE(table<int, int, int, double, double>({{8, 2, 2, 1, 1},
                                                     {8, 2, 2, 1, 4},
                                                     {8, 2, 2, 2, 2},
                                                     {12, 2, 2, 1, 2},
                                                     {12, 2, 3, 2, 1},
                                                     {11, 2, 2, 2, 2},
                                                     {11, 1, 4, 1, 4},
                                                     {10, 3, 2, 3, 2},
                                                     {9, 2, 2, 1, 4},
                                                     {7, 1, 3, 1, 3},
                                                     {3, 2, 2, 2, 2}}));
  const Fabric fabric = build_fabric(pods_of(per_rack, per_pod, taper, pod_taper), nodes);
  CAPTURE(nodes, per_rack, per_pod, taper, pod_taper);
  CHECK(fabric.bisection() / 12.5_GBps ==
        Approx(static_cast<double>(smallest_flow(fabric, 12.5_GBps))).epsilon(1e-12));
}

TEST_CASE("[M66] diameter: a switch is crossed in two hops, a tree in four, pods in six") {
  REQUIRE(build_fabric(cluster_of(4, 4), 1).diameter() == 0);
  REQUIRE(build_fabric(cluster_of(4, 4), 2).diameter() == 2);
  REQUIRE(build_fabric(tree_of(4, 1), 4).diameter() == 2);
  REQUIRE(build_fabric(tree_of(4, 1), 5).diameter() == 4);
  REQUIRE(build_fabric(pods_of(2, 2, 1, 1), 4).diameter() == 4);
  REQUIRE(build_fabric(pods_of(2, 2, 1, 1), 5).diameter() == 6);
}
