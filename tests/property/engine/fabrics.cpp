// SPDX-License-Identifier: Apache-2.0
// Ring collectives on every kind of fabric.
#include "tests/support/fabrics.hpp"

#include <catch2/catch.hpp>

#include "sim/cost/collective_forms.hpp"
#include "sim/engine/chunk.hpp"
#include "sim/engine/replay.hpp"
#include "tests/support/max_flow.hpp"
#include "tests/support/network.hpp"

using namespace scapesim;
using namespace scapesim::test;
using enum graph::CollectiveKind;

namespace {

Seconds fluid_time(const topology::Fabric& fabric, const plan::Group& group,
                   const plan::CollectiveCall& call) {
  return engine::replay(only_calls(fabric, {group}, {call}), {.driver = engine::Driver::standalone})
      .step_end[0];
}

/// Rate of one flow when all hops of a ring flow at once: the fullest link decides.
BytesPerSecond bottleneck(const topology::Fabric& fabric, const plan::Group& ring) {
  std::vector<int> flows(static_cast<std::size_t>(fabric.links()));
  for (std::size_t i = 0; i < ring.size(); ++i)
    for (const topology::LinkId link : fabric.path(ring[i], ring[(i + 1) % ring.size()]))
      ++flows[index(link)];
  BytesPerSecond rate(1e30);
  for (std::uint32_t link = 0; link < flows.size(); ++link)
    if (flows[link] > 0) rate = std::min(rate, fabric.link({link}).capacity / flows[link]);
  return rate;
}

std::vector<plan::Group> rings_on(const NamedCluster& row) {
  const auto gpus = static_cast<std::uint32_t>(row.nodes * row.cluster.gpus_per_node);
  return {strided_ring(gpus, static_cast<std::uint32_t>(row.cluster.gpus_per_node)),
          plan::consecutive_gpus(static_cast<int>(gpus))};
}

}  // namespace

TEST_CASE("[M20] an all-reduce alone takes the closed form at its fullest link, on every fabric") {
  for (const NamedCluster& row : small_clusters()) {
    if (row.cluster.gpus_per_node > 1) continue;  // those run several rings, of unequal hops
    const auto fabric = topology::build_fabric(row.cluster, row.nodes);
    for (const std::uint32_t stride : {1U, 3U}) {
      INFO(row.name << ", stride " << stride);
      const auto ring = strided_ring(static_cast<std::uint32_t>(row.nodes), stride);
      const BytesPerSecond rate = bottleneck(fabric, ring);
      const Seconds bytes = cost::ring_all_reduce(1_GiB, {row.nodes, 0_s, rate});
      const Seconds latency = row.cluster.fabric.latency;
      const Seconds most = cost::ring_all_reduce(1_GiB, {row.nodes, latency, rate});
      const Seconds time = fluid_time(fabric, ring, call(all_reduce, 1_GiB));
      // Where hops differ, latency of the faster ones hides [M140]. Rounding of sums.
      CHECK(time <= (1 + 1e-12) * most);
      CHECK(time >= (1 - 1e-12) * (bytes + latency));
      spec::Cluster ideal = row.cluster;
      ideal.fabric.latency = 0_s;
      const auto without = topology::build_fabric(ideal, row.nodes);
      CHECK(fluid_time(without, ring, call(all_reduce, 1_GiB)).si() ==
            Approx(bytes.si()).epsilon(1e-12).margin(0));
    }
  }
}

TEST_CASE("no all-reduce is faster than the narrowest cut and its nodes' adapters allow") {
  const BytesPerSecond unit(5e9);
  for (const NamedCluster& row : small_clusters()) {
    const auto fabric = topology::build_fabric(row.cluster, row.nodes);
    std::vector<bool> in_a(static_cast<std::size_t>(fabric.gpus()));
    std::fill_n(in_a.begin(), row.nodes / 2 * row.cluster.gpus_per_node, true);
    const BytesPerSecond cut = static_cast<double>(max_flow(fabric, in_a, unit)) * unit;
    const int shared = row.cluster.nvlink_domain_nodes;  // nodes that are one to the network
    const int nodes = row.nodes / shared;
    const BytesPerSecond node = shared * row.cluster.nics_per_node * row.cluster.nic_bandwidth;
    for (const plan::Group& ring : rings_on(row)) {
      INFO(row.name);
      const Seconds time = fluid_time(fabric, ring, call(all_reduce, 1_GiB));
      // Either half has to learn the other's sums; a node sends all but its own part, twice.
      CHECK(time >= 1_GiB / fabric.bisection());
      CHECK(time >= 1_GiB / cut);
      CHECK(time >= 2 * (nodes - 1) * (1_GiB / nodes) / node);
    }
  }
}

// SimGrid keeps 1e-9 s of time; sizes are such that only that is lost.
TEST_CASE("a ring simulated chunk by chunk ends when the fluid one does, on every fabric") {
  for (NamedCluster row : small_clusters()) {
    if (row.cluster.gpus_per_node > 1) continue;
    INFO(row.name);
    row.cluster.fabric.latency = 0_s;
    const auto fabric = topology::build_fabric(row.cluster, row.nodes);
    const auto ring = plan::consecutive_gpus(row.nodes);
    const plan::CollectiveCall reduce = call(all_reduce, row.nodes * 1_GB);
    const Seconds chunks = engine::chunk_level_ends(fabric, {ring}, {reduce})[0];
    CHECK(fluid_time(fabric, ring, reduce).si() == Approx(chunks.si()).epsilon(1e-9).margin(0));
  }
}
