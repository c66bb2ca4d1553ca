// SPDX-License-Identifier: Apache-2.0
// Networks drawn at random: routes are shortest, and what flows share stays below the maximal flow.
#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>
#include <catch2/catch.hpp>
#include <set>

#include "sim/base/error.hpp"
#include "sim/base/random.hpp"
#include "sim/engine/max_min.hpp"
#include "sim/engine/replay.hpp"
#include "sim/plan/algorithms.hpp"
#include "tests/support/fabrics.hpp"
#include "tests/support/max_flow.hpp"
#include "tests/support/network.hpp"

using namespace scapesim;
using namespace scapesim::topology;
using namespace scapesim::test;

namespace {

/// A connected network: a tree of switches, a few cables more, nodes anywhere.
spec::Cluster drawn(Random& random) {
  const int switches = 2 + static_cast<int>(random.below(7));
  const int nodes = 2 + static_cast<int>(random.below(9));
  const auto any = [&](int below) {
    return static_cast<int>(random.below(static_cast<std::uint64_t>(below)));
  };
  std::set<std::pair<int, int>> cables;
  for (int i = 1; i < switches; ++i) cables.insert({any(i), i});
  for (int i = any(2 * switches); i > 0; --i) {
    const auto [low, high] = std::minmax({any(switches), any(switches)});
    if (low != high) cables.insert({low, high});
  }
  std::vector<int> switch_of_node;
  for (int i = 0; i < nodes; ++i) switch_of_node.push_back(any(switches));
  spec::Cluster cluster = graph_cluster(switch_of_node, {cables.begin(), cables.end()});
  for (spec::GraphEdge& edge : cluster.fabric.graph.edges)
    if (edge.capacity.si() > 0) edge.capacity = BytesPerSecond(5e9 * (1 + any(12)));
  cluster.fabric.routing_seed = any(1000);
  return cluster;
}

/// Links to every vertex by Boost's breadth-first search, which knows nothing of routes.
std::vector<int> distances(const Fabric& fabric, GpuId from) {
  std::vector<int> distance(num_vertices(fabric.graph()), 0);
  boost::breadth_first_search(fabric.graph(), fabric.vertex(from),
                              boost::visitor(boost::make_bfs_visitor(boost::record_distances(
                                  distance.data(), boost::on_tree_edge()))));
  return distance;
}

/// What all flows together carry at max-min fair rates.
BytesPerSecond throughput(const Fabric& fabric, const std::vector<std::pair<GpuId, GpuId>>& flows) {
  std::vector<graph::Resource> resources;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(fabric.links()); ++i)
    resources.push_back({"link", fabric.link({i}).capacity});
  std::vector<graph::Phase> phases;
  for (const auto& [from, to] : flows) {
    graph::Phase& phase = phases.emplace_back();
    for (const LinkId link : fabric.path(from, to))
      if (fabric.link(link).kind != LinkKind::lane) phase.loads.push_back({{link.value}, 1.0});
  }
  std::vector<const graph::Phase*> views;
  for (const graph::Phase& phase : phases) views.push_back(&phase);
  std::vector<BytesPerSecond> rates(flows.size());
  engine::MaxMin(resources).solve(views, rates);
  BytesPerSecond total;
  for (const BytesPerSecond rate : rates) total += rate;
  return total;
}

}  // namespace

TEST_CASE("routes of random networks are shortest, whatever the seed") {
  Random random(21);
  for (int i = 0; i < 100; ++i) {
    const spec::Cluster cluster = drawn(random);
    REQUIRE(spec::violations(cluster).empty());
    const Fabric fabric = build_fabric(cluster, cluster.nodes);
    for (std::uint32_t from = 0; from < static_cast<std::uint32_t>(cluster.nodes); ++from) {
      const std::vector<int> distance = distances(fabric, {from});
      for (std::uint32_t to = 0; to < static_cast<std::uint32_t>(cluster.nodes); ++to)
        REQUIRE(static_cast<int>(fabric.path({from}, {to}).size()) ==
                distance[fabric.vertex({to})]);
    }
  }
}

TEST_CASE("no set of flows carries more than the maximal flow between its ends") {
  const BytesPerSecond unit(5e9);
  Random random(22);
  std::vector<spec::Cluster> clusters;
  for (int i = 0; i < 60; ++i) clusters.push_back(drawn(random));
  for (const NamedCluster& row : small_clusters())
    if (row.cluster.gpus_per_node == 1) clusters.push_back(row.cluster);
  for (const spec::Cluster& cluster : clusters) {
    const Fabric fabric = build_fabric(cluster, cluster.nodes);
    std::vector<std::uint32_t> gpus(static_cast<std::size_t>(cluster.nodes));
    for (std::uint32_t i = 0; i < gpus.size(); ++i) gpus[i] = i;
    shuffle(gpus, random);
    std::vector<bool> in_a(gpus.size());
    std::vector<std::pair<GpuId, GpuId>> flows;
    const std::size_t half = gpus.size() / 2;
    for (std::size_t i = 0; i < half; ++i) in_a[gpus[i]] = true;
    for (std::size_t i = 0; i < half; ++i)
      for (std::size_t j = half; j < gpus.size(); ++j) flows.push_back({{gpus[i]}, {gpus[j]}});
    const BytesPerSecond bound = static_cast<double>(max_flow(fabric, in_a, unit)) * unit;
    CAPTURE(name_of(cluster.fabric.kind), cluster.nodes);
    CHECK(throughput(fabric, flows) <= bound * (1 + 1e-9));
    CHECK(throughput(fabric, flows).si() > 0);
  }
}

namespace {

/// Bytes that have to go from set A to set B whoever carries them, switches that add included.
Bytes least_crossing(graph::CollectiveKind kind, Bytes size, double in_a, double in_b,
                     bool root_in_a) {
  using enum graph::CollectiveKind;
  const double all = in_a + in_b;
  switch (kind) {
    case all_reduce:
      return size;  // A's sums
    case reduce_scatter:
      return in_b / all * size;  // A's part of the sums that B keeps
    case all_gather:
      return in_a / all * size;
    case all_to_all:
      return in_a * in_b / all * size;
    case broadcast:
      return root_in_a ? size : Bytes(0);
    case send_recv:
      return size;  // around: some rank of A sends to one of B
  }
  throw InternalError("kind of collective");
}

}  // namespace

TEST_CASE(
    "no algorithm moves a collective over a cut of a random network faster than the maximal "
    "flow") {
  const BytesPerSecond unit(5e9);
  Random random(23);
  int compared = 0;
  for (int i = 0; i < 40; ++i) {
    spec::Cluster cluster = drawn(random);
    cluster.fabric.latency = Seconds(0);
    const Fabric fabric = build_fabric(cluster, cluster.nodes);
    const plan::GroupSet set = plan::consecutive_gpus(fabric.gpus());
    std::vector<bool> in_a(static_cast<std::size_t>(fabric.gpus()));
    for (std::size_t gpu = 0; gpu < in_a.size(); ++gpu) in_a[gpu] = random.below(2) == 1;
    const auto size_a = static_cast<double>(std::ranges::count(in_a, true));
    const double size_b = fabric.gpus() - size_a;
    if (size_a == 0 || size_b == 0) continue;
    const BytesPerSecond cut = static_cast<double>(max_flow(fabric, in_a, unit)) * unit;
    for (const plan::AlgorithmRow& algorithm : plan::algorithms())
      for (const graph::CollectiveKind kind : algorithm.kinds) {
        plan::CollectiveCall one = call(kind, Bytes(1e9));
        one.algorithm = algorithm.algorithm;
        graph::StepGraph graph;
        try {
          graph = only_calls(fabric, {set}, {one});
        } catch (const InputError&) {
          continue;  // it cannot run there
        }
        const Seconds time =
            engine::replay(graph, {.driver = engine::Driver::standalone}).step_end[0];
        CAPTURE(i, name_of(algorithm.algorithm), name_of(kind));
        CHECK(time >= (1 - 1e-9) * (least_crossing(kind, one.size, size_a, size_b, in_a[0]) / cut));
        ++compared;
      }
  }
  CHECK(compared > 200);
}
