// SPDX-License-Identifier: Apache-2.0
// What frameworks run: [M451] alignment, [M452] autocast, [M453] eager kernels, [M454] PyTorch's
// loss, [M457] dispatchers of experts, [M458] when the softmax of written scores fuses.
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
