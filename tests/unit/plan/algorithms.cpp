// SPDX-License-Identifier: Apache-2.0
// What each algorithm puts on links, and which one is taken.
#include "sim/plan/algorithms.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "sim/base/error.hpp"
#include "sim/cost/collective_traffic.hpp"
#include "sim/plan/tree.hpp"
#include "tests/support/network.hpp"

using namespace scapesim;
using namespace scapesim::test;
using enum graph::CollectiveKind;
using graph::Algorithm;

namespace {

/// Bytes on the fullest link of each kind and direction, as a share of the call's size, summed over
/// the collective's phases.
struct Fullest {
  double node = 0;
  double nic = 0;
};
Fullest fullest(const plan::NetworkPlan& plan) {
  std::map<std::uint32_t, double> bytes;
  const graph::Collective& collective = plan.collectives.front();
  for (const graph::Phase& phase : collective.phases)
    for (const graph::Load& load : phase.loads)
      bytes[load.resource.value] += load.flows * (phase.bytes / collective.bytes);
  Fullest most;
  for (const auto& [resource, share] : bytes) {
    double& entry = plan.resources[resource].name == "node link" ? most.node : most.nic;
    entry = std::max(entry, share);
  }
  return most;
}

plan::NetworkPlan planned(const spec::Cluster& cluster, int nodes, Algorithm algorithm,
                          graph::CollectiveKind kind) {
  const auto fabric = topology::build_fabric(cluster, nodes);
  plan::CollectiveCall forced = call(kind, 1_GiB);
  forced.algorithm = algorithm;
  return plan::plan_collectives(fabric, {plan::consecutive_gpus(nodes * cluster.gpus_per_node)},
                                {forced});
}

Approx about(double value) { return Approx(value).epsilon(1e-12).margin(1e-15); }

}  // namespace

TEST_CASE("[M141] both trees reach all nodes from one root, and none is an inner node twice") {
  for (int nodes = 1; nodes < 70; ++nodes) {
    const plan::DoubleTree trees = plan::double_tree(nodes);
    std::vector<int> inner(static_cast<std::size_t>(nodes));
    for (const auto& parent : trees.parent) {
      std::vector<int> children(static_cast<std::size_t>(nodes));
      int roots = 0;
      for (const auto& up : parent) up ? ++children[static_cast<std::size_t>(*up)] : ++roots;
      REQUIRE(roots == 1);
      REQUIRE(plan::leaves_first(parent).size() == parent.size());
      for (std::size_t node = 0; node < children.size(); ++node) {
        REQUIRE(children[node] <= 2);
        inner[node] += children[node] > 0 ? 1 : 0;
      }
    }
    // An odd count has one node more than leaves to go round.
    if (nodes % 2 == 0) REQUIRE(*std::max_element(inner.begin(), inner.end()) == 1);
    REQUIRE(nodes > (1 << trees.depth) / 2);
  }
}

TEST_CASE("[M142] trees send the data once between two nodes, twice between more") {
  const int nodes = GENERATE(2, 4, 8);
  const Fullest most = fullest(planned(node_cluster(4, 4), nodes, Algorithm::tree, all_reduce));
  REQUIRE(most.nic == about((nodes == 2 ? 1.0 : 2.0) / 4));
  REQUIRE(most.node == about(2 * 3.0 / 4));
}

TEST_CASE("[M143] NVLS loads a GPU's link with the data and one share, all-gathers with the data") {
  const auto all = fullest(planned(node_cluster(8, 8), 1, Algorithm::nvls, all_reduce));
  REQUIRE(all.node == about(1 + 1.0 / 8));
  REQUIRE(fullest(planned(node_cluster(8, 8), 1, Algorithm::nvls, all_gather)).node == about(1));
  REQUIRE(fullest(planned(node_cluster(8, 8), 1, Algorithm::nvls, reduce_scatter)).node ==
          about(1));
}

TEST_CASE("[M144] NVLS-tree loads node links as NVLS does and NICs as trees do") {
  const Fullest most = fullest(planned(node_cluster(8, 4), 4, Algorithm::nvls_tree, all_reduce));
  REQUIRE(most.node == about(1 + 1.0 / 8));
  REQUIRE(most.nic == about(2.0 / 4));
}

TEST_CASE("[M145] a hierarchy sends only a node's share between nodes") {
  const Fullest most = fullest(planned(node_cluster(4, 2), 4, Algorithm::hierarchical, all_reduce));
  REQUIRE(most.node == about(2 * 3.0 / 4));
  REQUIRE(most.nic == about(2 * 3.0 / 4 / 2));
  const Fullest exchange =
      fullest(planned(node_cluster(4, 4), 4, Algorithm::hierarchical, all_to_all));
  REQUIRE(exchange.node == about(3.0 / 4));
  REQUIRE(exchange.nic == about(4.0 * 12 / 16 / 4));
}

TEST_CASE("[M146] SHARP sends the data once, whatever the number of nodes") {
  const int nodes = GENERATE(2, 8);
  REQUIRE(fullest(planned(flat_cluster(), nodes, Algorithm::sharp, all_reduce)).nic == about(1));
  const Fullest most = fullest(planned(node_cluster(4, 4), nodes, Algorithm::sharp, all_reduce));
  REQUIRE(most.nic == about(1.0 / 4));
  REQUIRE(most.node == about(2 * 3.0 / 4));
}

TEST_CASE("[M147] halving and doubling moves what rings do, in 2 log2 n steps") {
  const auto plan = planned(flat_cluster(), 16, Algorithm::halving_doubling, all_reduce);
  REQUIRE(plan.collectives[0].phases.size() == 8);
  REQUIRE(fullest(plan).nic == about(2 * 15.0 / 16));
  REQUIRE_THROWS_AS(planned(flat_cluster(), 12, Algorithm::halving_doubling, all_reduce),
                    InputError);
}

TEST_CASE("[M148] PAT moves what rings do, in log2 n steps") {
  const int nodes = GENERATE(3, 8, 13);
  const auto kind = GENERATE(all_gather, reduce_scatter);
  const auto plan = planned(flat_cluster(), nodes, Algorithm::pat, kind);
  REQUIRE(fullest(plan).nic == about((nodes - 1.0) / nodes));
  const double hops = std::ceil(std::log2(nodes));
  REQUIRE(plan.collectives[0].phases.at(0).latency.si() == about(hops * 5e-6));
}

TEST_CASE("[M149] a pairwise all-to-all sends to every other rank once") {
  const Fullest most = fullest(planned(node_cluster(4, 2), 4, Algorithm::pairwise, all_to_all));
  REQUIRE(most.node == about(3.0 / 16));
  REQUIRE(most.nic == about(2 * 12.0 / 16));
}

TEST_CASE("[M120] on equal nodes phases carry what the closed form of traffic says") {
  const auto [gpus, nics, nodes] = GENERATE(table<int, int, int>(
      {{1, 1, 2}, {1, 1, 8}, {8, 8, 1}, {4, 4, 2}, {8, 8, 4}, {4, 2, 4}, {8, 1, 2}}));
  const auto fabric = topology::build_fabric(node_cluster(gpus, nics), nodes);
  const plan::GroupSet set = plan::consecutive_gpus(nodes * gpus);
  const cost::Layout layout = plan::layout_of(fabric, set);
  plan::NetworkTerms terms;
  terms.hop_latency = 1_s;
  terms.node_hop_latency = 1_ms;
  for (const plan::AlgorithmRow& row : plan::algorithms())
    for (const graph::CollectiveKind kind : row.kinds) {
      const auto traffic = cost::traffic_of(row.algorithm, kind, layout);
      if (!traffic || kind == send_recv) continue;  // its form is that of many pairs at once
      if (!row.obstacle(plan::site_of(fabric, set), kind).empty()) continue;
      INFO(nodes << " nodes of " << gpus << " and " << nics << " NICs, " << name_of(row.algorithm)
                 << ", " << name_of(kind));
      plan::CollectiveCall forced = call(kind, 1_GiB, 0, terms);
      forced.algorithm = row.algorithm;
      const auto plan = plan::plan_collectives(fabric, {set}, {forced});
      CHECK(fullest(plan).node == about(traffic->node_link));
      CHECK(fullest(plan).nic == about(traffic->nic));
      if (kind == broadcast) continue;  // counted along its open way, not by the lap
      Seconds latency;
      for (const graph::Phase& phase : plan.collectives[0].phases) latency += phase.latency;
      CHECK(latency.si() == about(traffic->network_steps + 1e-3 * traffic->node_steps));
    }
}

TEST_CASE("an all-to-all-v is as slow as the rank that receives most") {
  const auto fabric = topology::build_fabric(flat_cluster(), 4);
  plan::CollectiveCall uneven = call(all_to_all, 1_GiB);
  uneven.peer_shares = {0.5, 0.25, 0.125, 0.125};
  const auto plan = plan::plan_collectives(fabric, {plan::consecutive_gpus(4)}, {uneven});
  REQUIRE(fullest(plan).nic == about(3 * 0.5));
}

TEST_CASE("a pair's send goes one way, a ring's around") {
  const auto pair = planned(flat_cluster(), 2, Algorithm::pairwise, send_recv);
  REQUIRE(fullest(pair).nic == about(1));
  const auto fabric = topology::build_fabric(flat_cluster(), 2);
  const auto opposite =
      plan::plan_collectives(fabric, {plan::Group{{0}, {1}}, plan::Group{{1}, {0}}},
                             {call(send_recv, 1_KiB, 0), call(send_recv, 1_KiB, 1)});
  REQUIRE(opposite.resources.size() == 2);  // they share no link
  const auto ring = planned(flat_cluster(), 4, Algorithm::pairwise, send_recv);
  REQUIRE(ring.collectives[0].phases.at(0).loads.size() == 1);
  REQUIRE(ring.collectives[0].phases.at(0).bytes == 1_GiB);
}

TEST_CASE("an algorithm that cannot run is refused with the reason") {
  const auto refusal = [](const spec::Cluster& cluster, int nodes, Algorithm algorithm,
                          graph::CollectiveKind kind) {
    try {
      planned(cluster, nodes, algorithm, kind);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  REQUIRE_THAT(refusal(node_cluster(4, 4), 2, Algorithm::nvls, all_reduce),
               Catch::Contains("stays inside one node"));
  REQUIRE_THAT(refusal(flat_cluster(), 4, Algorithm::nvls_tree, all_reduce),
               Catch::Contains("switch"));
  REQUIRE_THAT(refusal(node_cluster(4, 4), 1, Algorithm::sharp, all_reduce),
               Catch::Contains("several nodes"));
  REQUIRE_THAT(refusal(flat_cluster(), 4, Algorithm::tree, all_gather), Catch::Contains("kind"));
}
