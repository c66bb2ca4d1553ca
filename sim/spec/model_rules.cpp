// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/model_rules.hpp"

#include <algorithm>
#include <fmt/format.h>

namespace scapesim::spec {
namespace {

using Violations = std::vector<Violation>;

void check_heads(const Model& model, Violations& list) {
  if (model.kv_heads > 0 && model.heads % model.kv_heads != 0)
    list.push_back({"model.kv_heads",
                    fmt::format("{} heads do not divide into groups of {} key and value heads",
                                model.heads, model.kv_heads),
                    "heads has to be a multiple of kv_heads"});
  const bool latent = model.attention == AttentionKind::latent;
  if (model.positions == Positions::rope && !latent && model.head_dim % 2 != 0)
    list.push_back({"model.head_dim", fmt::format("{} is odd", model.head_dim),
                    "rotary positions turn pairs of elements"});
  if (!latent && (model.q_lora_rank > 0 || model.kv_lora_rank > 0 || model.rope_head_dim > 0))
    list.push_back({model.q_lora_rank > 0    ? "model.q_lora_rank"
                    : model.kv_lora_rank > 0 ? "model.kv_lora_rank"
                                             : "model.rope_head_dim",
                    "only a latent attention has it", "set model.attention = \"latent\""});
}

void check_latent(const Model& model, Violations& list) {
  if (model.attention != AttentionKind::latent) return;
  if (model.kv_lora_rank == 0)
    list.push_back({"model.kv_lora_rank", "missing for a latent attention", "such as 512"});
  if (model.rope_head_dim == 0 || model.rope_head_dim % 2 != 0 ||
      model.rope_head_dim >= model.head_dim)
    list.push_back(
        {"model.rope_head_dim",
         fmt::format("{} of a head's {} elements are rotated", model.rope_head_dim, model.head_dim),
         "an even part of head_dim, such as 64 of 192"});
  if (model.kv_heads != model.heads)
    list.push_back({"model.kv_heads", "a latent attention has as many key heads as heads",
                    "leave kv_heads out"});
  if (model.positions != Positions::rope)
    list.push_back({"model.positions", "a latent attention rotates a part of its heads",
                    "set positions = \"rope\""});
}

void check_expert_choice(const Model& model, Violations& list) {
  if (model.experts_per_token < 1 || model.experts_per_token > model.experts)
    list.push_back(
        {"model.experts_per_token",
         fmt::format("{} of {} experts per token", model.experts_per_token, model.experts),
         fmt::format("1 to {}", model.experts)});
  if (model.expert_ffn < 1)
    list.push_back({"model.expert_ffn", "an expert without width", "such as 2048"});
  if (model.dense_layers + model.moe_every > model.layers)
    list.push_back({model.moe_every > 1 ? "model.moe_every" : "model.dense_layers",
                    fmt::format("none of the {} layers has experts", model.layers),
                    "make dense_layers or moe_every smaller"});
}

void check_experts(const Model& model, Violations& list) {
  if (model.experts > 0) return check_expert_choice(model, list);
  const auto needs_experts = [&](const char* key, int value) {
    if (value > 0)
      list.push_back({fmt::format("model.{}", key), fmt::format("{} without experts", value),
                      "set model.experts"});
  };
  needs_experts("experts_per_token", model.experts_per_token);
  needs_experts("shared_experts", model.shared_experts);
  needs_experts("dense_layers", model.dense_layers);
}

// Limits that keep every count of a workload in 64 bits.
void check_sizes(const Model& model, const Training& training, Violations& list) {
  constexpr double kMostTokens = 1e9, kMostParameters = 1e17;
  const double tokens =
      static_cast<double>(training.micro_batch) * static_cast<double>(training.sequence);
  if (tokens > kMostTokens)
    list.push_back({"training.micro_batch", fmt::format("{:.3g} tokens in a micro-batch", tokens),
                    fmt::format("at most {:.0e} are simulated", kMostTokens)});
  const double mlps =
      3.0 * model.layers * model.hidden * std::max(1, model.experts) *
      std::max(static_cast<double>(model.expert_ffn), static_cast<double>(model.ffn));
  if (mlps > kMostParameters)
    list.push_back({"model.layers", fmt::format("the MLPs alone have {:.3g} parameters", mlps),
                    fmt::format("at most {:.0e} are simulated", kMostParameters)});
}

/// A count that has to divide by a degree; `divisor` as the user wrote it.
void check_divides(const char* what, std::int64_t count, const char* degree, std::int64_t divisor,
                   Violations& list) {
  if (count % divisor == 0) return;
  list.push_back({fmt::format("parallelism.{}", degree),
                  fmt::format("{} {} do not divide over {} = {}", count, what, degree, divisor),
                  "choose a divisor"});
}

void check_tensor_split(const Model& model, const Parallelism& p, Violations& list) {
  if (p.tp == 1) return;
  check_divides("heads", model.heads, "tp", p.tp, list);
  if (model.heads % p.tp == 0 && model.kv_heads % p.tp != 0 && p.tp % model.kv_heads != 0)
    list.push_back({"parallelism.tp",
                    fmt::format("{} key heads neither divide over tp = {} nor are copied evenly",
                                model.kv_heads, p.tp),
                    "choose a divisor or a multiple"});
  const bool dense_mlp = model.experts == 0 || model.dense_layers > 0 || model.moe_every > 1;
  if (dense_mlp) check_divides("columns of the MLP", model.ffn, "tp", p.tp, list);
  if (model.experts == 0) return;
  if (p.expert_tp != 1) check_divides("columns of an expert", model.expert_ffn, "tp", p.tp, list);
  if (!p.sequence_parallel)
    list.push_back({"parallelism.sequence_parallel",
                    "experts beside tensor parallelism need the tokens split",
                    "set sequence_parallel = true or tp = 1"});
}

void check_expert_split(const Model& model, const Parallelism& p, Violations& list) {
  if (p.expert_tp > 1 && p.expert_tp != p.tp)
    list.push_back({"parallelism.expert_tp", fmt::format("{} beside tp = {}", p.expert_tp, p.tp),
                    "1, or 0 for that of tp"});
  if (p.ep == 1) return;
  if (model.experts == 0)
    list.push_back({"parallelism.ep", "the model has no experts to split", "set ep = 1"});
  else
    check_divides("experts", model.experts, "ep", p.ep, list);
}

bool has_window(const Scenario& scenario) {
  return scenario.model.window > 0 && scenario.model.window < scenario.training.sequence;
}

void check_context_split(const Scenario& scenario, Violations& list) {
  const Model& model = scenario.model;
  const Parallelism& p = scenario.parallelism;
  if (p.cp == 1) return;
  const bool ring = p.context_method == ContextMethod::ring;
  // Under the causal mask a ring deals every rank one part from each end.
  const std::int64_t parts = ring && model.causal ? 2 * std::int64_t{p.cp} : p.cp;
  if (scenario.training.sequence % parts != 0)
    list.push_back({"training.sequence",
                    fmt::format("{} tokens do not divide into {} parts of cp = {}",
                                scenario.training.sequence, parts, p.cp),
                    parts == p.cp ? "a multiple of cp" : "a multiple of 2 cp"});
  if (scenario.training.attention == AttentionCore::unfused && p.cp > 1)
    list.push_back({"training.attention", "the scores of an unfused core are not split over cp",
                    "set training.attention = \"flash\" or cp = 1"});
  if (ring && has_window(scenario))
    list.push_back({"parallelism.context_method",
                    "a ring does not skip what lies outside a sliding window",
                    "set context_method = \"all_to_all\" or model.window = 0"});
  if (!ring && model.heads % (std::int64_t{p.tp} * p.cp) != 0)
    list.push_back({"parallelism.cp",
                    fmt::format("{} heads do not divide over tp x cp = {}", model.heads,
                                std::int64_t{p.tp} * p.cp),
                    "choose divisors or context_method = \"ring\""});
}

void check_sequence_split(const Scenario& scenario, Violations& list) {
  const Parallelism& p = scenario.parallelism;
  const std::int64_t ranks = std::int64_t{p.tp} * p.cp;
  if (!p.sequence_parallel || scenario.training.sequence % p.cp != 0) return;
  if (scenario.training.sequence % ranks != 0)
    list.push_back({"training.sequence",
                    fmt::format("{} tokens do not divide over tp x cp = {} with sequence_parallel",
                                scenario.training.sequence, ranks),
                    "a multiple of it"});
}

void check_recomputed_layers(const Scenario& scenario, Violations& list) {
  const auto& layers = scenario.training.recompute_layers;
  if (layers && scenario.training.recompute == Recompute::none)
    list.push_back({"training.recompute_layers", "nothing is recomputed",
                    "set training.recompute or leave recompute_layers out"});
}

}  // namespace

void check_model(const Model& model, const Training& training, Violations& list) {
  check_heads(model, list);
  check_latent(model, list);
  check_experts(model, list);
  check_sizes(model, training, list);
  if (model.positions == Positions::learned && model.max_positions < training.sequence)
    list.push_back({"training.sequence",
                    fmt::format("{} tokens are more than the model's {} learned positions",
                                training.sequence, model.max_positions),
                    "make it smaller or model.max_positions larger"});
  if (!model.causal && model.mtp_layers > 0)
    list.push_back({"model.mtp_layers", "an encoder predicts no next tokens",
                    "set mtp_layers = 0 or causal = true"});
  if (model.blocks != Blocks::sequential && model.norm_placement != NormPlacement::pre)
    list.push_back(
        {"model.norm_placement",
         fmt::format("{} in a layer whose halves run in parallel", name_of(model.norm_placement)),
         "set norm_placement = \"pre\" or blocks = \"sequential\""});
}

void check_split(const Scenario& scenario, Violations& list) {
  const Parallelism& p = scenario.parallelism;
  check_recomputed_layers(scenario, list);
  if (p.tp < 1 || p.cp < 1 || p.ep < 1 || scenario.model.heads < 1 || scenario.model.kv_heads < 1)
    return;
  check_tensor_split(scenario.model, p, list);
  check_expert_split(scenario.model, p, list);
  check_context_split(scenario, list);
  check_sequence_split(scenario, list);
}

}  // namespace scapesim::spec
