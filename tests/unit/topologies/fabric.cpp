// SPDX-License-Identifier: Apache-2.0
#include "topologies/fabric.hpp"

#include <algorithm>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <numeric>

using namespace scapesim;
using namespace scapesim::literals;
using namespace scapesim::topology;

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

/// Largest flow from the NICs of one set of nodes to those of the others, in units of NICs (whole
/// numbers for the fabrics below), by Boost's push-relabel.
long max_flow(const Fabric& fabric, const std::vector<bool>& in_a, BytesPerSecond unit) {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using FlowGraph = boost::adjacency_list<
      boost::vecS, boost::vecS, boost::directedS, boost::no_property,
      boost::property<
          boost::edge_capacity_t, long,
          boost::property<boost::edge_residual_capacity_t, long,
                          boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;
  const Graph& graph = fabric.graph();
  FlowGraph flow(num_vertices(graph) + 2);
  auto capacity = get(boost::edge_capacity, flow);
  auto reverse = get(boost::edge_reverse, flow);
  const auto add = [&](std::size_t from, std::size_t to, long amount) {
    const auto edge = add_edge(from, to, flow).first;
    const auto back = add_edge(to, from, flow).first;
    capacity[edge] = amount;
    capacity[back] = 0;
    reverse[edge] = back;
    reverse[back] = edge;
  };
  const long unlimited = 1'000'000;
  const std::size_t source = num_vertices(graph);
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const Link& link = fabric.link(graph[edge].id);
    add(boost::source(edge, graph), target(edge, graph),
        link.kind == LinkKind::lane ? unlimited : std::lround(link.capacity / unit));
  }
  for (std::uint32_t gpu = 0; gpu < in_a.size(); ++gpu)
    in_a[gpu] ? add(source, fabric.vertex({gpu}), unlimited)
              : add(fabric.vertex({gpu}), source + 1, unlimited);
  return push_relabel_max_flow(flow, source, source + 1);
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
  std::vector<bool> in_a(static_cast<std::size_t>(nodes));
  std::fill(in_a.end() - nodes / 2, in_a.end(), true);
  long smallest = 1'000'000;
  do {
    smallest = std::min(smallest, max_flow(fabric, in_a, 50_GBps));
  } while (std::next_permutation(in_a.begin(), in_a.end()));
  REQUIRE(fabric.bisection() / 50_GBps == Approx(static_cast<double>(smallest)).epsilon(1e-12));
}

TEST_CASE("[M66] diameter: a switch is crossed in two hops, a tree of more than a rack in four") {
  REQUIRE(build_fabric(cluster_of(4, 4), 1).diameter() == 0);
  REQUIRE(build_fabric(cluster_of(4, 4), 2).diameter() == 2);
  REQUIRE(build_fabric(tree_of(4, 1), 4).diameter() == 2);
  REQUIRE(build_fabric(tree_of(4, 1), 5).diameter() == 4);
}
