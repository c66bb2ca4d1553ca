// SPDX-License-Identifier: Apache-2.0
// What stands before and behind the transformer layers: embedding, output with loss, multi-token
// prediction.
#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/workload/shape.hpp"

namespace scapesim::workload {

namespace {

using graph::CollectiveKind;
using std::int64_t;

CollectiveKind sum_of(const Shape& s) {
  return s.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
}

/// [M5] Cross-entropy as Megatron-LM runs it (fp32, unfused): convert, maximum, subtract, exponent,
/// sum, divide forward; scale and convert backward. Bytes per logit.
constexpr double kLossForward = 6 + 4 + 8 + 8 + 4 + 8;
constexpr double kLossBackward = 8 + 6;

/// [M216] One kernel finds maximum and sum and overwrites the logits with their gradient; a second
/// scales it in the backward pass. Elements per logit.
constexpr double kFusedForward = 1 + 2;
constexpr double kFusedBackward = 2;

/// [M454] PyTorch's cross-entropy on logits cast to fp32: cast and log-softmax forward; zeros for
/// the gradient, that of log-softmax, and the cast back. Bytes per logit.
constexpr double kPyTorchForward = 6 + 8;
constexpr double kPyTorchBackward = 4 + 12 + 6;

/// Bytes per logit and kernels of a direction.
struct LossPass {
  double bytes = 0;
  int launches = 1;
};
LossPass loss_forward(const Shape& s, spec::Loss loss) {
  switch (loss) {
    case spec::Loss::unfused:
      return {kLossForward, 6};
    case spec::Loss::fused:
      return {s.element * kFusedForward, 1};
    case spec::Loss::pytorch:
      return {kPyTorchForward, 2};
  }
  throw InternalError("loss");
}
LossPass loss_backward(const Shape& s, spec::Loss loss) {
  switch (loss) {
    case spec::Loss::unfused:
      return {kLossBackward, 2};
    case spec::Loss::fused:
      return {s.element * kFusedBackward, 1};
    case spec::Loss::pytorch:
      return {kPyTorchBackward, 3};
  }
  throw InternalError("loss");
}

double logits_of(const Shape& s) { return times(s.tokens, s.vocab); }

/// Statistics per token over the parts of the vocabulary: Megatron-LM sums maximum, target's logit
/// and sum of exponents one after the other; a fused loss gathers all three at once.
void add_loss_exchange(Operations& list, const Shape& s, spec::Loss loss) {
  if (s.tp == 1) return;
  const Bytes statistic(static_cast<double>(s.tokens) * kFloat);
  const auto add = [&](std::string name, CollectiveKind kind, Bytes bytes) {
    list.push_back(
        {std::move(name), Exchange{.kind = kind, .axis = graph::Axis::tensor, .bytes = bytes}});
  };
  if (loss == spec::Loss::fused)
    return add("loss all-gather", CollectiveKind::all_gather,
               statistic * static_cast<double>(3 * s.tp));
  for (const char* what : {"maximum", "target", "sum"})
    add(std::string("loss ") + what + " all-reduce", CollectiveKind::all_reduce, statistic);
}

void add_loss_pass(Operations& list, const Shape& s, const char* name, const LossPass& pass) {
  list.push_back(
      {name, Pass{.traffic = Bytes(logits_of(s) * pass.bytes), .launches = pass.launches}});
}

void add_loss_forward(Operations& list, const Shape& s, spec::Loss loss) {
  add_loss_pass(list, s, "loss", loss_forward(s, loss));
  add_loss_exchange(list, s, loss);
}

void add_loss_backward(Operations& list, const Shape& s, spec::Loss loss) {
  add_loss_pass(list, s, "loss backward", loss_backward(s, loss));
}

/// Loss [M61]: bf16 logits, their fp32 copy that becomes the softmax, and the bf16 gradient; a
/// fused loss has the logits only.
Bytes loss_bytes(const Shape& s, spec::Loss loss) {
  if (loss == spec::Loss::fused) return Bytes(logits_of(s) * s.element);
  return Bytes(logits_of(s) * (s.element + kFloat + s.element));
}

Linear logits_layer(const Shape& s) {
  return {.name = "logits", .out = s.vocab, .in = s.hidden, .cast = false, .narrowable = false};
}
Linear dense_layer(const Shape& s) {
  return {.name = "mlm dense", .out = s.hidden, .in = s.hidden, .split = Split::none};
}
Linear pooler_layer(const Shape& s) { return {"pooler", s.hidden, s.hidden}; }

bool final_norm(const spec::Model& model) {
  return model.norm_placement != spec::NormPlacement::post;
}

std::vector<Tensor> head_tensors(const spec::Model& model, const Shape& s) {
  std::vector<Tensor> list;
  if (final_norm(model)) add_norm_tensor(list, "final norm", model, s.hidden);
  if (model.mlm_head) {
    add_weight(list, dense_layer(s), true);
    add_norm_tensor(list, "mlm norm", model, s.hidden);
    list.push_back({"output.bias", s.vocab, true});
  }
  if (!model.tied_embeddings)
    list.push_back({.name = "output.weight", .numel = s.vocab * s.hidden, .rows = s.vocab});
  if (model.pooler) {
    add_weight(list, pooler_layer(s), true);
    add_weight(list, {"classifier", 2, s.hidden}, true);
  }
  return list;
}

void add_head_forward(Operations& list, const spec::Model& model, const Shape& s, spec::Loss loss) {
  if (final_norm(model)) add_pass(list, "final norm", s, s.norm_tokens, 2 * s.hidden);
  if (model.pooler) add_gemm(list, "pooler", s.batch, s.hidden, s.hidden);
  if (model.mlm_head) {
    add_gemm(list, "mlm dense", s.norm_tokens, s.hidden, s.hidden);
    add_pass(list, "mlm activation", s, s.norm_tokens, 2 * s.hidden);
    add_pass(list, "mlm norm", s, s.norm_tokens, 2 * s.hidden);
  }
  add_columns_forward(list, s, logits_layer(s));
  add_loss_forward(list, s, loss);
}

void add_head_backward(Operations& list, const spec::Model& model, const Shape& s,
                       const spec::Training& training) {
  add_loss_backward(list, s, training.loss);
  // [M430] A matrix shared with a frozen embedding is frozen.
  Shape logits = s;
  if (model.tied_embeddings && training.frozen_layers > 0) logits.trains = false;
  add_columns_backward(list, logits, logits_layer(s));
  if (model.mlm_head) {
    add_pass(list, "mlm norm backward", s, s.norm_tokens, 3 * s.hidden, 2);
    add_pass(list, "mlm activation backward", s, s.norm_tokens, 3 * s.hidden);
    add_linear_backward(list, s, s.norm_tokens, dense_layer(s));
  }
  if (model.pooler) add_linear_backward(list, s, s.batch, pooler_layer(s));
  if (final_norm(model))
    add_pass(list, "final norm backward", s, s.norm_tokens, 3 * s.hidden, s.trains ? 2 : 1);
}

Layer empty_layer(std::string name, Role role) {
  Layer layer;
  layer.name = std::move(name);
  layer.role = role;
  return layer;
}

}  // namespace

// [M212] A rank looks up its words; the sum over the group makes the vectors whole.
Layer embedding_layer(const spec::Model& model, const Shape& s) {
  Layer layer = empty_layer("embedding", Role::embedding);
  layer.tensors.push_back(
      {.name = "embedding.weight", .numel = s.vocab * s.hidden, .rows = s.vocab});
  if (model.positions == spec::Positions::learned)
    layer.tensors.push_back({.name = "positions.weight",
                             .numel = int64_t{model.max_positions} * s.hidden,
                             .rows = model.max_positions});
  if (model.token_types > 0)
    layer.tensors.push_back({.name = "token types.weight",
                             .numel = int64_t{model.token_types} * s.hidden,
                             .rows = model.token_types});
  add_pass(layer.forward, "lookup", s, s.tokens, 2 * s.hidden);
  if (s.tp > 1)
    add_exchange(
        layer.forward, s,
        {.name = "embedding sum", .kind = sum_of(s), .elements = times(s.tokens, s.hidden)});
  if (s.sequence_parallel)
    add_exchange(layer.backward, s,
                 {.name = "embedding gradient all-gather",
                  .kind = CollectiveKind::all_gather,
                  .elements = times(s.tokens, s.hidden)});
  if (model.embedding_norm) {
    add_norm_tensor(layer.tensors, "embedding norm", model, s.hidden);
    add_pass(layer.forward, "embedding norm", s, s.norm_tokens, 2 * s.hidden);
    add_pass(layer.backward, "embedding norm backward", s, s.norm_tokens, 3 * s.hidden, 2);
    layer.kept = activation_bytes(s, times(s.norm_tokens, s.hidden));
  }
  if (s.hidden_dropout) {
    const double elements = times(s.norm_tokens, s.hidden);
    add_dropout(layer.forward, "embedding dropout", s, elements);
    add_dropout(layer.backward, "embedding dropout backward", s, elements);
    layer.kept += activation_bytes(s, mask_elements(s, elements));
  }
  // bf16 read, fp32 read and write
  add_pass(layer.backward, "scatter", s, s.tokens, 5 * s.hidden);
  return layer;
}

Layer head_layer(const spec::Model& model, const spec::Training& training, const Shape& s) {
  Layer layer = empty_layer("head", Role::head);
  layer.tensors = head_tensors(model, s);
  add_head_forward(layer.forward, model, s, training.loss);
  add_head_backward(layer.backward, model, s, training);
  // [M60] Input and output of the last norm; [M430] the output is not needed for frozen logits.
  const int64_t norms = final_norm(model) ? (s.trains ? 2 : 1) : 1;
  const int64_t vectors = norms + (model.mlm_head ? 3 : 0);
  layer.kept = activation_bytes(s, times(vectors * s.hidden, s.norm_tokens));
  layer.transient = loss_bytes(s, training.loss);
  return layer;
}

// [M217] Norms of the hidden state and of the next token's embedding, a projection of both
// together, a transformer layer, and the shared head with a norm of its own.
Layer prediction_layer(const spec::Model& model, Layer block, const Layer& head, const Shape& s) {
  const Linear joined{
      .name = "joined projection", .out = s.hidden, .in = 2 * s.hidden, .split = Split::none};
  Layer layer = std::move(block);
  layer.role = Role::prediction;
  Operations forward;
  add_pass(forward, "lookup", s, s.tokens, 2 * s.hidden);
  add_pass(forward, "input norms", s, s.norm_tokens, 4 * s.hidden, 2);
  add_gemm(forward, joined.name, s.norm_tokens, joined.out, joined.in);
  layer.forward.insert(layer.forward.begin(), forward.begin(), forward.end());
  layer.forward.insert(layer.forward.end(), head.forward.begin(), head.forward.end());

  layer.backward.insert(layer.backward.begin(), head.backward.begin(), head.backward.end());
  add_linear_backward(layer.backward, s, s.norm_tokens, joined);
  add_pass(layer.backward, "input norms backward", s, s.norm_tokens, 6 * s.hidden, 4);
  add_pass(layer.backward, "scatter", s, s.tokens, 5 * s.hidden);

  std::vector<Tensor> before;
  add_norm_tensor(before, "embedding norm", model, s.hidden);
  add_norm_tensor(before, "hidden norm", model, s.hidden);
  add_weight(before, joined, false);
  layer.tensors.insert(layer.tensors.begin(), before.begin(), before.end());
  add_norm_tensor(layer.tensors, "final norm", model, s.hidden);
  layer.kept += activation_bytes(s, times(4 * s.hidden, s.norm_tokens)) + head.kept;
  layer.transient = std::max(layer.transient, head.transient);
  return layer;
}

}  // namespace scapesim::workload
