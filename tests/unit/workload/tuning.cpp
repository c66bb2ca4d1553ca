// SPDX-License-Identifier: Apache-2.0
// [M430] [M431] Frozen layers and LoRA: parameters as PEFT counts them, products that are there,
// FLOPs, memory.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/models.hpp"
#include "tests/support/profile.hpp"

using namespace scapesim;
using namespace scapesim::test;
using spec::LoraTarget;
using workload::Layer;
using workload::Workload;

namespace {

using Targets = std::vector<LoraTarget>;

spec::Training lora_of(int rank, Targets targets) {
  spec::Training training = training_of(1, 1024);
  training.lora = {.rank = rank, .targets = std::move(targets)};
  return training;
}

Workload work_of(const spec::Model& model, const spec::Training& training,
                 const spec::Parallelism& parallelism = {}) {
  return workload::workload_of(model, training, parallelism);
}

/// Products of a list of operations whose name ends so.
int products(const std::vector<workload::Operation>& list, std::string_view ending) {
  return static_cast<int>(std::ranges::count_if(list, [&](const workload::Operation& operation) {
    return std::holds_alternative<workload::Gemm>(operation.shape) &&
           operation.name.ends_with(ending);
  }));
}

spec::Model llama3_8b() {
  spec::Model model = llama({32, 4096, 32, 8, 14'336});
  model.vocab = 128'256;
  return model;
}

spec::Model gpt2() { return gpt({12, 768, 12, 1024, 50'257}); }

}  // namespace

TEST_CASE("[M431] adapters have the parameters that PEFT and Unsloth print") {
  using enum LoraTarget;
  struct Published {
    spec::Model model;
    int rank;
    Targets targets;
    std::int64_t trainable;
    std::int64_t all;
  };
  const Targets all = {all_linear};
  // print_trainable_parameters() of alpaca-lora and LLaMA-Factory logs (Llama 7B, r = 8),
  // huggingface/peft issue 1526 (Code Llama 7B, r = 16; its 16 more words taken off), PEFT's GPT-2
  // (c_attn holds queries, keys and values), Llama 3 8B with r = 8; Unsloth's "Number of trainable
  // parameters" of Llama 3 8B with r = 16 on all seven.
  const Published rows[] = {
      {llama_7b(), 8, {q_proj, v_proj}, 4'194'304, 6'742'609'920},
      {llama_7b(), 16, {q_proj, v_proj}, 8'388'608, 6'746'935'296 - 2 * 16 * 4096},
      {llama_7b(), 64, all, 159'907'840, 6'898'323'456},
      {gpt2(), 8, {qkv_proj}, 294'912, 124'734'720},
      {llama3_8b(), 8, {q_proj, v_proj}, 3'407'872, 8'033'669'120},
      {llama3_8b(), 16, all, 41'943'040, 8'030'261'248 + 41'943'040},
  };
  for (const Published& row : rows) {
    const Workload work = work_of(row.model, lora_of(row.rank, row.targets));
    CHECK(work.trainable_parameters == row.trainable);
    CHECK(work.parameters == row.all);
  }
}

TEST_CASE("[M430] without frozen parameters all are trained and nothing else changes") {
  const Workload work = work_of(llama_1_8b(), training_of(1, 2048));
  CHECK(work.trainable_parameters == work.parameters);
  for (const Layer& layer : work.layers) {
    CHECK(layer.frozen.empty());
    CHECK_FALSE(layer.rests);
  }
}

TEST_CASE("[M430] below the lowest layer that is trained nothing runs backward or is kept") {
  spec::Training training = training_of(2, 2048);
  training.frozen_layers = 10;
  const Workload frozen = work_of(llama_1_8b(), training);
  training.frozen_layers = 0;
  const Workload whole = work_of(llama_1_8b(), training);
  for (std::size_t i = 0; i < frozen.layers.size(); ++i) {
    const Layer& layer = frozen.layers[i];
    const bool rests = i <= 10;  // the embedding is the first
    CHECK(layer.rests == rests);
    CHECK(layer.backward.empty() == rests);
    CHECK((layer.kept == Bytes(0)) == (rests || whole.layers[i].kept == Bytes(0)));
    CHECK(layer.tensors.empty() == rests);
    if (!rests) CHECK(layer.kept == whole.layers[i].kept);
  }
}

TEST_CASE("[M430] frozen layers save two thirds of their model FLOPs, to the FLOP") {
  spec::Training training = training_of(2, 2048);
  const double whole = work_of(llama_1_8b(), training).model_flops.si();
  training.frozen_layers = 12;
  const double half = work_of(llama_1_8b(), training).model_flops.si();
  double forward = 0;
  const Workload work = work_of(llama_1_8b(), training_of(2, 2048));
  for (const workload::Operation& operation : work.layers[1].forward)
    forward += workload::flops_of(operation).si();
  CHECK(whole - half == Approx(12 * 2 * forward).epsilon(1e-12));
}

TEST_CASE(
    "[M430] with adapters alone a step has 4 FLOPs per frozen parameter and token, and 6 per "
    "adapter's") {
  // Two thirds of the frozen products' 6; attention's backward pass is there but for the lowest
  // layer's projections, which get no input gradient.
  const spec::Training training = lora_of(8, {LoraTarget::all_linear});
  const spec::Model model = llama_7b();
  const Workload work = work_of(model, training);
  const double tokens = 1024;
  const double adapters = static_cast<double>(work.trainable_parameters);
  const double norms = (2 * model.layers + 1) * static_cast<double>(model.hidden);
  const double matrices = static_cast<double>(work.parameters) - adapters - norms -
                          static_cast<double>(model.vocab) * model.hidden;  // lookup
  const double attention = 6.0 * model.layers * model.hidden * tokens;  // 6 l h s, half the square
  const double missing = 2.0 * 3 * model.hidden * model.hidden;         // lowest qkv's dgrad
  const double missing_adapters = 2.0 * 3 * 8 * model.hidden;
  CHECK(work.model_flops.si() ==
        Approx(tokens * (4 * matrices + 6 * adapters + attention - missing - missing_adapters))
            .epsilon(1e-12));
}

TEST_CASE("[M431] a frozen matrix has no weight gradient, its adapter has two") {
  const Workload work = work_of(llama_7b(), lora_of(8, {LoraTarget::q_proj, LoraTarget::v_proj}));
  const Layer& layer = work.layers.at(5);
  CHECK(products(layer.forward, "lora_A") == 2);
  CHECK(products(layer.forward, "lora_B") == 2);
  CHECK(products(layer.backward, " wgrad") == 4);
  CHECK(products(layer.backward, "qkv dgrad") == 1);
  CHECK(products(layer.backward, "lora_A dgrad") == 2);
  // Of the lowest layer what lies before its adapters is not computed.
  CHECK(products(work.layers.at(1).backward, "qkv dgrad") == 0);
  CHECK(products(work.layers.at(1).backward, "lora_A dgrad") == 0);
  CHECK(products(work.layers.at(1).backward, " wgrad") == 4);
  CHECK(work.layers.front().rests);
  CHECK(work.layers.back().tensors.empty());
  CHECK(products(work.layers.back().backward, "logits dgrad") == 1);
}

TEST_CASE("[M430] inputs that only a frozen matrix reads are not kept") {
  const spec::Model model = llama_7b();
  const Bytes whole = work_of(model, training_of(1, 1024)).layers.at(5).kept;
  const auto kept = [&](Targets targets) {
    return work_of(model, lora_of(8, std::move(targets))).layers.at(5).kept;
  };
  const double token = 2.0 * 1024;  // bytes of bf16 elements of all tokens
  const auto less = [&](Bytes bytes) { return (whole - bytes).si() / token; };
  // Without MLP adapters: the second norm's output and the second matrix's input.
  CHECK(less(kept({LoraTarget::q_proj})) == model.hidden + model.ffn - 8);
  CHECK(less(kept({LoraTarget::down_proj})) == 2 * model.hidden - 8);
  CHECK(less(kept({LoraTarget::all_linear})) == -7 * 8);
}

TEST_CASE("[M431] NF4 keeps 4.127 bits of every matrix of the layers and reads them twice") {
  spec::Training training = lora_of(8, {LoraTarget::q_proj, LoraTarget::v_proj});
  training.frozen_weights = spec::FrozenWeights::nf4;
  const Workload work = work_of(llama_7b(), training);
  const double matrices = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11'008;
  const double norms = 2 * 4096;
  CHECK(workload::frozen_bytes(work.layers.at(5), workload::Part::dense).si() ==
        Approx(matrices * 4.126953125 / 8 + 2 * norms).epsilon(1e-12));
  const auto dequantised = [](const std::vector<workload::Operation>& list) {
    return std::ranges::count_if(list, [](const workload::Operation& operation) {
      return operation.name.ends_with(" dequantise");
    });
  };
  CHECK(dequantised(work.layers.at(5).forward) == 4);
  CHECK(dequantised(work.layers.at(5).backward) == 4);
  CHECK(dequantised(work.layers.back().forward) == 0);
}

TEST_CASE("[M431] ranks of a tensor-parallel group share adapters as their matrices are split") {
  spec::Training training = lora_of(16, {LoraTarget::all_linear});
  const spec::Model model = llama_7b();
  const auto adapters = [&](int tp) {
    const Workload work = work_of(model, training, {.tp = tp});
    return workload::parameters_of(work.layers.at(5));
  };
  // q, k, v, gate, up: A whole, B split; o, down: A split, B whole.
  const std::int64_t h = model.hidden, f = model.ffn;
  const auto expected = [&](std::int64_t tp) {
    return 16 * (3 * (h + h / tp) + (h / tp + h) + 2 * (h + f / tp) + (f / tp + h));
  };
  CHECK(adapters(1) == expected(1));
  CHECK(adapters(4) == expected(4));
}

TEST_CASE("[M430] every kind of block runs with frozen layers and adapters") {
  for (const auto blocks : names<spec::Blocks>())
    for (const auto placement : names<spec::NormPlacement>()) {
      spec::Model model = llama_500m();
      model.blocks = blocks.value;
      model.norm_placement = placement.value;
      if (model.blocks != spec::Blocks::sequential &&
          model.norm_placement != spec::NormPlacement::pre)
        continue;
      spec::Training training = lora_of(8, {LoraTarget::all_linear});
      training.frozen_layers = 3;
      const Workload work = work_of(model, training);
      const Workload whole = work_of(model, training_of(1, 1024));
      CHECK(work.parameters - work.trainable_parameters == whole.parameters);
      CHECK(work.model_flops < whole.model_flops);
      for (std::size_t i = 0; i < work.layers.size(); ++i)
        CHECK(work.layers[i].kept <= whole.layers[i].kept * 1.02);  // inner vectors of adapters
    }
}

TEST_CASE("[M430] recomputation leaves resting layers alone") {
  spec::Training training = training_of(1, 1024);
  training.recompute = spec::Recompute::full;
  training.frozen_layers = 8;
  const Workload work = work_of(llama_500m(), training);
  CHECK(work.layers.at(8).backward.empty());
  CHECK(work.layers.at(8).kept == Bytes(0));
  CHECK(work.layers.at(9).kept > Bytes(0));
}

TEST_CASE("[M437] a width that adapters multiply by is divided, the FLOPs are the same") {
  const Workload work = work_of(llama_7b(), lora_of(8, {LoraTarget::down_proj}));
  const Layer& layer = work.layers.at(5);
  const auto product = [&](const std::vector<workload::Operation>& list, std::string_view ending) {
    const auto found = std::ranges::find_if(list, [&](const workload::Operation& operation) {
      return operation.name.ends_with(ending);
    });
    return std::get<workload::Gemm>(found->shape);
  };
  const workload::Gemm a = product(layer.forward, "lora_A");  // k = 11,008 = 8 x 1,376
  CHECK(a.groups == 8);
  CHECK(a.k == 1376);
  CHECK(cost::flops_of(a).si() == 2.0 * 1024 * 8 * 11'008);
  CHECK(product(layer.forward, "lora_B").groups == 1);         // k = 8
  CHECK(product(layer.backward, "lora_B dgrad").groups == 4);  // k = 4,096
  CHECK(product(layer.backward, "lora_A wgrad").groups == 1);  // k = 1,024 tokens
  CHECK(product(layer.backward, "lora_A wgrad").accumulate_fp32);
  // 100 multiprocessors: one wave of 8 tiles over all of k, or of 64 over an eighth.
  const cost::Profile profile = round_profile();
  const cost::KernelCosts costs(profile, round_gpu(), spec::Precision::bf16);
  CHECK(costs.time(a) < 0.4 * costs.time(workload::Gemm{.m = 1024, .n = 8, .k = 11'008}));
}
