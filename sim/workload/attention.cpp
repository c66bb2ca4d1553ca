// SPDX-License-Identifier: Apache-2.0
// The attention branch of a layer: grouped queries or a latent vector, split over heads and
// sequence.
#include <algorithm>

#include "sim/workload/shape.hpp"

namespace scapesim::workload {

namespace {

using graph::Axis;
using graph::CollectiveKind;
using std::int64_t;

int64_t share(int64_t whole, int64_t parts) { return (whole + parts - 1) / parts; }

/// Widths of a latent attention's inner vectors.
struct Latent {
  int64_t query, key_value;  ///< compressed
  int64_t rope;              ///< the rotated part of a key, one for all heads
  int64_t expanded;          ///< keys without it, and values, of the rank's heads
};

Latent latent_of(const spec::Model& model, const Shape& s) {
  return {.query = model.q_lora_rank,
          .key_value = model.kv_lora_rank,
          .rope = model.rope_head_dim,
          .expanded = s.heads * (s.head_dim - model.rope_head_dim + s.value_dim)};
}

bool is_latent(const spec::Model& model) { return model.attention == spec::AttentionKind::latent; }

bool on_qkv(const spec::Model& model) { return model.biases != spec::Biases::none; }
bool on_projection(const spec::Model& model) {
  return model.biases == spec::Biases::attention || model.biases == spec::Biases::all;
}

Linear qkv_of(const spec::Model& model, const Shape& s) {
  using enum spec::LoraTarget;
  Linear layer{
      .name = "qkv", .out = s.query + s.key + s.value, .in = s.hidden, .bias = on_qkv(model)};
  const auto add = [&](spec::LoraTarget target, int64_t out) {
    if (adapts(s, target)) layer.adapters.push_back({std::string(name_of(target)), out});
  };
  add(qkv_proj, layer.out);
  add(q_proj, s.query);
  add(k_proj, s.key);
  add(v_proj, s.value);
  return layer;
}
Linear projection_of(const spec::Model& model, const Shape& s) {
  Linear layer{.name = "projection",
               .out = s.hidden,
               .in = s.attended,
               .bias = on_projection(model),
               .split = Split::rows};
  if (adapts(s, spec::LoraTarget::o_proj)) layer.adapters.push_back({"o_proj", s.hidden});
  return layer;
}

void add_latent_tensors(std::vector<Tensor>& list, const spec::Model& model, const Shape& s) {
  const Latent latent = latent_of(model, s);
  const bool bias = on_qkv(model);
  if (latent.query > 0) {
    add_weight(list, {.name = "q down", .out = latent.query, .in = s.hidden, .split = Split::none},
               bias);
    list.push_back({.name = "q norm",
                    .numel = latent.query,
                    .always_selected = true,
                    .whole = Whole::sequence});
    add_weight(list, {"q up", s.query, latent.query}, false);
  } else {
    add_weight(list, {"q", s.query, s.hidden}, bias);
  }
  add_weight(list,
             {.name = "kv down",
              .out = latent.key_value + latent.rope,
              .in = s.hidden,
              .split = Split::none},
             bias);
  list.push_back({.name = "kv norm",
                  .numel = latent.key_value,
                  .always_selected = true,
                  .whole = Whole::sequence});
  add_weight(list, {"kv up", latent.expanded, latent.key_value}, false);
}

/// [M1] In Megatron-LM's order.
std::vector<Tensor> attention_tensors(const spec::Model& model, const Shape& s) {
  std::vector<Tensor> list;
  if (is_latent(model))
    add_latent_tensors(list, model, s);
  else
    add_weight(list, qkv_of(model, s), on_qkv(model));
  if (model.qk_norm != spec::QkNorm::none) {
    const bool full = model.qk_norm == spec::QkNorm::full;
    const Whole whole = full ? Whole::never : Whole::heads;
    for (const auto& [name, width] : {std::pair{"q norm", s.query}, std::pair{"k norm", s.key}})
      list.push_back({.name = name,
                      .numel = full ? width : s.head_dim,
                      .always_selected = true,
                      .whole = whole});
  }
  add_weight(list, projection_of(model, s), on_projection(model));
  return list;
}

std::vector<Tensor> attention_adapters(const spec::Model& model, const Shape& s) {
  std::vector<Tensor> list;
  add_adapter_tensors(list, s, qkv_of(model, s));
  add_adapter_tensors(list, s, projection_of(model, s));
  return list;
}

/// [M210] Compressed vectors are computed by every rank of a tensor-parallel group, or for its
/// share of the sequence; their expansion is split over heads (DeepSeek-AI 2024 sec. 2.1).
void add_latent_forward(Operations& list, const spec::Model& model, const Shape& s) {
  const Latent latent = latent_of(model, s);
  if (latent.query > 0) {
    add_gemm(list, "q down", s.norm_tokens, latent.query, s.hidden);
    add_pass(list, "q norm", s, s.norm_tokens, 2 * latent.query);
    add_columns_forward(list, s, {"q up", s.query, latent.query});
  } else {
    add_columns_forward(list, s, {"q", s.query, s.hidden});
  }
  add_gemm(list, "kv down", s.norm_tokens, latent.key_value + latent.rope, s.hidden);
  add_pass(list, "kv norm", s, s.norm_tokens, 2 * latent.key_value);
  if (s.sequence_parallel)
    add_exchange(list, s,
                 {.name = "rotated key all-gather",
                  .kind = CollectiveKind::all_gather,
                  .elements = times(s.tokens, latent.rope)});
  add_columns_forward(list, s, {"kv up", latent.expanded, latent.key_value});
  add_pass(list, "rope", s, s.tokens, 2 * (s.heads + 1) * latent.rope, 2);
  add_pass(list, "key assembly", s, s.tokens, 2 * s.key);
}

void add_latent_backward(Operations& list, const spec::Model& model, const Shape& s) {
  const Latent latent = latent_of(model, s);
  add_pass(list, "key assembly backward", s, s.tokens, 2 * s.key);
  add_pass(list, "rope backward", s, s.tokens, 2 * (s.heads + 1) * latent.rope, 2);
  add_columns_backward(list, s, {"kv up", latent.expanded, latent.key_value});
  if (s.tp > 1)
    add_exchange(
        list, s,
        {.name = "rotated key gradient",
         .kind = s.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
         .elements = times(s.tokens, latent.rope)});
  add_pass(list, "kv norm backward", s, s.norm_tokens, 3 * latent.key_value, 2);
  add_linear_backward(list, s, s.norm_tokens,
                      {"kv down", latent.key_value + latent.rope, s.hidden});
  if (latent.query == 0) return add_columns_backward(list, s, {"q", s.query, s.hidden});
  add_columns_backward(list, s, {"q up", s.query, latent.query});
  add_pass(list, "q norm backward", s, s.norm_tokens, 3 * latent.query, 2);
  add_linear_backward(list, s, s.norm_tokens, {"q down", latent.query, s.hidden});
}

void add_qkv_forward(Operations& list, const spec::Model& model, const Shape& s) {
  if (is_latent(model)) return add_latent_forward(list, model, s);
  add_columns_forward(list, s, qkv_of(model, s));
  if (model.qk_norm != spec::QkNorm::none)
    add_pass(list, "qk norm", s, s.tokens, 2 * (s.query + s.key), 2);
  if (model.positions == spec::Positions::rope)
    add_pass(list, "rope", s, s.tokens, 2 * (s.query + s.key), 2);
}

void add_qkv_backward(Operations& list, const spec::Model& model, const Shape& s) {
  if (is_latent(model)) return add_latent_backward(list, model, s);
  if (model.positions == spec::Positions::rope)
    add_pass(list, "rope backward", s, s.tokens, 2 * (s.query + s.key), 2);
  if (model.qk_norm != spec::QkNorm::none)
    add_pass(list, "qk norm backward", s, s.tokens, 3 * (s.query + s.key), 4);
  add_columns_backward(list, s, qkv_of(model, s));
}

Attention core_of(const spec::Model& model, const Shape& s, Reach reach) {
  Attention core{
      .batch = s.batch, .sequence = s.sequence, .heads = s.heads, .head_dim = s.head_dim};
  core.causal = model.causal;
  core.core = s.core;
  if (s.kv_heads != s.heads) core.kv_heads = s.kv_heads;
  if (s.value_dim != s.head_dim) core.value_head_dim = s.value_dim;
  core.document = s.document;
  if (reach == Reach::window) core.window = model.window;
  return core;
}

/// Exchanges of a direction of ring attention, elements per step.
struct Ring {
  std::string name;
  double elements = 0;
};

/// [M213] Ring attention (Liu 2023) with the sequence dealt to the ranks so that the causal mask
/// leaves all the same work: the own block first, then in each of c-1 steps half of a block, while
/// the next keys and values arrive.
void add_ring_attention(Operations& list, const Shape& s, const Attention& core, const Ring& ring) {
  const int64_t part = share(s.sequence, s.cp);
  for (int64_t step = 0; step < s.cp; ++step) {
    const std::string name =
        (core.backward ? "attention backward step " : "attention step ") + std::to_string(step);
    if (step + 1 < s.cp)
      add_exchange(list, s,
                   {.name = ring.name + " step " + std::to_string(step),
                    .kind = CollectiveKind::send_recv,
                    .axis = Axis::context,
                    .elements = ring.elements,
                    .overlaps = name});
    Attention one = core;
    one.sequence = part;
    if (core.document) one.document = *core.document / static_cast<double>(s.cp);
    if (step > 0) {
      one.causal = false;
      one.kv_sequence = core.causal ? share(part, 2) : part;
    }
    list.push_back({name, one});
  }
}

/// Heads for sequence: every rank of the context group takes whole sequences of its heads
/// (Jacobs 2023).
void add_ulysses_attention(Operations& list, const Shape& s, Attention core, int64_t before,
                           int64_t after) {
  const std::string name = core.backward ? "attention backward" : "attention";
  core.heads = share(s.heads, s.cp);
  core.kv_heads = share(s.kv_heads, s.cp);
  const auto exchange = [&](const char* what, int64_t width) {
    add_exchange(list, s,
                 {.name = name + what,
                  .kind = CollectiveKind::all_to_all,
                  .axis = Axis::context,
                  .elements = times(s.tokens, width)});
  };
  exchange(" input all-to-all", before);
  list.push_back({name, core});
  exchange(" output all-to-all", after);
}

/// [M263] Elements of the score matrices of a micro-batch on the rank.
double scores_of(const Shape& s) { return times(s.batch * s.heads, s.sequence * s.sequence); }

/// [M458] Megatron-LM's fused scale, mask and softmax takes 17 to 2,048 keys, a multiple of four of
/// them and of matrices; else five PyTorch kernels run: cast to fp32, scale, mask, softmax, cast.
bool fuses_softmax(const Shape& s) {
  return s.element < kFloat && s.sequence > 16 && s.sequence <= 2048 && s.sequence % 4 == 0 &&
         (s.batch * s.heads) % 4 == 0;
}
struct Softmax {
  double bytes = 0;  ///< per score
  int launches = 1;
};
/// Of matrices under a causal mask the fused kernel reads the half below the diagonal and writes
/// zeros above it.
Softmax softmax_of(const Shape& s, const Attention& core) {
  const double reads = core.backward ? 2 : 1;
  const double visits = reads + 1;
  if (fuses_softmax(s)) return {(reads * (core.causal ? 0.5 : 1.0) + 1) * s.element, 1};
  constexpr double kScale = 2 * kFloat, kMask = 2 * kFloat + 1;
  const double cast = s.element + kFloat;
  return {2 * cast + kScale + kMask + visits * kFloat, 5};
}

/// [M417] Batched products take and leave heads apart: eager frameworks copy them into the rows
/// that linear layers take.
void add_heads_copy(Operations& list, const char* name, const Shape& s, int64_t width) {
  if (s.kernels == spec::ElementWise::eager) add_pass(list, name, s, s.tokens, 2 * width);
}

/// [M262] Scores are written, read by a fused scale, mask and softmax, written and read again; the
/// causal mask saves nothing. Backward: value gradients, gradients of the probabilities, of the
/// scores, of queries and keys (Narayanan 2021 sec. 4.2, Korthikanti 2022 fig. 3). [M416] Dropout
/// between softmax and values.
void add_unfused_attention(Operations& list, const Shape& s, const Attention& core) {
  const int64_t groups = s.batch * s.heads;
  const auto product = [&](const char* name, int64_t m, int64_t n, int64_t k) {
    list.push_back({name, Gemm{.m = m,
                               .n = n,
                               .k = k,
                               .groups = groups,
                               .batched = true,
                               .aligned = aligned(s, s.head_dim) && aligned(s, s.value_dim)}});
  };
  const auto softmax = [&](const char* name) {
    const Softmax pass = softmax_of(s, core);
    list.push_back(
        {name, Pass{.traffic = Bytes(pass.bytes * scores_of(s)), .launches = pass.launches}});
  };
  const int64_t length = s.sequence;
  if (!core.backward) {
    product("attention scores", length, length, s.head_dim);
    softmax("attention softmax");
    if (s.attention_dropout) add_dropout(list, "attention dropout", s, scores_of(s));
    product("attention values", length, s.value_dim, length);
    add_heads_copy(list, "attention heads joined", s, s.attended);
    return;
  }
  add_heads_copy(list, "attention backward heads parted", s, s.attended);
  product("attention backward values", length, s.value_dim, length);
  product("attention backward probabilities", length, length, s.value_dim);
  if (s.attention_dropout) add_dropout(list, "attention backward dropout", s, scores_of(s));
  softmax("attention backward softmax");
  product("attention backward queries", length, s.head_dim, length);
  product("attention backward keys", length, s.head_dim, length);
  add_heads_copy(list, "attention backward gradients joined", s, s.query + s.key + s.value);
}

void add_core(Operations& list, const spec::Parallelism& parallelism, const Shape& s,
              const Attention& core) {
  const int64_t inputs = s.query + s.key + s.value;
  if (s.core == spec::AttentionCore::unfused)
    add_unfused_attention(list, s, core);
  else if (s.cp == 1)
    list.push_back({core.backward ? "attention backward" : "attention", core});
  else if (parallelism.context_method == spec::ContextMethod::all_to_all)
    add_ulysses_attention(list, s, core, core.backward ? s.attended : inputs,
                          core.backward ? inputs : s.attended);
  else
    add_ring_attention(list, s, core,
                       {.name = core.backward ? "keys, values and gradients" : "keys and values",
                        .elements = (core.backward ? 2 : 1) * times(s.tokens, s.key + s.value)});
}

/// [M60] Elements kept: q k v, what rotating or normalising makes of q and k (v stays a view), the
/// output of attention; of a latent attention also both sides of its inner norms.
double kept_elements(const spec::Model& model, const Shape& s) {
  if (is_latent(model)) {
    const Latent latent = latent_of(model, s);
    return times(s.norm_tokens, 2 * latent.query + 2 * latent.key_value + latent.rope) +
           times(s.tokens, 2 * s.query + latent.expanded + s.key + s.attended);
  }
  const bool new_keys =
      model.positions == spec::Positions::rope || model.qk_norm != spec::QkNorm::none;
  const int64_t turned = new_keys ? s.query + s.key : 0;
  return times(s.tokens, s.query + s.key + s.value + turned + s.attended);
}

}  // namespace

Branch attention_branch(const spec::Model& model, const spec::Parallelism& parallelism,
                        const Shape& s, Reach reach) {
  Attention core = core_of(model, s, reach);
  Branch branch;
  branch.tensors = attention_tensors(model, s);
  const Linear qkv = qkv_of(model, s), projection = projection_of(model, s);
  branch.adapters = attention_adapters(model, s);
  branch.keeps_input = s.trains || !qkv.adapters.empty();
  add_qkv_forward(branch.forward, model, s);
  add_core(branch.forward, parallelism, s, core);
  add_rows_forward(branch.forward, s, projection);
  core.backward = true;
  add_rows_backward(branch.backward, s, projection);
  add_core(branch.backward, parallelism, s, core);
  add_qkv_backward(branch.backward, model, s);
  branch.kept =
      kept_elements(model, s) + kept_by_adapters(s, qkv) + kept_by_adapters(s, projection);
  // What recomputing the core saves: statistics of the softmax, or its whole output.
  branch.statistics =
      s.core == spec::AttentionCore::unfused
          ? activation_bytes(s, scores_of(s)) * (s.attention_dropout ? 2.0 : 1.0) +
                Bytes(s.attention_dropout ? scores_of(s) : 0)
          : Bytes(static_cast<double>(s.tokens) * kFloat * static_cast<double>(s.heads));
  return branch;
}

}  // namespace scapesim::workload
