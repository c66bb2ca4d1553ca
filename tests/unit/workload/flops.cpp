// SPDX-License-Identifier: Apache-2.0
// [M2] FLOPs of operations and [M3] of the model, against published closed forms; recomputation.
#include <catch2/catch.hpp>

#include "tests/support/models.hpp"

using namespace scapesim;
using namespace scapesim::test;
using spec::Recompute;
using workload::Layer;
using workload::Workload;

namespace {

// Sums of exact products in double precision: only the order of addition differs.
constexpr double kRounding = 1e-12;

Workload work_of(const spec::Model& model, Recompute recompute) {
  spec::Training training = training_of(4, 1024);
  training.recompute = recompute;
  return workload::workload_of(model, training);
}

Flops forward_flops(const Workload& work) {
  Flops sum;
  for (const Layer& layer : work.layers) sum += flops_of(layer.forward);
  return sum;
}

Flops backward_flops(const Workload& work) {
  Flops sum;
  for (const Layer& layer : work.layers) sum += flops_of(layer.backward);
  return sum;
}

}  // namespace

TEST_CASE("[M2] a matrix product takes a multiply and an add per term") {
  CHECK(cost::flops_of(cost::Gemm{.m = 3, .n = 5, .k = 7}) == Flops(2 * 3 * 5 * 7));
}

TEST_CASE("[M2] causal attention counts half of its two squares") {
  const cost::Attention attention{.batch = 2, .sequence = 512, .heads = 3, .head_dim = 64};
  const double both_squares = 2 * (2.0 * 2 * 3 * 512 * 512 * 64);
  CHECK(cost::flops_of(attention).si() == both_squares / 2);
}

TEST_CASE("[M2] flash attention executes five products backward for two forward") {
  cost::Attention attention{.batch = 1, .sequence = 128, .heads = 1, .head_dim = 64};
  const Flops forward = cost::flops_of(attention);
  attention.backward = true;
  CHECK(cost::flops_of(attention).si() == 2.5 * forward.si());
}

TEST_CASE("[M170] pairs are counted one by one: causal, windows, longer keys than queries") {
  const auto counted = [](int queries, int keys, int window) {
    double pairs = 0;  // the middle of a query's step: half a pair less than whole keys
    for (int i = 0; i < queries; ++i) {
      const double seen = i + 0.5 + keys - queries;
      pairs += std::min<double>(window, std::max(seen, 0.0));
    }
    return pairs;
  };
  for (const int keys : {32, 64, 100, 256})
    for (const int window : {1, 16, 64, 100, 1000}) {
      const cost::Attention attention{.batch = 1,
                                      .sequence = 64,
                                      .heads = 1,
                                      .head_dim = 1,
                                      .kv_sequence = keys,
                                      .window = window};
      CAPTURE(keys, window);
      CHECK(cost::visible_pairs(attention) == counted(64, keys, std::min(window, keys)));
    }
}

TEST_CASE("[M170] without a mask every query meets every key, once per product") {
  const cost::Attention attention{.batch = 2,
                                  .sequence = 64,
                                  .heads = 4,
                                  .head_dim = 192,
                                  .causal = false,
                                  .kv_sequence = 128,
                                  .value_head_dim = 128};
  CHECK(cost::flops_of(attention).si() == 2.0 * 2 * 4 * 64 * 128 * (192 + 128));
  cost::Attention backward = attention;
  backward.backward = true;
  CHECK(cost::flops_of(backward).si() == 2.0 * 2 * 4 * 64 * 128 * (3 * 192 + 2 * 128));
}

TEST_CASE("[M2] a grouped product takes the FLOPs of its groups") {
  const cost::Gemm one{.m = 3, .n = 5, .k = 7};
  cost::Gemm many = one;
  many.groups = 8;
  CHECK(cost::flops_of(many) == 8.0 * cost::flops_of(one));
}

TEST_CASE("[M3] a GPT's step takes Megatron-LM's FLOPs, with causal attention counted half") {
  // Narayanan et al. 2021, eq. 3 without recomputation: 72 B s l h^2 (1 + s/(6h) + V/(12 l h)),
  // which counts the whole square of attention; half of it is s/(12h).
  for (const spec::Model& m : {gpt_345m(), gpt3_175b()}) {
    const double h = m.hidden, l = m.layers, s = 1024, batch = 4, v = m.vocab;
    const double expected = 72 * batch * s * l * h * h * (1 + s / (12 * h) + v / (12 * l * h));
    CHECK(work_of(m, Recompute::none).model_flops.si() == Approx(expected).epsilon(kRounding));
  }
}

TEST_CASE("[M3] a token takes 6N and attention, as PaLM counts, N without lookups and norms") {
  // Chowdhery et al. 2022, app. B: 6N + 12 L H Q T per token; causal half is 6 L H Q T.
  for (const spec::Model& m : {llama_500m(), llama_1_8b(), llama_7b(), llama_70b()}) {
    const Workload work = work_of(m, Recompute::none);
    const std::int64_t looked_up = std::int64_t{m.vocab} * m.hidden;
    const std::int64_t norms = (2 * std::int64_t{m.layers} + 1) * m.hidden;
    const auto multiplied = static_cast<double>(work.parameters - looked_up - norms);
    const double attention = 6.0 * m.layers * m.heads * m.head_dim * 1024;
    const double tokens = 4 * 1024;
    CHECK(work.model_flops.si() / tokens == Approx(6 * multiplied + attention).epsilon(kRounding));
  }
}

TEST_CASE("the backward pass of a matrix product is two of its size") {
  const Layer layer = work_of(llama_1_8b(), Recompute::none).layers.at(1);
  for (const std::string name : {"qkv", "projection", "fc1", "fc2"}) {
    const Flops forward = workload::flops_of(operation_named(layer.forward, name));
    CHECK(workload::flops_of(operation_named(layer.backward, name + " dgrad")) == forward);
    CHECK(workload::flops_of(operation_named(layer.backward, name + " wgrad")) == forward);
  }
}

TEST_CASE("weight gradients are accumulated in fp32, other products are not") {
  for (const Layer& layer : work_of(llama_500m(), Recompute::none).layers)
    for (const auto* list : {&layer.forward, &layer.backward})
      for (const workload::Operation& operation : *list)
        if (const auto* gemm = std::get_if<workload::Gemm>(&operation.shape)) {
          INFO(operation.name);
          CHECK(gemm->accumulate_fp32 == operation.name.ends_with("wgrad"));
        }
}

TEST_CASE("full recomputation executes one more forward pass of the transformer layers") {
  const Workload without = work_of(llama_1_8b(), Recompute::none);
  const Workload with = work_of(llama_1_8b(), Recompute::full);
  Flops layers_forward;
  for (std::size_t i = 1; i + 1 < without.layers.size(); ++i)
    layers_forward += flops_of(without.layers[i].forward);
  const Flops extra = backward_flops(with) - backward_flops(without);
  // The difference of two sums of about three times its size.
  CHECK(extra.si() == Approx(layers_forward.si()).epsilon(10 * kRounding));
  CHECK(forward_flops(with) == forward_flops(without));
}

TEST_CASE("selective recomputation executes one more forward attention") {
  const Workload without = work_of(llama_1_8b(), Recompute::none);
  const Workload with = work_of(llama_1_8b(), Recompute::selective);
  const Flops attention =
      workload::flops_of(operation_named(without.layers[1].forward, "attention"));
  const Flops extra = flops_of(with.layers[1].backward) - flops_of(without.layers[1].backward);
  CHECK(extra.si() == Approx(attention.si()).epsilon(10 * kRounding));
}

TEST_CASE("recomputation is no FLOP of the model") {
  const Flops none = work_of(llama_1_8b(), Recompute::none).model_flops;
  CHECK(work_of(llama_1_8b(), Recompute::selective).model_flops == none);
  CHECK(work_of(llama_1_8b(), Recompute::full).model_flops == none);
}

TEST_CASE("FLOPs grow in proportion to the micro-batch") {
  const Flops one = workload::workload_of(llama_500m(), training_of(1, 4096)).model_flops;
  const Flops eight = workload::workload_of(llama_500m(), training_of(8, 4096)).model_flops;
  CHECK(eight.si() == Approx(8 * one.si()).epsilon(kRounding));
}

TEST_CASE("a layer does the same as the layer it is like") {
  const Workload work = work_of(llama_500m(), Recompute::full);
  for (std::size_t i = 0; i < work.layers.size(); ++i) {
    const Layer& layer = work.layers[i];
    REQUIRE(layer.like <= i);
    const Layer& model = work.layers[layer.like];
    CHECK(flops_of(layer.forward) == flops_of(model.forward));
    CHECK(flops_of(layer.backward) == flops_of(model.backward));
    CHECK(traffic_of(layer.forward) == traffic_of(model.forward));
    CHECK(traffic_of(layer.backward) == traffic_of(model.backward));
  }
  CHECK(work.layers.front().like == 0);
  CHECK(work.layers[2].like == 1);
  CHECK(work.layers.back().like == work.layers.size() - 1);
}
