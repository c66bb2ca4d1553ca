// SPDX-License-Identifier: Apache-2.0
// [M346] Adapters that reach GPU memory through the host share its link and memory with copies.
#include <catch2/catch.hpp>

#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

/// Dense on 8 nodes whose host link and memory are given.
spec::Scenario staged(double link, double memory) {
  spec::Scenario s = scenario_of(llama_500m(), 8);
  s.cluster.nic_path = spec::NicPath::host;
  s.cluster.host_link.bandwidth = BytesPerSecond(link);
  s.cluster.host_memory_bandwidth = BytesPerSecond(memory);
  return s;
}

double reduce_time(const spec::Scenario& s) {
  return run_of(prediction_of(s, round_profile())).communication.at(0).time.si();
}

/// Bytes through an adapter.
double through_nic(const spec::Scenario& s) {
  const double p = s.cluster.gpus;
  const double n = static_cast<double>(workload::workload_of(s.model, s.training).parameters);
  return 8 * n * (p - 1) / p;
}

}  // namespace

TEST_CASE("[M346] staged bytes cross the host link once each way and host memory four times") {
  // The adapter of 50 GB/s is the narrowest.
  const spec::Scenario roomy = staged(1e12, 1e12);
  CHECK(reduce_time(roomy) == Approx(through_nic(roomy) / 50e9));
  // A PCIe 3 x16 link is narrower than a 400G adapter.
  const spec::Scenario narrow_link = staged(16e9, 1e12);
  CHECK(reduce_time(narrow_link) == Approx(through_nic(narrow_link) / 16e9));
  const spec::Scenario narrow_memory = staged(1e12, 100e9);
  CHECK(reduce_time(narrow_memory) == Approx(through_nic(narrow_memory) / 25e9));
}

TEST_CASE("[M346] GPUs of a node share its adapters and its memory") {
  spec::Scenario s = staged(1e12, 100e9);
  s.cluster.gpus_per_node = 2;
  s.cluster.nodes = 4;
  s.cluster.node_link_bandwidth = BytesPerSecond(1e12);
  // Both GPUs' bytes go through one adapter and one memory.
  CHECK(reduce_time(s) == Approx(through_nic(s) / 25e9).epsilon(1e-3));
}

TEST_CASE("[M346] with GPUDirect the host does not matter") {
  spec::Scenario s = staged(16e9, 10e9);
  s.cluster.nic_path = spec::NicPath::gpudirect;
  CHECK(reduce_time(s) == Approx(through_nic(s) / 50e9));
}

TEST_CASE("[M346] an offloaded residual and staged adapters slow each other") {
  spec::Scenario s = scape_scenario(llama_500m(), 8, 0.1);
  s.strategy.offload.residual = true;
  s.training.optimizer = spec::Optimizer::adams;
  s.cluster.host_link.bandwidth = BytesPerSecond(64e9);
  s.cluster.host_memory_bandwidth = BytesPerSecond(150e9);
  const double direct = step_of(s, round_profile());
  s.cluster.nic_path = spec::NicPath::host;
  const double both = step_of(s, round_profile());
  s.strategy.offload.residual = false;
  const double alone = step_of(s, round_profile());
  CHECK(both >= direct);
  CHECK(both >= alone);
}
