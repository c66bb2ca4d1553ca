// SPDX-License-Identifier: Apache-2.0
// [M3] FLOPs of mixtures of experts, windows and encoders against published formulas and counts by
// hand; where norms stand; what experts keep.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/models.hpp"

using namespace scapesim;
using namespace scapesim::test;
using workload::Layer;
using workload::Operation;
using workload::Workload;

namespace {

// Sums of exact products in double precision: only the order of addition differs.
constexpr double kRounding = 1e-12;
constexpr double kBatch = 2, kSequence = 4096, kTokens = kBatch * kSequence;

spec::Model experts() {
  spec::Model model = llama({4, 1024, 16, 8, 4096});
  model.experts = 64;
  model.experts_per_token = 6;
  model.shared_experts = 2;
  model.expert_ffn = 768;
  return model;
}

Workload work_of(const spec::Model& model) {
  return workload::workload_of(model, training_of(2, 4096));
}

double passes_named(const std::vector<Operation>& operations, const std::string& part) {
  return static_cast<double>(std::ranges::count_if(operations, [&](const Operation& operation) {
    return operation.name.find(part) != std::string::npos;
  }));
}

}  // namespace

TEST_CASE("[M3] a mixture of experts takes Megatron-LM's FLOPs and its router's") {
  // megatron/training/training.py, num_floating_point_operations: 12 b s l h^2 ((1 + g/a + s/h) +
  // (k f_e + f_shared) 3/2 / h + V / (2 l h)); here causal attention counts half, s/(2h), and the
  // router 6 E h per token and layer.
  const spec::Model m = experts();
  const double h = m.hidden, l = m.layers, groups = 0.5, v = m.vocab;
  const double routed = 6 * 768, shared = 2 * 768;
  const double expected =
      12 * kTokens * l * h * h *
          (1 + groups + kSequence / (2 * h) + 1.5 * (routed + shared) / h + v / (2 * l * h)) +
      6 * kTokens * l * 64 * h;
  CHECK(work_of(m).model_flops.si() == Approx(expected).epsilon(kRounding));
}

TEST_CASE("[M3] routed rows in groups execute the FLOPs of the model when no token is dropped") {
  const Workload work = work_of(experts());
  Flops executed;
  for (const Layer& layer : work.layers) executed += flops_of(layer.forward);
  CHECK(3 * executed.si() == Approx(work.model_flops.si()).epsilon(kRounding));
}

TEST_CASE("[M3] an encoder sees the whole square, and its head is counted") {
  spec::Model m = gpt({12, 768, 12, 4096, 30'522});
  m.causal = false;
  const double h = 768, l = 12, v = 30'522;
  const double blocks =
      72 * kTokens * l * h * h * (1 + kSequence / (6 * h) + v / (12 * l * h));  // Narayanan eq. 3
  CHECK(work_of(m).model_flops.si() == Approx(blocks).epsilon(kRounding));
  m.mlm_head = m.pooler = true;
  const double head = 6 * kTokens * h * h + 6 * kBatch * h * h;
  CHECK(work_of(m).model_flops.si() == Approx(blocks + head).epsilon(kRounding));
}

TEST_CASE("[M3] a windowed layer counts the keys that its queries see") {
  spec::Model m = llama({6, 1024, 16, 8, 4096});
  const double full = work_of(m).model_flops.si();
  m.window = 1024;
  m.full_attention_every = 3;
  const double window = 1024, all = kSequence * kSequence / 2;
  const double seen = window * kSequence - window * window / 2;
  const double per_pair = 3 * 4.0 * kBatch * m.heads * m.head_dim;  // two products, three passes
  CHECK(full - work_of(m).model_flops.si() ==
        Approx(4 * per_pair * (all - seen)).epsilon(1e3 * kRounding));  // a difference of sums
  const Workload work = work_of(m);
  CHECK(work.layers[3].like == 3);
  CHECK(work.layers[6].like == 3);
  CHECK(work.layers[5].like == 1);
}

TEST_CASE("a window as long as the sequence is none") {
  spec::Model m = llama({2, 1024, 16, 8, 4096});
  const Flops none = work_of(m).model_flops;
  m.window = 4096;
  CHECK(work_of(m).model_flops == none);
}

TEST_CASE("layers with experts stand behind the dense ones, the last of every so many") {
  spec::Model m = experts();
  m.layers = 8;
  m.dense_layers = 2;
  m.moe_every = 3;
  const Workload work = work_of(m);
  for (int i = 0; i < 8; ++i) {
    INFO(i);
    const bool has =
        workload::expert_parameters_of(work.layers[static_cast<std::size_t>(i) + 1]) > 0;
    CHECK(has == (i == 4 || i == 7));
  }
}

TEST_CASE("norms stand before, behind or on both sides of their branches") {
  spec::Model m = llama_500m();
  const auto norms = [&](spec::NormPlacement placement) {
    m.norm_placement = placement;
    return passes_named(workload::workload_of(m, training_of(1, 1024)).layers[1].forward, "norm");
  };
  CHECK(norms(spec::NormPlacement::pre) == 2);
  CHECK(norms(spec::NormPlacement::post) == 2);
  CHECK(norms(spec::NormPlacement::branch) == 2);
  CHECK(norms(spec::NormPlacement::both) == 4);
  m.blocks = spec::Blocks::parallel_one_norm;
  CHECK(norms(spec::NormPlacement::pre) == 1);
}

TEST_CASE("every norm, activation and residual sum has its backward pass") {
  spec::Model model = experts();
  model.norm_placement = spec::NormPlacement::both;
  model.qk_norm = spec::QkNorm::head;
  for (const Layer& layer : work_of(model).layers)
    for (const Operation& operation : layer.forward)
      if (std::holds_alternative<workload::Pass>(operation.shape) && operation.name != "lookup") {
        INFO(operation.name);
        CHECK(passes_named(layer.backward, operation.name + " backward") >= 1);
      }
}

TEST_CASE("[M60] experts keep their rows on the way in and out, and the router's logits") {
  spec::Model m = experts();
  m.shared_experts = 0;
  const double rows = kTokens * 6, h = 1024, f = 768;
  spec::Model dense = m;
  dense.experts = dense.experts_per_token = 0;
  const double mlp = 2 * kTokens * 3 * dense.ffn;
  const double routed = 2 * rows * (h + 3 * f + h) + 2 * 4 * kTokens * 64;
  CHECK(work_of(m).layers[1].kept.si() - work_of(dense).layers[1].kept.si() == routed - mlp);
}

TEST_CASE("expert tensors hold all experts of a matrix, the largest tensor is one expert's") {
  const Workload work = work_of(experts());
  const auto& tensors = work.layers[1].tensors;
  const auto fc1 = std::ranges::find(tensors, "layer 0 expert fc1.weight", &workload::Tensor::name);
  CHECK(fc1->numel == 64 * 2 * 768 * 1024);
  CHECK(work.largest_tensor == 32'000 * 1024);
}

TEST_CASE("[M218] narrow products cast their inputs, and their gradients in the backward pass") {
  const spec::Model m = llama_1_8b();
  const auto casts = [&](const std::vector<Operation>& operations) {
    double bytes = 0;
    for (const Operation& operation : operations)
      if (operation.name.ends_with(" cast"))
        bytes += std::get<workload::Pass>(operation.shape).traffic.si();
    return bytes;
  };
  const auto layer_of = [&](spec::Precision precision) {
    spec::Training training = training_of(2, 4096);
    training.precision = precision;
    return workload::workload_of(m, training);
  };
  const double h = 2560, f = 6912, qkv = (32 + 2 * 8) * 80;
  const double inputs = kTokens * (h + h + h + f), gradients = kTokens * (qkv + h + 2 * f + h);
  const Workload fp8 = layer_of(spec::Precision::fp8);
  CHECK(casts(fp8.layers[1].forward) == inputs * (2 + 2 * 1));
  CHECK(casts(fp8.layers[1].backward) == gradients * (2 + 2 * 1));
  CHECK(casts(fp8.layers.back().forward) == 0);
  CHECK(casts(layer_of(spec::Precision::nvfp4).layers[1].forward) == inputs * (2 + 2 * 0.5625));
  CHECK(casts(layer_of(spec::Precision::mxfp8).layers[1].forward) == inputs * (2 + 2 * 1.03125));
  CHECK(casts(layer_of(spec::Precision::bf16).layers[1].forward) == 0);
}
