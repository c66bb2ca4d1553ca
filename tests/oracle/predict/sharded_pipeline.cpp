// SPDX-License-Identifier: Apache-2.0
// Sharded gradients and parameters inside the stages of a pipeline: what is sent, and what is held.
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/plan/memory.hpp"
#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::test;
using spec::Sharding;

namespace {

constexpr int kMicroBatches = 6;

/// 8 blocks on two stages of four ranks each.
spec::Scenario piped(Sharding sharding) {
  spec::Scenario s = scenario_of(llama({8, 512, 8, 8, 1024}), 8);
  s.parallelism.pp = 2;
  s.strategy.sharding = sharding;
  s.training.global_batch = 4 * kMicroBatches;
  return s;
}

/// Calls of that name that a stage makes in a step.
int calls_of(const Prediction& prediction, std::uint32_t stage, std::string_view name) {
  return static_cast<int>(
      std::ranges::count_if(prediction.graph.collectives, [&](const graph::Collective& call) {
        return call.name == name && call.members.front() == graph::RankClassId{stage};
      }));
}

plan::MemoryNeed memory_of(const spec::Scenario& s, int stage) {
  const auto work = workload::workload_of(s.model, s.training, s.parallelism);
  return plan::stage_memory(s, work, round_profile(), stage);
}

}  // namespace

TEST_CASE("[M243] [M244] every micro-batch of a stage gathers its layers and scatters gradients") {
  // Four blocks and the embedding, or four blocks and the head.
  constexpr int kLayers = 5;
  const Prediction fsdp = prediction_of(piped(Sharding::fsdp), round_profile());
  for (const std::uint32_t stage : {0u, 1u}) {
    CHECK(calls_of(fsdp, stage, "gradient reduce-scatter") == kMicroBatches * kLayers);
    // One gather less where a backward pass begins with the layer that ran last.
    const int gathers = calls_of(fsdp, stage, "parameter all-gather");
    CHECK(gathers >= kMicroBatches * (2 * kLayers - 1));
    CHECK(gathers < kMicroBatches * 2 * kLayers);
  }
  // On the last stage every backward pass follows the forward pass of its micro-batch.
  CHECK(calls_of(fsdp, 1, "parameter all-gather") == kMicroBatches * (2 * kLayers - 1));

  spec::Scenario whole = piped(Sharding::fsdp);
  whole.strategy.reshard_after_forward = false;
  const Prediction kept = prediction_of(whole, round_profile());
  CHECK(calls_of(kept, 0, "parameter all-gather") == kLayers);
  CHECK(calls_of(kept, 1, "parameter all-gather") == kLayers);
}

TEST_CASE("ZeRO-2 in a pipeline scatters a stage's gradients with every micro-batch") {
  const Prediction zero1 = prediction_of(piped(Sharding::zero1), round_profile());
  const Prediction zero2 = prediction_of(piped(Sharding::zero2), round_profile());
  for (const std::uint32_t stage : {0u, 1u}) {
    CHECK(calls_of(zero1, stage, "gradient reduce-scatter") == 1);
    CHECK(calls_of(zero2, stage, "gradient reduce-scatter") == kMicroBatches);
  }
  CHECK(run_of(zero2).step_time > run_of(zero1).step_time);
}

TEST_CASE("[M245] a stage of a pipeline holds its share of its own state") {
  const spec::Scenario fsdp = piped(Sharding::fsdp), zero3 = piped(Sharding::zero3);
  for (const int stage : {0, 1}) {
    const double n = memory_of(piped(Sharding::none), stage).parameters.si() / 2;  // bf16
    CHECK(memory_of(zero3, stage).parameters.si() == Approx(2 * n / 4).epsilon(1e-12));
    // Master weights and the one moment of AdamS.
    CHECK(memory_of(fsdp, stage).optimizer.si() == Approx(8 * n / 4).epsilon(1e-12));
    CHECK(memory_of(fsdp, stage).gradients.si() == Approx(4 * n / 4).epsilon(1e-12));
    CHECK(memory_of(fsdp, stage).activations ==
          memory_of(piped(Sharding::zero1), stage).activations);
  }
}

TEST_CASE("on a free network sharding in a pipeline costs the copies [M456] of its gradients") {
  cost::Profile profile = round_profile();
  profile.numbers.at("network.hop_latency_s").value = 0;
  profile.numbers.at("network.scalar_latency_s").value = 0;
  const auto step = [&](Sharding sharding) {
    spec::Scenario s = piped(sharding);
    s.cluster.nic_bandwidth = BytesPerSecond(1e18);
    s.cluster.fabric.latency = Seconds(0);
    return step_of(s, profile);
  };
  // Behind the backward passes of a stage and the one in the drain, 18 bytes per parameter; the
  // drain does not wait for the copies of the block that ends it. Three of four gradients less are
  // scaled and zeroed, 12 bytes each.
  const spec::Scenario whole = piped(Sharding::none);
  const double parameters = memory_of(whole, 1).parameters.si() / 2;
  const auto work = workload::workload_of(whole.model, whole.training, whole.parallelism);
  const auto block = static_cast<double>(workload::parameters_of(work.layers.at(1)));
  const double bytes = 18 * ((kMicroBatches + 1) * parameters - block) - 12 * parameters * 3 / 4;
  const double added = bytes / profile.numbers.at("hbm.bandwidth_Bps").value;
  CAPTURE(step(Sharding::fsdp) - step(Sharding::zero1), added);
  CHECK(step(Sharding::fsdp) == Approx(step(Sharding::zero1) + added).epsilon(1e-6));
  CHECK(step(Sharding::zero2) == Approx(step(Sharding::zero1)).epsilon(0.02));
}
