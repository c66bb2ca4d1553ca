// SPDX-License-Identifier: Apache-2.0
// Ring collectives on fabrics, planned and replayed, against their closed forms.
#include <catch2/catch.hpp>

#include "sim/cost/collective_forms.hpp"
#include "sim/engine/replay.hpp"
#include "tests/support/network.hpp"

using namespace scapesim;
using namespace scapesim::test;
using enum graph::CollectiveKind;

namespace {

Seconds simulated(const spec::Cluster& cluster, int gpus, const plan::CollectiveCall& call) {
  const auto fabric = topology::build_fabric(cluster, gpus / cluster.gpus_per_node);
  const auto graph = only_calls(fabric, {plan::consecutive_gpus(gpus)}, {call});
  return engine::replay(graph, {.driver = engine::Driver::standalone}).step_end[0];
}

/// Sums of doubles in another order: some units in the last place.
Approx exactly(Seconds expected) { return Approx(expected.si()).epsilon(1e-13).margin(0); }

}  // namespace

TEST_CASE("ring collectives on a switch equal their closed forms") {
  const int n = GENERATE(2, 3, 4, 8, 16, 37, 64);
  const Bytes size = GENERATE(1_B, 8_KiB, 1_GiB);
  const cost::RingTerms ring{n, 5_us, 50_GBps};
  REQUIRE(simulated(flat_cluster(), n, call(all_reduce, size)).si() ==
          exactly(cost::ring_all_reduce(size, ring)));
  REQUIRE(simulated(flat_cluster(), n, call(reduce_scatter, size)).si() ==
          exactly(cost::ring_reduce_scatter(size, ring)));
  REQUIRE(simulated(flat_cluster(), n, call(all_gather, size)).si() ==
          exactly(cost::ring_all_gather(size, ring)));
  REQUIRE(simulated(flat_cluster(), n, call(broadcast, size)).si() ==
          exactly(cost::ring_broadcast(size, ring)));
}

TEST_CASE("a non-blocking tree is as fast as a switch for rings in any order") {
  const int n = GENERATE(4, 6, 8, 16, 64);
  const std::uint32_t stride = GENERATE(1, 2, 4);
  const auto fabric = topology::build_fabric(tree_cluster(4, 1), n);
  const auto ring = strided_ring(static_cast<std::uint32_t>(n), stride);
  const auto kind = GENERATE(all_reduce, reduce_scatter, all_gather);
  const auto graph = only_calls(fabric, {ring}, {call(kind, 64_MiB)});
  const auto timeline = engine::replay(graph, {.driver = engine::Driver::standalone});
  const cost::RingTerms terms{n, 5_us, 50_GBps};
  const Seconds expected = kind == all_reduce ? cost::ring_all_reduce(64_MiB, terms)
                                              : cost::ring_all_gather(64_MiB, terms);
  REQUIRE(timeline.step_end[0].si() == exactly(expected));
}

TEST_CASE("a taper of 2 halves a ring whose every hop leaves its rack, and no other") {
  const auto fabric = topology::build_fabric(tree_cluster(4, 2), 16);
  const auto time = [&](std::uint32_t stride) {
    const auto graph = only_calls(fabric, {strided_ring(16, stride)}, {call(all_reduce, 1_GiB)});
    return engine::replay(graph, {.driver = engine::Driver::standalone}).step_end[0];
  };
  REQUIRE(time(1).si() == exactly(cost::ring_all_reduce(1_GiB, {16, 5_us, 50_GBps})));
  REQUIRE(time(4).si() == exactly(cost::ring_all_reduce(1_GiB, {16, 5_us, 25_GBps})));
}

TEST_CASE("a transport cap below the line rate sets the rate, one above changes nothing") {
  const auto capped = [](BytesPerSecond cap) {
    plan::NetworkTerms terms;
    terms.transport_cap = cap;
    terms.efficiency = 0.8;
    terms.hop_latency = 1_ms;
    return simulated(flat_cluster(), 8, call(all_reduce, 1_GiB, 0, terms));
  };
  REQUIRE(capped(3_GBps).si() == exactly(cost::ring_all_reduce(1_GiB, {8, 1_ms, 3_GBps})));
  REQUIRE(capped(45_GBps).si() == exactly(cost::ring_all_reduce(1_GiB, {8, 1_ms, 40_GBps})));
  REQUIRE(capped({}).si() == exactly(cost::ring_all_reduce(1_GiB, {8, 1_ms, 40_GBps})));
}

TEST_CASE("rings of nodes with a NIC per GPU use all NICs") {
  // 4 rings, each with a quarter of the bytes, one of 4 hops leaving the node: 200 GB/s per node.
  // Latency hides behind the NICs' bytes but for the last hop's [M140].
  const Seconds time = simulated(node_cluster(4, 4), 32, call(all_reduce, 1_GiB));
  REQUIRE(time.si() == exactly(cost::ring_all_reduce(1_GiB, {32, 0_s, 200_GBps}) + 5_us));
}

TEST_CASE("rings of nodes with a NIC for two GPUs use all NICs") {
  const Seconds time = simulated(node_cluster(4, 2), 16, call(reduce_scatter, 1_GiB));
  REQUIRE(time.si() == exactly(cost::ring_reduce_scatter(1_GiB, {16, 0_s, 100_GBps}) + 5_us));
}

TEST_CASE("node links limit rings when NICs are faster together") {
  // 8 NICs of 50 GB/s against 300 GB/s: in 7 of 8 rings a GPU sends inside the node.
  const Seconds time = simulated(node_cluster(8, 8), 32, call(all_gather, 1_GiB));
  const BytesPerSecond rate = 300_GBps / (7.0 / 8.0);
  REQUIRE(time.si() == exactly(cost::ring_all_gather(1_GiB, {32, 0_s, rate}) + 5_us));
}

TEST_CASE("inside a node the ring runs at the node link's rate and pays no fabric latency") {
  const Seconds time = simulated(node_cluster(8, 8), 8, call(all_reduce, 1_GiB));
  REQUIRE(time.si() == exactly(cost::ring_all_reduce(1_GiB, {8, 0_s, 300_GBps})));
}

TEST_CASE("a group of one takes no time") {
  REQUIRE(simulated(flat_cluster(), 1, call(all_reduce, 1_GiB)) == 0_s);
}

TEST_CASE("exactly divisible numbers give exactly the closed form, to the last bit") {
  spec::Cluster cluster = flat_cluster();
  cluster.nic_bandwidth = BytesPerSecond(1024);
  cluster.fabric.latency = Seconds(0.125);
  // 2 x 3 steps of 256 B at 1024 B/s after 1/8 s.
  REQUIRE(simulated(cluster, 4, call(all_reduce, Bytes(1024))) == Seconds(6 * (0.125 + 0.25)));
}

namespace {

Seconds on_mesh(int gpus, int nodes, const plan::Group& group, spec::NodeFabric joined) {
  spec::Cluster cluster = node_cluster(gpus, gpus);
  cluster.fabric.latency = 0_s;
  cluster.node_fabric = joined;
  const auto fabric = topology::build_fabric(cluster, nodes);
  const auto graph = only_calls(fabric, {group}, {call(all_reduce, 1_GB)});
  return engine::replay(graph, {.driver = engine::Driver::standalone}).step_end[0];
}

}  // namespace

TEST_CASE("[M193] up to five GPUs with a link per pair run rings as on a switch, two at one link") {
  for (const int gpus : {3, 4, 5}) {
    const plan::Group all = plan::consecutive_gpus(gpus);
    INFO(gpus << " GPUs");
    REQUIRE(on_mesh(gpus, 1, all, spec::NodeFabric::mesh).si() ==
            exactly(on_mesh(gpus, 1, all, spec::NodeFabric::switch_)));
  }
  // 300 GB/s are three links of 100 GB/s; 2 x 1/2 of the data over one of them.
  REQUIRE(on_mesh(4, 1, {{0}, {1}}, spec::NodeFabric::mesh).si() == exactly(1_GB / (100_GBps)));
  // Three of them: every pair's link is in one of the two ways round.
  REQUIRE(on_mesh(4, 1, {{0}, {1}, {3}}, spec::NodeFabric::mesh).si() ==
          exactly(2 * 2.0 / 3 * 1_GB / (200_GBps)));
}

TEST_CASE("rings over quads use all NICs, whatever joins the GPUs of a node") {
  const plan::Group all = plan::consecutive_gpus(16);
  const Seconds expected = 2 * 15.0 / 16 * 1_GB / (200_GBps);
  REQUIRE(on_mesh(4, 4, all, spec::NodeFabric::mesh).si() == exactly(expected));
  REQUIRE(on_mesh(4, 4, all, spec::NodeFabric::switch_).si() == exactly(expected));
}
