// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/training_rules.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "sim/spec/batch_ramp.hpp"

namespace scapesim::spec {
namespace {

using Violations = std::vector<Violation>;

bool has(const Lora& lora, LoraTarget target) {
  return std::ranges::find(lora.targets, target) != lora.targets.end();
}

bool has_gate(const Model& model) {
  return model.activation == Activation::swiglu || model.activation == Activation::geglu;
}

/// Whether the output, which stays when all layers are frozen, has a parameter of its own.
bool head_trains(const Model& model) {
  const bool norm =
      model.norm_placement != NormPlacement::post && model.norm_parameters != NormParameters::none;
  return norm || !model.tied_embeddings || model.mlm_head || model.pooler;
}

void check_frozen(const Scenario& scenario, Violations& list) {
  const Model& model = scenario.model;
  const Training& training = scenario.training;
  const bool adapted = training.lora.rank > 0;
  const int frozen = training.frozen_layers;
  if (frozen > model.layers)
    list.push_back({"training.frozen_layers",
                    fmt::format("{} of the model's {} layers", frozen, model.layers),
                    fmt::format("at most {}", model.layers)});
  else if (frozen == model.layers && frozen > 0 && (adapted || !head_trains(model)))
    list.push_back(
        {"training.frozen_layers", "no parameter is left to train",
         adapted ? "layers that are frozen have no adapters: make it smaller" : "make it smaller"});
  if (frozen == 0 && !adapted) {
    if (training.frozen_weights == FrozenWeights::nf4)
      list.push_back({"training.frozen_weights", "no matrix is frozen",
                      "set training.lora_rank or training.frozen_layers"});
    return;
  }
  if (model.mtp_layers > 0)
    list.push_back({adapted ? "training.lora_rank" : "training.frozen_layers",
                    "frozen parameters beside multi-token prediction are not simulated",
                    "set model.mtp_layers = 0"});
  if (training.frozen_weights == FrozenWeights::nf4 && model.experts > 0)
    list.push_back({"training.frozen_weights", "experts in four bits are not simulated",
                    "set frozen_weights = \"compute\""});
  const Method method = scenario.strategy.method;
  if (method == Method::qsdp || method == Method::zeropp)
    list.push_back(
        {"strategy.method",
         fmt::format("{}'s gathers of frozen parameters are not simulated", name_of(method)),
         "dense, with sharding = \"fsdp\" or \"zero3\""});
}

/// Two adapters of one matrix.
void check_fused(const Lora& lora, LoraTarget fused, std::initializer_list<LoraTarget> parts,
                 Violations& list) {
  for (const LoraTarget part : parts)
    if (has(lora, fused) && has(lora, part))
      return list.push_back({"training.lora_targets",
                             fmt::format("{} holds {}", name_of(fused), name_of(part)),
                             "name the one or the other"});
}

void check_targets(const Model& model, const Lora& lora, Violations& list) {
  using enum LoraTarget;
  if (lora.targets.empty())
    list.push_back({"training.lora_targets", "adapters of no matrix", "such as [\"q_proj\"]"});
  check_fused(lora, qkv_proj, {q_proj, k_proj, v_proj, all_linear}, list);
  check_fused(lora, gate_up_proj, {gate_proj, up_proj, all_linear}, list);
  if (!has_gate(model) && (has(lora, gate_proj) || has(lora, gate_up_proj)))
    list.push_back({"training.lora_targets",
                    fmt::format("an MLP with {} has no gate", name_of(model.activation)),
                    "up_proj is its first matrix, down_proj its second"});
  const bool mlp = has(lora, gate_proj) || has(lora, up_proj) || has(lora, gate_up_proj) ||
                   has(lora, down_proj) || has(lora, all_linear);
  if (model.experts > 0 && mlp)
    list.push_back({"training.lora_targets", "adapters of experts are not simulated",
                    "q_proj, k_proj, v_proj or o_proj"});
  const bool inputs = has(lora, q_proj) || has(lora, k_proj) || has(lora, v_proj) ||
                      has(lora, qkv_proj) || has(lora, all_linear);
  if (model.attention == AttentionKind::latent && inputs)
    list.push_back(
        {"training.lora_targets",
         "a latent attention has no such matrices: queries and keys come from compressed "
         "vectors",
         "o_proj, or the MLP's"});
}

void check_lora(const Scenario& scenario, Violations& list) {
  const Lora& lora = scenario.training.lora;
  if (lora.rank == 0) {
    if (lora.targets != Lora{}.targets)
      list.push_back({"training.lora_targets", "there are no adapters", "set training.lora_rank"});
    return;
  }
  if (lora.rank > scenario.model.hidden)
    list.push_back(
        {"training.lora_rank",
         fmt::format("{} is more than the model's width of {}", lora.rank, scenario.model.hidden),
         "a low rank, such as 16"});
  check_targets(scenario.model, lora, list);
}

void check_documents(const Training& training, Violations& list) {
  const bool whole = training.documents == Documents::whole;
  if (whole && training.document_length.given())
    list.push_back({"training.document_length", "every sequence is one whole document",
                    "set training.documents = \"packed\" or \"padded\""});
  if (!whole && !training.document_length.given())
    list.push_back({"training.document_length",
                    fmt::format("missing for {} documents", name_of(training.documents)),
                    "such as \"700\" or \"lognormal 700 1.1\""});
}

void check_increments(const Training& training, Violations& list) {
  constexpr std::int64_t kMost = 10'000;
  const BatchRamp& ramp = training.batch_ramp;
  const std::int64_t rise = training.global_batch - ramp.start;
  if (rise <= 0)
    list.push_back({"training.batch_ramp",
                    fmt::format("begins at {}, the batch is {}", ramp.start, training.global_batch),
                    "begin below training.global_batch"});
  else if (rise % ramp.increment != 0)
    list.push_back({"training.batch_ramp",
                    fmt::format("from {} to {} is no multiple of {}", ramp.start,
                                training.global_batch, ramp.increment),
                    "an increment that divides the rise"});
  else if (rise / ramp.increment > kMost)
    list.push_back({"training.batch_ramp", fmt::format("{} increments", rise / ramp.increment),
                    fmt::format("at most {}", kMost)});
}

void check_stage_batches(const Scenario& scenario, Violations& list) {
  const std::int64_t unit =
      std::int64_t{data_parallel_size(scenario)} * scenario.training.micro_batch;
  if (unit < 1) return;
  for (const RampStage& stage : ramp_stages(scenario.training)) {
    if (stage.batch > scenario.training.global_batch)
      return list.push_back({"training.batch_ramp",
                             fmt::format("a stage of {}, the batch is {}", stage.batch,
                                         scenario.training.global_batch),
                             "the ramp ends at training.global_batch"});
    const Parallelism& p = scenario.parallelism;
    const bool interleaved = p.schedule == Schedule::interleaved && p.pp > 1;
    const std::int64_t needed = interleaved ? unit * p.pp : unit;
    if (stage.batch % needed != 0)
      return list.push_back(
          {"training.batch_ramp",
           fmt::format("a batch of {} is no multiple of {} = {} data-parallel ranks x micro-batch "
                       "{}{}",
                       stage.batch, needed, data_parallel_size(scenario),
                       scenario.training.micro_batch,
                       interleaved ? fmt::format(" x pp {}", p.pp) : ""),
           "begin and grow by multiples of it, or use fewer ranks"});
  }
}

void check_ramp(const Scenario& scenario, Violations& list) {
  const Training& training = scenario.training;
  if (!training.batch_ramp.given()) return;
  const std::size_t before = list.size();
  if (training.batch_ramp.start > 0) check_increments(training, list);
  const Parallelism& p = scenario.parallelism;
  const bool sound = p.tp >= 1 && p.pp >= 1 && p.cp >= 1 && training.sequence >= 1;
  if (!sound || scenario.cluster.gpus % (std::int64_t{p.tp} * p.pp * p.cp) != 0) return;
  if (list.size() == before) check_stage_batches(scenario, list);
}

void check_stalls(const Stalls& stalls, Violations& list) {
  if (stalls.evaluation_interval > 0 && stalls.evaluation_iterations == 0)
    list.push_back({"training.evaluation_iterations", "an evaluation of no batch",
                    "such as 100, or leave evaluation_interval out"});
  if (stalls.evaluation_interval == 0 && stalls.evaluation_iterations > 0)
    list.push_back({"training.evaluation_interval", "evaluations are never made",
                    "such as 1000, or leave evaluation_iterations out"});
}

}  // namespace

void check_tuning(const Scenario& scenario, Violations& list) {
  check_frozen(scenario, list);
  check_lora(scenario, list);
}

void check_data(const Scenario& scenario, Violations& list) {
  check_documents(scenario.training, list);
  check_ramp(scenario, list);
  check_stalls(scenario.training.stalls, list);
}

}  // namespace scapesim::spec
