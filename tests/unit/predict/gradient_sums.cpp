// SPDX-License-Identifier: Apache-2.0
// [M428] Gradients summed behind every micro-batch, as DDP does without no_sync; [M429] sums over
// tensor-parallel ranks of tensors that none of them splits.
#include <catch2/catch.hpp>

#include "tests/support/prediction.hpp"
#include "tests/support/random_scenario.hpp"

using namespace scapesim;
using namespace scapesim::test;
using spec::GradientSync;

namespace {

constexpr int kMicroBatches = 4;

spec::Scenario accumulating(GradientSync sync) {
  spec::Scenario s = scenario_of(llama_500m(), 8);
  s.training.global_batch = 8 * kMicroBatches;
  s.training.gradient_sync = sync;
  return s;
}

/// Bytes of all calls of a name on one rank.
double bytes_of(const Prediction& prediction, std::string_view name) {
  double sum = 0;
  for (const graph::Operation& operation : prediction.graph.classes.at(0).operations)
    if (operation.name == name) sum += operation.bytes.si();
  return sum;
}

spec::Scenario tensor_parallel(const spec::Model& model) {
  spec::Scenario s = scenario_of(model, 8);
  s.cluster.gpus_per_node = s.cluster.nics_per_node = 8;
  s.cluster.node_link_bandwidth = BytesPerSecond(300e9);
  s.parallelism.tp = 4;
  s.training.global_batch = 2;
  s.parallelism.sequence_parallel = true;
  return s;
}

constexpr std::string_view kUnsplit = "gradient all-reduce of unsplit tensors";

}  // namespace

TEST_CASE("[M428] without no_sync every micro-batch sends all gradients and waits for them") {
  const cost::Profile profile = round_profile();
  const Prediction once = prediction_of(accumulating(GradientSync::step), profile);
  const Prediction each = prediction_of(accumulating(GradientSync::micro_batch), profile);
  const double bytes = bytes_of(once, "gradient all-reduce");
  CHECK(bytes > 0);
  CHECK(bytes_of(each, "gradient all-reduce") == Approx(kMicroBatches * bytes).epsilon(1e-12));
  const double one = run_of(once).communication.at(0).time.si();
  CHECK((run_of(each).step_time - run_of(once).step_time).si() ==
        Approx((kMicroBatches - 1) * one).epsilon(1e-6));
}

TEST_CASE("[M428] buckets hide sums behind every backward pass, and what is left is waited for") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const cost::Profile profile = random_profile(seed);
    spec::Scenario s = accumulating(GradientSync::step);
    s.training.overlap_gradients = true;
    s.training.bucket = Bytes(25e6);
    const double once = step_of(s, profile);
    s.training.gradient_sync = GradientSync::micro_batch;
    const double overlapped = step_of(s, profile);
    CHECK(overlapped >= once * (1 - 1e-9));
    s.training.overlap_gradients = false;
    CHECK(overlapped <= step_of(s, profile) * (1 + 1e-9));
  }
}

TEST_CASE("[M428] with one micro-batch there is nothing to choose") {
  spec::Scenario s = accumulating(GradientSync::step);
  s.training.global_batch = 8;
  const double once = step_of(s, round_profile());
  s.training.gradient_sync = GradientSync::micro_batch;
  CHECK(step_of(s, round_profile()) == Approx(once).epsilon(1e-12));
}

TEST_CASE(
    "[M429] with sequence parallelism norms and biases of rows are summed over tensor ranks") {
  spec::Scenario s = tensor_parallel(llama({4, 256, 4, 4, 1024}));
  const auto sent = [](const spec::Scenario& scenario) {
    return bytes_of(prediction_of(scenario, round_profile()), kUnsplit);
  };
  CHECK(sent(s) == 4 * (2 * 4 + 1) * 256);  // fp32, two norms a layer and the last
  s.model = gpt({4, 256, 4, 1024, 1000});
  // Layer norms have biases; projection and second MLP matrix one each.
  CHECK(sent(s) == 4 * (2 * (2 * 4 + 1) + 2 * 4) * 256);
  s.parallelism.sequence_parallel = false;
  CHECK(sent(s) == 0);
  s.model.qk_norm = spec::QkNorm::head;  // each rank sees its heads only
  CHECK(sent(s) == 4 * 2 * 4 * s.model.head_dim);
  s.parallelism.tp = 1;
  s.training.global_batch = 8;
  CHECK(sent(s) == 0);
}

TEST_CASE("[M429] routers see a share of the sequence, experts are summed elsewhere") {
  spec::Model model = llama({4, 256, 4, 4, 1024});
  model.experts = 4, model.experts_per_token = 2, model.expert_ffn = 512;
  const spec::Scenario s = tensor_parallel(model);
  CHECK(bytes_of(prediction_of(s, round_profile()), kUnsplit) ==
        4 * ((2 * 4 + 1) * 256 + 4 * 4 * 256));
}
