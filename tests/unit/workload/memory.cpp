// SPDX-License-Identifier: Apache-2.0
// [M4], [M5] Bytes of passes, [M60] activations kept for the backward pass, [M61] the loss.
#include <catch2/catch.hpp>

#include "tests/support/models.hpp"

using namespace scapesim;
using namespace scapesim::test;
using spec::Recompute;
using workload::Layer;

namespace {

constexpr double kBatch = 4, kSequence = 1024;

spec::Training training_with(Recompute recompute) {
  spec::Training training = training_of(static_cast<std::int64_t>(kBatch), 1024);
  training.recompute = recompute;
  return training;
}

Layer layer_of(const spec::Model& model, Recompute recompute) {
  return workload::workload_of(model, training_with(recompute)).layers.at(1);
}

}  // namespace

TEST_CASE("[M60] a GPT layer keeps Korthikanti's bytes without the square and the dropout masks") {
  // Korthikanti et al. 2022, eq. 1: s b h (34 + 5 a s / h) bytes per layer. Flash attention leaves
  // out the square and keeps one fp32 statistic per head and token; two masks of one byte each per
  // element belong to the residual dropouts, which pre-training of these models does without.
  const spec::Model m = gpt_345m();
  const double sbh = kSequence * kBatch * m.hidden;
  const double statistics = 4 * kSequence * kBatch * m.heads;
  CHECK(layer_of(m, Recompute::none).kept.si() == (34 - 2) * sbh + statistics);
}

TEST_CASE("[M60] recomputing the attention core of flash attention saves only its statistics") {
  // Its inputs q k v and its output, which the projection multiplies, are kept all the same:
  // Korthikanti's 34 s b h (table 2), less the two dropout masks.
  const spec::Model m = gpt_345m();
  const double sbh = kSequence * kBatch * m.hidden;
  CHECK(layer_of(m, Recompute::selective).kept.si() == (34 - 2) * sbh);
}

TEST_CASE("[M60] a layer recomputed in full keeps its input: 2 s b h") {
  for (const spec::Model& m : {gpt_345m(), llama_1_8b()})
    CHECK(layer_of(m, Recompute::full).kept.si() == 2 * kSequence * kBatch * m.hidden);
}

TEST_CASE("[M60] a Llama layer keeps gate and up, rotated q and k beside the qkv output") {
  const spec::Model m = llama_1_8b();
  const double norms_in_and_out = 4 * 2560;
  const double qkv = (32 + 2 * 8) * 80, rotated = (32 + 8) * 80, attention_output = 32 * 80;
  const double gate_up = 2 * 6912, product = 6912;
  const double elements = norms_in_and_out + qkv + rotated + attention_output + gate_up + product;
  CHECK(layer_of(m, Recompute::none).kept.si() == kBatch * kSequence * (2 * elements + 4 * 32));
}

TEST_CASE("what recomputation does not keep is live while its layer runs") {
  for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
    const Layer without = layer_of(llama_1_8b(), Recompute::none);
    const Layer with = layer_of(llama_1_8b(), recompute);
    CHECK(without.transient == Bytes(0));
    CHECK(with.kept < without.kept);
    CHECK(with.kept + with.transient == without.kept);
  }
}

TEST_CASE("kept and transient memory grow in proportion to the micro-batch") {
  const auto one = workload::workload_of(llama_1_8b(), training_of(1, 2048));
  const auto eight = workload::workload_of(llama_1_8b(), training_of(8, 2048));
  for (std::size_t i = 0; i < one.layers.size(); ++i) {
    CHECK(eight.layers[i].kept == 8 * one.layers[i].kept);
    CHECK(eight.layers[i].transient == 8 * one.layers[i].transient);
  }
}

TEST_CASE("[M4] element-wise passes of a Llama layer read and write each tensor once per kernel") {
  const spec::Model m = llama_1_8b();
  const Layer layer = layer_of(m, Recompute::none);
  const double h = 2560, f = 6912, rotated = (32 + 8) * 80, tokens = kBatch * kSequence;
  // Forward: two norms (in, out), rotary (in, out), gate x up -> product, two residual sums.
  const double forward = 2 * 2 * h + 2 * rotated + (2 * f + f) + 2 * 3 * h;
  CHECK(traffic_of(layer.forward).si() == 2 * tokens * forward);
  // Backward: norms (input, gradient, result), rotary, activation (gate, up, gradient -> two),
  // sums.
  const double backward = 2 * 3 * h + 2 * rotated + (2 * f + f + 2 * f) + 2 * 3 * h;
  CHECK(traffic_of(layer.backward).si() == 2 * tokens * backward);
}

TEST_CASE("[M4] fp32 passes move twice the bytes of bf16") {
  spec::Training fp32 = training_with(Recompute::none);
  fp32.precision = spec::Precision::fp32;
  const Layer wide = workload::workload_of(llama_500m(), fp32).layers[1];
  const Layer narrow = layer_of(llama_500m(), Recompute::none);
  CHECK(traffic_of(wide.forward) == 2 * traffic_of(narrow.forward));
}

TEST_CASE("[M5] an unfused fp32 loss passes six times over the logits, and twice backward") {
  const Layer head =
      workload::workload_of(llama_1_8b(), training_with(Recompute::none)).layers.back();
  const double logits = kBatch * kSequence * 32'000;
  const auto loss = std::get<workload::Pass>(operation_named(head.forward, "loss").shape);
  // bf16 -> fp32; maximum; subtract; exponent; sum; divide.
  CHECK(loss.traffic.si() == logits * ((2 + 4) + 4 + (4 + 4) + (4 + 4) + 4 + (4 + 4)));
  CHECK(loss.launches == 6);
  const auto back = std::get<workload::Pass>(operation_named(head.backward, "loss backward").shape);
  // Scale in fp32; to bf16.
  CHECK(back.traffic.si() == logits * ((4 + 4) + (4 + 2)));
}

TEST_CASE("[M61] the loss holds logits in bf16, their softmax in fp32, and the bf16 gradient") {
  const Layer head =
      workload::workload_of(llama_1_8b(), training_with(Recompute::none)).layers.back();
  CHECK(head.transient.si() == kBatch * kSequence * 32'000 * (2 + 4 + 2));
  CHECK(head.kept.si() == kBatch * kSequence * 2 * 2560 * 2);
}
