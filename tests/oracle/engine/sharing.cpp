// SPDX-License-Identifier: Apache-2.0
// Concurrent collectives on shared links, against max-min sharing solved by hand and against
// SimGrid's own simulation of every chunk.
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/engine/chunk.hpp"
#include "tests/support/network.hpp"

using namespace scapesim;
using namespace scapesim::test;
using enum graph::CollectiveKind;

namespace {

spec::Cluster without_latency(spec::Cluster cluster) {
  cluster.fabric.latency = 0_s;
  return cluster;
}

Approx exactly(double expected) { return Approx(expected).epsilon(1e-13).margin(0); }

}  // namespace

TEST_CASE("[M22] two rings on a 4:1 tapered tree share trunks max-min fairly, solved by hand") {
  // 4 racks of 4 nodes, 50 GB/s NICs, trunks of 4 x 50 / 4 = 50 GB/s. The contiguous ring crosses a
  // trunk once, the strided one with all its 4 flows; a NIC carries one flow of each.
  //   trunk: c + 4 s <= 50, NIC: c + s <= 50  =>  c = s = 10 GB/s, the trunk is full.
  // An all-reduce of 15 GB over 16 ranks moves 2 x 15/16 x 15 = 28.125 GB per flow. Both end at
  // 2.8125 s. With half of the bytes the contiguous ring ends at 1.40625 s, and the strided one,
  // with 14.0625 GB left, goes on at 12.5 GB/s for 1.125 s.
  const auto fabric = topology::build_fabric(without_latency(tree_cluster(4, 4)), 16);
  const std::vector<plan::GroupSet> groups = {strided_ring(16, 1), strided_ring(16, 4)};
  const auto same =
      fluid_ends(fabric, groups, {call(all_reduce, 15_GB, 0), call(all_reduce, 15_GB, 1)});
  REQUIRE(same[0].si() == exactly(2.8125));
  REQUIRE(same[1].si() == exactly(2.8125));
  const auto half =
      fluid_ends(fabric, groups, {call(all_reduce, 7.5_GB, 0), call(all_reduce, 15_GB, 1)});
  REQUIRE(half[0].si() == exactly(1.40625));
  REQUIRE(half[1].si() == exactly(1.40625 + 1.125));
}

TEST_CASE("64 hosts below trunks of 4:1, a contiguous and a strided ring, solved by hand") {
  // 4 racks of 16 hosts, trunks of 16 x 50 / 4 = 200 GB/s. The contiguous ring leaves every rack
  // once, the one of stride 16 with all its 16 flows:
  //   trunk: c + 16 s <= 200, NIC: c + s <= 50  =>  c = s = 200/17 GB/s, the trunk is full.
  // An all-reduce of 64 GB moves 2 x 63/64 x 64 = 126 GB per flow: 126 x 17/200 = 10.71 s. With
  // half of the bytes the contiguous ring ends at 5.355 s; the strided one, with 63 GB left, goes
  // on at 200/16 = 12.5 GB/s for 5.04 s.
  const auto fabric = topology::build_fabric(without_latency(tree_cluster(16, 4)), 64);
  const std::vector<plan::GroupSet> groups = {strided_ring(64, 1), strided_ring(64, 16)};
  const auto same =
      fluid_ends(fabric, groups, {call(all_reduce, 64_GB, 0), call(all_reduce, 64_GB, 1)});
  REQUIRE(same[0].si() == exactly(10.71));
  REQUIRE(same[1].si() == exactly(10.71));
  const auto half =
      fluid_ends(fabric, groups, {call(all_reduce, 32_GB, 0), call(all_reduce, 64_GB, 1)});
  REQUIRE(half[0].si() == exactly(5.355));
  REQUIRE(half[1].si() == exactly(5.355 + 5.04));
}

// Rings drift out of step by their latencies; at 64 MiB the one that crosses few trunks then gets
// up to 6 % more than its share.
TEST_CASE("three rings with latency end within 2 % of their chunks at 256 MiB, 6 % at 64 MiB") {
  const double taper = GENERATE(1, 2, 4);
  const auto fabric = topology::build_fabric(tree_cluster(4, taper), 16);
  const std::vector<plan::GroupSet> groups = {strided_ring(16, 1), strided_ring(16, 4),
                                              strided_ring(16, 8)};
  const Bytes size = GENERATE(64_MiB, 256_MiB);
  const std::vector calls = {call(all_reduce, size, 0), call(all_reduce, size, 1),
                             call(all_reduce, size, 2)};
  const auto fluid = fluid_ends(fabric, groups, calls);
  const auto chunks = engine::chunk_level_ends(fabric, groups, calls);
  for (const std::size_t i : {0, 1, 2}) {
    INFO("taper " << taper << ", " << size.si() << " B, ring " << i);
    CHECK(std::abs(fluid[i] / chunks[i] - 1) < (size < 256_MiB ? 0.06 : 0.02));
  }
}

TEST_CASE("the contiguous ring takes what a trunk bottleneck of the other leaves on the NICs") {
  // 2 racks of 4, taper 2: trunks of 100 GB/s. Ring 0 stays in rack 0; ring 1 alternates racks, so
  // 4 of its flows fill a trunk at 25 GB/s, and NICs have 25 GB/s left for ring 0: c + s <= 50,
  // 4 s <= 100 => s = 25, c = 25 both limits at once. With a taper of 4: s = 12.5, c = 37.5.
  const auto ends = [](double taper) {
    const auto fabric = topology::build_fabric(without_latency(tree_cluster(4, taper)), 8);
    const plan::Group alternating = {{0}, {4}, {1}, {5}, {2}, {6}, {3}, {7}};
    return fluid_ends(fabric, {plan::consecutive_gpus(4), alternating},
                      {call(all_gather, 4_GB, 0), call(all_gather, 8_GB, 1)});
  };
  REQUIRE(ends(2)[0].si() == exactly(3.0 / 25));  // 3 GB per flow
  REQUIRE(ends(2)[1].si() == exactly(7.0 / 25));  // 7 GB per flow
  REQUIRE(ends(4)[0].si() == exactly(3.0 / 37.5));
  REQUIRE(ends(4)[1].si() == exactly(7.0 / 12.5));
}

TEST_CASE("concurrent calls share one transport cap per NIC") {
  plan::NetworkTerms terms;
  terms.transport_cap = 4_GBps;
  terms.hop_latency = 0_s;
  const auto fabric = topology::build_fabric(flat_cluster(), 4);
  const auto ends =
      fluid_ends(fabric, {plan::consecutive_gpus(4)},
                 {call(all_gather, 4_GB, 0, terms), call(all_gather, 8_GB, 0, terms)});
  // 3 and 6 GB per flow at 2 GB/s each; then the second one alone, 3 GB at 4 GB/s.
  REQUIRE(ends[0].si() == exactly(1.5));
  REQUIRE(ends[1].si() == exactly(2.25));
}

TEST_CASE("a call of lower efficiency takes the line for longer, not more than its share") {
  plan::NetworkTerms half;
  half.efficiency = 0.5;
  plan::NetworkTerms full;
  half.hop_latency = full.hop_latency = 0_s;
  const auto fabric = topology::build_fabric(flat_cluster(), 4);
  const auto ends = fluid_ends(fabric, {plan::consecutive_gpus(4)},
                               {call(all_gather, 4_GB, 0, half), call(all_gather, 4_GB, 0, full)});
  // Equal rates r: r / 0.5 + r = 50 GB/s.
  REQUIRE(ends[0].si() == exactly(3.0 / (50.0 / 3)));
  REQUIRE(ends[1].si() == exactly(3.0 / (50.0 / 3)));
}

// SimGrid keeps 1e-9 s of time; chunks are whole bytes here, so only that is lost.
TEST_CASE("one ring simulated chunk by chunk ends when the fluid ring does") {
  const std::uint32_t n = GENERATE(2, 4, 8, 16);
  const std::uint32_t stride = GENERATE(1, 4);
  const auto kind = GENERATE(all_reduce, reduce_scatter, all_gather);
  const bool has_latency = GENERATE(false, true);
  const auto cluster = tree_cluster(4, 2);
  const auto fabric =
      topology::build_fabric(has_latency ? cluster : without_latency(cluster), static_cast<int>(n));
  const std::vector<plan::GroupSet> groups = {strided_ring(n, stride)};
  const std::vector calls = {call(kind, 16_GB)};
  const auto fluid = fluid_ends(fabric, groups, calls);
  const auto chunks = engine::chunk_level_ends(fabric, groups, calls);
  REQUIRE(fluid[0].si() == Approx(chunks[0].si()).epsilon(1e-9).margin(0));
}

TEST_CASE("rings of nodes with several NICs, chunk by chunk, end when the fluid ones do") {
  const auto [gpus, nics] = GENERATE(table<int, int>({{2, 1}, {2, 2}, {4, 2}, {4, 4}}));
  const auto fabric = topology::build_fabric(without_latency(node_cluster(gpus, nics)), 4);
  const std::vector<plan::GroupSet> groups = {plan::consecutive_gpus(4 * gpus)};
  const std::vector calls = {call(all_reduce, 16_GB)};
  const auto fluid = fluid_ends(fabric, groups, calls);
  const auto chunks = engine::chunk_level_ends(fabric, groups, calls);
  REQUIRE(fluid[0].si() == Approx(chunks[0].si()).epsilon(1e-9).margin(0));
}

TEST_CASE("two rings on shared trunks, chunk by chunk, end when the fluid ones do") {
  const double taper = GENERATE(1, 2, 4);
  const auto other = GENERATE(all_reduce, all_gather);
  const auto fabric = topology::build_fabric(without_latency(tree_cluster(4, taper)), 16);
  const std::vector<plan::GroupSet> groups = {strided_ring(16, 1), strided_ring(16, 4)};
  const std::vector calls = {call(all_reduce, 16_GB, 0), call(other, 16_GB, 1)};
  const auto fluid = fluid_ends(fabric, groups, calls);
  const auto chunks = engine::chunk_level_ends(fabric, groups, calls);
  REQUIRE(fluid[0].si() == Approx(chunks[0].si()).epsilon(1e-9).margin(0));
  REQUIRE(fluid[1].si() == Approx(chunks[1].si()).epsilon(1e-9).margin(0));
}

TEST_CASE("[M26, M140] rings over nodes take as long as chunk by chunk, whatever dominates") {
  const auto [gpus, nics] = GENERATE(table<int, int>({{2, 1}, {4, 1}, {4, 2}, {4, 4}, {8, 8}}));
  const auto fabric = topology::build_fabric(node_cluster(gpus, nics), 4);
  const std::vector<plan::GroupSet> groups = {plan::consecutive_gpus(4 * gpus)};
  const auto difference = [&](Bytes size) {
    const std::vector calls = {call(all_reduce, size)};
    const Seconds fluid = fluid_ends(fabric, groups, calls)[0];
    return std::abs(fluid / engine::chunk_level_ends(fabric, groups, calls)[0] - 1);
  };
  // A chunk that travels pays the mean latency to within the last lap, of two; one that waits at
  // the slow hop pays none. Between the two, links are shared by fewer flows than in steady state.
  for (const Bytes size : {100_KB, 1_MB, 3_MB, 10_MB, 30_MB, 100_MB, 1_GB}) {
    INFO(gpus << " GPUs, " << nics << " NICs, " << size.si() << " B");
    CHECK(difference(size) < (size < 1_GB ? 0.1 : 0.001));
  }
}
