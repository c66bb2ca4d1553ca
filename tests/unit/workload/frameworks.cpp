// SPDX-License-Identifier: Apache-2.0
// What frameworks run: [M451] alignment, [M452] autocast, [M453] eager kernels, [M454] PyTorch's
// loss, [M457] dispatchers of experts, [M409] their atomic additions, [M458] when the softmax of
// written scores fuses, [M416] dropout, [M417] the small kernels of eager frameworks.
#include <catch2/catch.hpp>
#include <string_view>

#include "sim/workload/workload.hpp"
#include "tests/support/models.hpp"

using namespace scapesim;
using workload::Operation;
using workload::Workload;

namespace {

constexpr double kRounding = 1e-12;

spec::Scenario plain() {
  spec::Scenario s;
  s.model = test::llama_1_8b();
  s.training.micro_batch = 2;
  s.training.sequence = 2048;
  return s;
}

/// 64 experts of which a token visits 8, over 4 ranks.
spec::Scenario with_experts(spec::Dispatcher dispatcher) {
  spec::Scenario s = plain();
  s.model.experts = 64;
  s.model.experts_per_token = 8;
  s.model.expert_ffn = 512;
  s.parallelism.ep = 4;
  s.parallelism.dispatcher = dispatcher;
  return s;
}

Workload work_of(const spec::Scenario& s) {
  return workload::workload_of(s.model, s.training, s.parallelism);
}

const Operation* find(const std::vector<Operation>& list, std::string_view name) {
  for (const Operation& operation : list)
    if (operation.name == name) return &operation;
  return nullptr;
}

/// Bytes of a pass, 0 where there is none of the name.
double pass_bytes(const std::vector<Operation>& list, std::string_view name) {
  const Operation* operation = find(list, name);
  return operation == nullptr ? 0 : std::get<cost::Pass>(operation->shape).traffic.si();
}
double sent_bytes(const std::vector<Operation>& list, std::string_view name) {
  const Operation* operation = find(list, name);
  REQUIRE(operation != nullptr);
  return std::get<workload::Exchange>(operation->shape).bytes.si();
}

double tokens_of(const spec::Scenario& s) {
  return static_cast<double>(s.training.micro_batch * s.training.sequence);
}

}  // namespace

TEST_CASE("[M451] a vocabulary of 50,257 words makes the output layer unaligned, and no other") {
  spec::Scenario s = plain();
  s.model.vocab = 50257;
  const Workload work = work_of(s);
  int unaligned = 0;
  for (const auto& layer : work.layers)
    for (const auto* list : {&layer.forward, &layer.backward})
      for (const Operation& operation : *list)
        if (const auto* gemm = std::get_if<cost::Gemm>(&operation.shape); gemm && !gemm->aligned) {
          CHECK(operation.name.starts_with("logits"));
          ++unaligned;
        }
  CHECK(unaligned == 3);
}

TEST_CASE("[M452] autocast casts every weight at each use and its gradient back") {
  spec::Scenario s = plain();
  s.training.autocast = true;
  const Workload work = work_of(s);
  const auto& layer = work.layers[1];
  const double weight = static_cast<double>(s.model.hidden) * s.model.hidden;
  CHECK(pass_bytes(layer.forward, "projection weight cast") == 6 * weight);
  CHECK(pass_bytes(layer.backward, "projection gradient cast back") == 6 * weight);
  const double stream = tokens_of(s) * s.model.hidden;
  CHECK(pass_bytes(layer.forward, "residual1") == 10 * stream);
  CHECK(pass_bytes(layer.backward, "residual1 backward") == 18 * stream);
  CHECK(pass_bytes(layer.forward, "norm1") == 10 * stream);
  CHECK(pass_bytes(layer.backward, "norm1 backward") == 12 * stream);
  CHECK(pass_bytes(work_of(plain()).layers[1].forward, "projection weight cast") == 0);
}

TEST_CASE("[M453] eager kernels halve a gated activation and add weight gradients by passes") {
  spec::Scenario s = plain();
  s.training.kernels = spec::ElementWise::eager;
  const auto layer = work_of(s).layers[1];
  const double inner = tokens_of(s) * s.model.ffn;
  CHECK(pass_bytes(layer.forward, "activation") == 2 * 5 * inner);
  CHECK(pass_bytes(layer.backward, "activation backward") == 2 * 13 * inner);
  const double weight = static_cast<double>(s.model.hidden) * s.model.hidden;
  CHECK(pass_bytes(layer.backward, "projection gradient sum") == 18 * weight);
  s.training.gradient_dtype = spec::GradientDtype::bf16;
  CHECK(pass_bytes(work_of(s).layers[1].backward, "projection gradient sum") == 6 * weight);
  s.model.activation = spec::Activation::gelu;
  CHECK(pass_bytes(work_of(s).layers[1].forward, "activation") == 2 * 2 * inner);
}

TEST_CASE("[M454] PyTorch's loss moves 14 bytes per logit forward and 22 backward") {
  spec::Scenario s = plain();
  s.training.loss = spec::Loss::pytorch;
  const Workload work = work_of(s);
  const double logits = tokens_of(s) * s.model.vocab;
  CHECK(pass_bytes(work.layers.back().forward, "loss") == 14 * logits);
  CHECK(pass_bytes(work.layers.back().backward, "loss backward") == 22 * logits);
}

TEST_CASE("[M457] a token crosses once per expert, per rank, or to all ranks") {
  const auto dispatched = [](spec::Dispatcher dispatcher, std::string_view name) {
    const spec::Scenario s = with_experts(dispatcher);
    const double token = tokens_of(s) * s.model.hidden * 2;
    const Workload work = work_of(s);
    return sent_bytes(work.layers[1].forward, name) / token;
  };
  CHECK(dispatched(spec::Dispatcher::all_to_all, "dispatch all-to-all") == 8);
  CHECK(dispatched(spec::Dispatcher::all_gather, "dispatch all-gather") == 4);
  CHECK(dispatched(spec::Dispatcher::all_gather, "combine reduce-scatter") == 4);
  // 1 - C(48, 8) / C(64, 8) of the time a rank holds one of the eight.
  double none = 1;
  for (int i = 0; i < 8; ++i) none *= (48.0 - i) / (64.0 - i);
  CHECK(dispatched(spec::Dispatcher::per_rank, "dispatch all-to-all") ==
        Approx(4 * (1 - none)).epsilon(kRounding));
}

TEST_CASE("[M457] rows are put in the experts' order behind the exchange and back before it") {
  const auto moved = [](spec::Dispatcher dispatcher) {
    const spec::Scenario s = with_experts(dispatcher);
    const auto layer = work_of(s).layers[1];
    const double token = tokens_of(s) * s.model.hidden * 2;
    return std::pair(pass_bytes(layer.forward, "rows to experts") / token,
                     pass_bytes(layer.forward, "rows from experts") / token);
  };
  CHECK(moved(spec::Dispatcher::all_to_all) == std::pair(16.0, 16.0));
  // Eight rows per token and rank: read and written; added to zeros for four ranks' tokens.
  CHECK(moved(spec::Dispatcher::all_gather) == std::pair(16.0, 28.0));
  const auto [out, back] = moved(spec::Dispatcher::per_rank);
  CHECK(out == back);
  CHECK(out > 8);
  CHECK(out < 12);
  spec::Scenario alone = with_experts(spec::Dispatcher::per_rank);
  alone.parallelism.ep = 1;
  CHECK(pass_bytes(work_of(alone).layers[1].forward, "rows to experts") == 0);
}

TEST_CASE("[M409] without fusion the rows of a token are added by atomics, once each way") {
  const auto added = [](const spec::Scenario& s) {
    const auto layer = work_of(s).layers[1];
    double forward = 0, backward = 0;
    for (const auto& [list, sum] :
         {std::pair(&layer.forward, &forward), std::pair(&layer.backward, &backward)})
      for (const Operation& operation : *list)
        if (const auto* pass = std::get_if<cost::Pass>(&operation.shape)) *sum += pass->added;
    const double row = tokens_of(s) * s.model.hidden;
    return std::pair(forward / row, backward / row);
  };
  for (const auto dispatcher :
       {spec::Dispatcher::all_to_all, spec::Dispatcher::all_gather, spec::Dispatcher::per_rank}) {
    spec::Scenario s = with_experts(dispatcher);
    CHECK(added(s) == std::pair(0.0, 0.0));
    s.parallelism.permute_fusion = false;
    const bool fused = dispatcher == spec::Dispatcher::per_rank;  // in the library's own kernels
    CHECK(added(s) == (fused ? std::pair(0.0, 0.0) : std::pair(8.0, 8.0)));
  }
}

TEST_CASE("[M458] the softmax fuses for multiples of four matrices of at most 2,048 keys") {
  const auto launches = [](int batch, int sequence, int tp) {
    spec::Scenario s = plain();
    s.training.attention = spec::AttentionCore::unfused;
    s.training.micro_batch = batch;
    s.training.sequence = sequence;
    s.parallelism.tp = tp;
    const Workload work = work_of(s);
    const Operation* softmax = find(work.layers[1].forward, "attention softmax");
    REQUIRE(softmax != nullptr);
    return workload::launches_of(*softmax);
  };
  const int heads = plain().model.heads;
  CHECK(launches(1, 2048, 1) == 1);
  CHECK(launches(1, 4096, 1) == 5);
  CHECK(launches(1, 2048, heads / 2) == 5);  // two matrices
  CHECK(launches(2, 2048, heads / 2) == 1);  // four
}

TEST_CASE("[M458] below a causal mask the fused softmax reads half of the scores") {
  const auto visits = [](bool causal) {
    spec::Scenario s = plain();
    s.training.attention = spec::AttentionCore::unfused;
    s.model.causal = causal;
    const auto layer = work_of(s).layers[1];
    const double scores = tokens_of(s) * s.model.heads * static_cast<double>(s.training.sequence);
    return std::pair(pass_bytes(layer.forward, "attention softmax") / (2 * scores),
                     pass_bytes(layer.backward, "attention backward softmax") / (2 * scores));
  };
  CHECK(visits(true) == std::pair(1.5, 2.0));
  CHECK(visits(false) == std::pair(2.0, 3.0));
}

TEST_CASE("[M416] dropout writes a byte per element, and reads it backward in a pass of its own") {
  spec::Scenario s = plain();
  s.training.attention = spec::AttentionCore::unfused;
  const Workload without = work_of(s);
  s.training.hidden_dropout = s.training.attention_dropout = 0.1;
  const Workload with = work_of(s);
  const double stream = tokens_of(s) * s.model.hidden;
  const double scores = tokens_of(s) * s.model.heads * static_cast<double>(s.training.sequence);
  const auto more = [&](auto list, std::string_view name) {
    return pass_bytes(with.layers[1].*list, name) - pass_bytes(without.layers[1].*list, name);
  };
  CHECK(more(&workload::Layer::forward, "residual1") == stream);
  CHECK(more(&workload::Layer::backward, "residual1 backward") == 0);
  CHECK(more(&workload::Layer::backward, "residual2 dropout backward") == 5 * stream);
  CHECK(more(&workload::Layer::forward, "attention dropout") == 5 * scores);
  CHECK(more(&workload::Layer::backward, "attention backward dropout") == 5 * scores);
  CHECK(pass_bytes(with.layers[0].forward, "embedding dropout") == 5 * stream);
  CHECK(pass_bytes(with.layers[0].backward, "embedding dropout backward") == 5 * stream);
  CHECK(with.model_flops == without.model_flops);
  CHECK(with.parameters == without.parameters);
}

TEST_CASE("[M416] a GPT layer keeps s b h (34 + 5 a s / h) bytes, as Korthikanti 2022 counts") {
  spec::Scenario s = plain();
  s.model = test::gpt_345m();
  s.training.attention = spec::AttentionCore::unfused;
  s.training.hidden_dropout = s.training.attention_dropout = 0.1;
  const double h = s.model.hidden, a = s.model.heads;
  const auto length = static_cast<double>(s.training.sequence);
  const double expected = tokens_of(s) * h * (34 + 5 * a * length / h);
  CHECK(work_of(s).layers[1].kept.si() == Approx(expected).epsilon(kRounding));
}

TEST_CASE("[M417] eager frameworks sum the gradients of biases and copy heads by kernels") {
  spec::Scenario s = plain();
  s.model = test::gpt_345m();
  s.training.attention = spec::AttentionCore::unfused;
  const auto fused = work_of(s).layers[1];
  CHECK(pass_bytes(fused.backward, "fc1 bias gradient") == 0);
  CHECK(pass_bytes(fused.forward, "attention heads joined") == 0);
  s.training.kernels = spec::ElementWise::eager;
  const auto eager = work_of(s).layers[1];
  const double stream = 2 * tokens_of(s) * s.model.hidden;
  CHECK(pass_bytes(eager.backward, "qkv bias gradient") == 3 * stream);
  CHECK(pass_bytes(eager.backward, "projection bias gradient") == stream);
  CHECK(pass_bytes(eager.backward, "fc1 bias gradient") == 4 * stream);
  CHECK(pass_bytes(eager.backward, "fc2 bias gradient") == stream);
  CHECK(pass_bytes(eager.forward, "attention heads joined") == 2 * stream);
  CHECK(pass_bytes(eager.backward, "attention backward heads parted") == 2 * stream);
  CHECK(pass_bytes(eager.backward, "attention backward gradients joined") == 6 * stream);
  const Operation* norm = find(eager.backward, "norm1 backward");
  REQUIRE(norm != nullptr);
  CHECK(workload::launches_of(*norm) == 4);
  s.model.biases = spec::Biases::none;
  CHECK(pass_bytes(work_of(s).layers[1].backward, "fc1 bias gradient") == 0);
}

TEST_CASE("[M453] products add to an fp32 buffer only where it is one and nothing else adds") {
  const auto adds = [](spec::ElementWise kernels, spec::GradientDtype dtype, bool autocast) {
    spec::Scenario s = plain();
    s.training.kernels = kernels;
    s.training.gradient_dtype = dtype;
    s.training.autocast = autocast;
    const auto layer = work_of(s).layers[1];
    return std::get<cost::Gemm>(find(layer.backward, "fc1 wgrad")->shape).accumulate_fp32;
  };
  using enum spec::ElementWise;
  CHECK(adds(fused, spec::GradientDtype::fp32, false));
  CHECK_FALSE(adds(fused, spec::GradientDtype::bf16, false));
  CHECK_FALSE(adds(fused, spec::GradientDtype::fp32, true));
  CHECK_FALSE(adds(eager, spec::GradientDtype::fp32, false));
}

TEST_CASE("[M212] without overlap nothing runs beside a tensor-parallel collective") {
  spec::Scenario s = plain();
  s.parallelism.tp = 2;
  const auto beside = [&] {
    const auto layer = work_of(s).layers[1];
    int count = 0;
    for (const Operation& operation : layer.backward)
      if (const auto* exchange = std::get_if<workload::Exchange>(&operation.shape))
        count += !exchange->overlaps.empty();
    return count;
  };
  CHECK(beside() > 0);
  s.parallelism.tensor_overlap = false;
  CHECK(beside() == 0);
}
