// SPDX-License-Identifier: Apache-2.0
// Collectives whose last node is not full.
#include <catch2/catch.hpp>
#include <set>

#include "sim/predict/predict.hpp"
#include "topologies/placement.hpp"

using namespace scapesim;
using namespace scapesim::literals;

namespace {

spec::Cluster nodes_of_eight(int gpus) {
  spec::Cluster cluster;
  cluster.nodes = 4;
  cluster.gpus = gpus;
  cluster.gpus_per_node = cluster.nics_per_node = 8;
  cluster.nic_bandwidth = 50_GBps;
  cluster.node_link_bandwidth = 450_GBps;
  return cluster;
}

}  // namespace

TEST_CASE("a job of 9 GPUs on nodes of 8 has one in the second node, whatever the placement") {
  for (const auto& row : names<spec::Placement>()) {
    spec::Cluster cluster = nodes_of_eight(9);
    cluster.placement = row.value;
    INFO(row.name);
    const std::vector<topology::GpuId> gpus = topology::placement(cluster);
    REQUIRE(gpus.size() == 9);
    std::set<std::uint32_t> taken;
    int in_first = 0;
    for (const topology::GpuId gpu : gpus) {
      taken.insert(gpu.value);
      in_first += gpu.value < 8;
    }
    CHECK(taken.size() == 9);
    CHECK((in_first == 8 || in_first == 1));
  }
}

TEST_CASE("the only GPU of the last node carries a ring over its one NIC") {
  // Without latency a ring of n ranks on one rail moves 2 (n-1)/n of the data over that NIC.
  const auto time = [](int gpus) {
    return predict_collective(graph::CollectiveKind::all_reduce, 1_GB, nodes_of_eight(gpus),
                              nullptr)
        .time.si();
  };
  CHECK(time(9) == Approx(2 * 8.0 / 9 * 1e9 / 50e9).epsilon(1e-12));
  CHECK(time(17) == Approx(2 * 16.0 / 17 * 1e9 / 50e9).epsilon(1e-12));
  // Full nodes have eight rails.
  CHECK(time(16) == Approx(2 * 15.0 / 16 * 1e9 / 400e9).epsilon(1e-12));
  CHECK(time(12) == Approx(2 * 11.0 / 12 * 1e9 / 200e9).epsilon(1e-12));
}
