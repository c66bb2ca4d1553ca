// SPDX-License-Identifier: Apache-2.0
// [M177] A host that launches slowly bounds every layer: kernels times launches.
#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "sim/workload/workload.hpp"
#include "tests/support/models.hpp"
#include "tests/support/profile.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

int launches_in(const std::vector<workload::Operation>& operations) {
  int count = 0;
  for (const workload::Operation& operation : operations) count += workload::launches_of(operation);
  return count;
}

}  // namespace

TEST_CASE("[M177] a launch each: GEMMs by group, attention once, passes as they say") {
  CHECK(workload::launches_of({"experts", cost::Gemm{.m = 1, .n = 1, .k = 1, .groups = 8}}) == 8);
  CHECK(workload::launches_of({"attention", cost::Attention{}}) == 1);
  CHECK(workload::launches_of({"pass", cost::Pass{.traffic = Bytes(1), .launches = 3}}) == 3);
  CHECK(workload::launches_of({"exchange", workload::Exchange{}}) == 0);
}

TEST_CASE("[M177] when launches are slow, a step computes for launches x launch time") {
  cost::Profile profile = round_profile();
  spec::Scenario scenario;
  scenario.model = gpt_345m();
  scenario.training = training_of(1, 1024);
  scenario.training.global_batch = 4;
  scenario.cluster.gpu = round_gpu();
  scenario.cluster.gpus = scenario.cluster.nodes = 1;
  scenario.cluster.nic_bandwidth = BytesPerSecond(1e9);  // a fabric needs one
  const auto compute = [&] {
    const Prediction prediction =
        predict(scenario, profile, {.driver = engine::Driver::standalone, .interval_draws = 0});
    return std::get<result::Run>(prediction.outcome).breakdown.compute;
  };
  const Seconds before = compute();
  profile.numbers["host.launch_s"] = exactly(0, cost::Factor::host);
  CHECK(compute() == before);
  set(profile, "host.launch_s", 1.0);
  const workload::Workload work = workload::workload_of(scenario.model, scenario.training);
  int launches = 0;
  for (const workload::Layer& layer : work.layers)
    launches += launches_in(layer.forward) + launches_in(layer.backward);
  const int micro_batches = 4;
  CHECK(compute().si() == Approx(micro_batches * launches * 1.0).epsilon(1e-9));
}
