// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/ring.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "sim/base/error.hpp"
#include "sim/base/random.hpp"
#include "tests/support/network.hpp"

using namespace scapesim;
using namespace scapesim::test;
using enum graph::CollectiveKind;
using topology::GpuId;

namespace {

plan::NetworkPlan plan_of(const spec::Cluster& cluster, int gpus,
                          const std::vector<plan::CollectiveCall>& calls) {
  const auto fabric = topology::build_fabric(cluster, gpus / cluster.gpus_per_node);
  return plan::plan_collectives(fabric, {plan::consecutive_gpus(gpus)}, calls);
}

std::vector<std::uint32_t> numbers(const plan::Group& group) {
  std::vector<std::uint32_t> list;
  for (const GpuId gpu : group) list.push_back(gpu.value);
  return list;
}

/// Flows per resource name of a phase.
std::map<std::string, double> loads_of(const plan::NetworkPlan& plan, const graph::Phase& phase) {
  std::map<std::string, double> loads;
  for (const graph::Load& load : phase.loads)
    loads[plan.resources[index(load.resource)].name] += load.flows;
  return loads;
}

}  // namespace

TEST_CASE("[M20] an all-reduce sends 2(n-1)/n of the data over every link, in 2(n-1) hops") {
  const auto plan = plan_of(flat_cluster(), 4, {call(all_reduce, 1024_B)});
  const graph::Phase& phase = plan.collectives[0].phases.at(0);
  REQUIRE(phase.bytes == 1536_B);
  REQUIRE(phase.latency.si() == Approx(6 * 5e-6).epsilon(1e-15));
  REQUIRE(plan.collectives[0].group_size == 4);
  REQUIRE(plan.collectives[0].bytes == 1024_B);
}

TEST_CASE("[M21] all-gather and reduce-scatter send (n-1)/n of the whole, in n-1 hops") {
  const auto plan =
      plan_of(flat_cluster(), 4, {call(all_gather, 1024_B), call(reduce_scatter, 1024_B)});
  for (const graph::Collective& collective : plan.collectives) {
    REQUIRE(collective.phases.at(0).bytes == 768_B);
    REQUIRE(collective.phases.at(0).latency.si() == Approx(3 * 5e-6).epsilon(1e-15));
  }
}

TEST_CASE("[M25] a broadcast sends the whole message one way and leaves the way back free") {
  const auto fabric = topology::build_fabric(flat_cluster(), 2);
  const auto plan = plan::plan_collectives(fabric, {plan::Group{{0}, {1}}, plan::Group{{1}, {0}}},
                                           {call(broadcast, 1_KiB, 0), call(broadcast, 1_KiB, 1)});
  REQUIRE(plan.collectives[0].phases.at(0).bytes == 1_KiB);
  REQUIRE(plan.resources.size() == 2);  // opposite broadcasts share no link
  for (const graph::Collective& collective : plan.collectives)
    REQUIRE(collective.phases.at(0).loads.size() == 1);
}

TEST_CASE("[M26] a step's latency is the mean over a ring's hops, the transport's between nodes") {
  plan::NetworkTerms terms;
  terms.hop_latency = 8_us;
  terms.node_hop_latency = 1_us;
  const auto plan = plan_of(node_cluster(4, 1), 8, {call(all_gather, 1_GiB, 0, terms)});
  // 2 of 8 hops between nodes: (2 x 8 + 6 x 1) / 8 us in each of 7 steps.
  REQUIRE(plan.collectives[0].phases.at(0).latency.si() == Approx(7 * 2.75e-6).epsilon(1e-15));
}

TEST_CASE("[M27] a call that reaches a share of the line rate occupies the line for longer") {
  plan::NetworkTerms terms;
  terms.efficiency = 0.8;
  terms.node_efficiency = 0.5;
  terms.transport_cap = 20_GBps;
  const auto plan = plan_of(node_cluster(2, 1), 4, {call(all_gather, 1_GiB, 0, terms)});
  const auto loads = loads_of(plan, plan.collectives[0].phases.at(0));
  REQUIRE(loads ==
          std::map<std::string, double>{{"NIC", 1.25}, {"NIC transport", 1.0}, {"node link", 2.0}});
}

TEST_CASE("all links of a flat ring are one resource, however many ranks") {
  const int gpus = GENERATE(2, 64, 65536);
  REQUIRE(plan_of(flat_cluster(), gpus, {call(all_reduce, 1_GiB)}).resources.size() == 1);
}

TEST_CASE("links that differ in one collective's flows are apart") {
  // Ring 0 stays in rack 0; ring 1 alternates. NICs of rack 0 carry both, those of rack 1 one.
  const auto fabric = topology::build_fabric(tree_cluster(2, 1), 4);
  const std::vector<plan::GroupSet> groups = {plan::Group{{0}, {1}},
                                              plan::Group{{0}, {2}, {1}, {3}}};
  const auto plan =
      plan::plan_collectives(fabric, groups, {call(all_reduce, 1_B, 0), call(all_reduce, 1_B, 1)});
  REQUIRE(plan.resources.size() == 3);  // two classes of NICs, one of trunks
  REQUIRE(plan.collectives[0].phases.at(0).loads.size() == 1);
  REQUIRE(plan.collectives[1].phases.at(0).loads.size() == 3);
}

TEST_CASE("calls of one group share its classes") {
  std::vector<plan::CollectiveCall> calls(100, call(all_reduce, 1_MiB));
  REQUIRE(plan_of(tree_cluster(4, 2), 64, calls).resources.size() == 2);  // NICs, trunks
}

TEST_CASE("ring c leaves every node through its NIC c") {
  const auto fabric = topology::build_fabric(node_cluster(4, 2), 2);
  const auto rings = plan::rings_of(fabric, plan::consecutive_gpus(8));
  REQUIRE(rings.size() == 2);
  REQUIRE(numbers(rings[0]) == std::vector<std::uint32_t>{2, 3, 0, 1, 6, 7, 4, 5});
  REQUIRE(numbers(rings[1]) == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("a group has as many rings as its poorest node has NICs in use") {
  const auto fabric = topology::build_fabric(node_cluster(4, 4), 2);
  REQUIRE(plan::rings_of(fabric, plan::consecutive_gpus(8)).size() == 4);
  REQUIRE(plan::rings_of(fabric, {{0}, {1}, {2}, {3}, {4}, {5}}).size() == 2);
  REQUIRE(plan::rings_of(fabric, {{0}, {4}}).size() == 1);
  REQUIRE(plan::rings_of(fabric, {{0}, {1}, {2}}).size() == 1);
}

TEST_CASE("the fullest trunk of a ring in any order carries as many flows as paths cross it") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const auto cluster = tree_cluster(1 + static_cast<int>(random.below(4)), 1);
    const int nodes = 2 + static_cast<int>(random.below(12));
    const auto fabric = topology::build_fabric(cluster, nodes);
    plan::Group ring = plan::consecutive_gpus(nodes);
    shuffle(ring, random);
    std::map<std::uint32_t, int> trunk_flows;
    int most = 0;
    for (std::size_t i = 0; i < ring.size(); ++i)
      for (const topology::LinkId link : fabric.path(ring[i], ring[(i + 1) % ring.size()]))
        if (fabric.link(link).kind == topology::LinkKind::trunk)
          most = std::max(most, ++trunk_flows[link.value]);
    const auto plan = plan::plan_collectives(fabric, {ring}, {call(all_reduce, 1_B)});
    double most_planned = 0;
    for (const graph::Load& load : plan.collectives[0].phases.at(0).loads)
      if (plan.resources[index(load.resource)].name == "rack trunk")
        most_planned = std::max(most_planned, load.flows);
    REQUIRE(most_planned == most);
  }
}

TEST_CASE("a group of one has no phases and loads nothing") {
  const auto plan = plan_of(flat_cluster(), 1, {call(all_reduce, 1_GiB)});
  REQUIRE(plan.collectives[0].phases.empty());
  REQUIRE(plan.resources.empty());
}

TEST_CASE("[M140] latency inside a ring's laps hides behind the bytes of its slowest hop") {
  // One NIC of 50 GB/s for four GPUs: a hop between nodes takes six times as long as one inside,
  // and its bytes take longer than the mean hop with 5 us: only the last latency is left.
  const auto latency = [](Bytes size) {
    const auto plan = plan_of(node_cluster(4, 1), 8, {call(all_gather, size)});
    return plan.collectives[0].phases.at(0).latency.si();
  };
  REQUIRE(latency(1_GiB) == Approx(5e-6).epsilon(1e-6));  // rounding of milliseconds
  // One byte takes no time: 2 of 8 hops in each of 7 steps.
  REQUIRE(latency(1_B) == Approx(7 * 1.25e-6).epsilon(1e-4));
}

TEST_CASE("what rings cannot do goes pairwise, and rings do not do it when told to") {
  const auto plan = plan_of(flat_cluster(), 4, {call(all_to_all, 1_KiB), call(send_recv, 1_KiB)});
  REQUIRE(plan.collectives[0].algorithm == "pairwise");
  REQUIRE(plan.collectives[1].algorithm == "pairwise");
  plan::CollectiveCall forced = call(all_to_all, 1_KiB);
  forced.algorithm = graph::Algorithm::ring;
  REQUIRE_THROWS_AS(plan_of(flat_cluster(), 4, {forced}), InputError);
}
