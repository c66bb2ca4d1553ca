// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/workload.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace scapesim::workload {

namespace {

using std::int64_t;

// Bytes of one element of activations and of the loss.
constexpr double kActivation = 2;  // bf16 or fp16 under mixed precision; fp8 keeps bf16 activations
constexpr double kFloat = 4;

/// Dimensions of one micro-batch, spelled out once.
struct Shape {
  int64_t batch, sequence, tokens;
  int64_t hidden, ffn, ffn_in, heads, head_dim, query, key_value, vocab;
  double activation;
};

bool gated(const spec::Model& model) {
  return model.activation == spec::Activation::swiglu ||
         model.activation == spec::Activation::geglu;
}

Shape shape_of(const spec::Model& model, const spec::Training& training) {
  const int64_t query = int64_t{model.heads} * model.head_dim;
  const int64_t key_value = int64_t{model.kv_heads} * model.head_dim;
  return {.batch = training.micro_batch,
          .sequence = training.sequence,
          .tokens = training.micro_batch * training.sequence,
          .hidden = model.hidden,
          .ffn = model.ffn,
          .ffn_in = gated(model) ? 2 * int64_t{model.ffn} : model.ffn,
          .heads = model.heads,
          .head_dim = model.head_dim,
          .query = query,
          .key_value = key_value,
          .vocab = model.vocab,
          .activation = training.precision == spec::Precision::fp32 ? kFloat : kActivation};
}

Operation gemm(std::string name, int64_t m, int64_t n, int64_t k) {
  return {std::move(name), Gemm{.m = m, .n = n, .k = k}};
}

/// Traffic of `per_token` elements for every token.
Operation pass(std::string name, const Shape& s, int64_t per_token, int launches = 1) {
  const double elements = static_cast<double>(per_token) * static_cast<double>(s.tokens);
  return {std::move(name), Pass{.traffic = Bytes(elements * s.activation), .launches = launches}};
}

/// Input and weight gradient of a linear layer y[tokens,out] = x[tokens,in] W.
void add_linear_backward(std::vector<Operation>& list, const std::string& name, const Shape& s,
                         int64_t out, int64_t in) {
  list.push_back(gemm(name + " dgrad", s.tokens, in, out));
  list.push_back(
      {name + " wgrad", Gemm{.m = out, .n = in, .k = s.tokens, .accumulate_fp32 = true}});
}

Tensor norm_weight(const std::string& name, const spec::Model& model) {
  const bool with_bias = model.norm == spec::Norm::layernorm;
  return {name, int64_t{model.hidden} * (with_bias ? 2 : 1), true};
}

void add_weight(std::vector<Tensor>& list, const std::string& name, int64_t out, int64_t in,
                bool bias) {
  list.push_back({name + ".weight", out * in, false});
  if (bias) list.push_back({name + ".bias", out, true});
}

/// [M1] Parameters of one transformer layer, in Megatron-LM's order.
std::vector<Tensor> layer_tensors(const spec::Model& model, const Shape& s) {
  std::vector<Tensor> list;
  list.push_back(norm_weight("norm1", model));
  add_weight(list, "qkv", s.query + 2 * s.key_value, s.hidden, model.biases);
  add_weight(list, "projection", s.hidden, s.query, model.biases);
  list.push_back(norm_weight("norm2", model));
  add_weight(list, "fc1", s.ffn_in, s.hidden, model.biases);
  add_weight(list, "fc2", s.hidden, s.ffn, model.biases);
  return list;
}

/// [M4] Element-wise traffic in elements per token: each tensor read or written once per kernel.
std::vector<Operation> layer_forward(const spec::Model& model, const Shape& s) {
  const int64_t rotated = s.query + s.key_value;
  std::vector<Operation> list;
  list.push_back(pass("norm1", s, 2 * s.hidden));
  list.push_back(gemm("qkv", s.tokens, s.query + 2 * s.key_value, s.hidden));
  if (model.positions == spec::Positions::rope) list.push_back(pass("rope", s, 2 * rotated, 2));
  list.push_back(
      {"attention",
       Attention{
           .batch = s.batch, .sequence = s.sequence, .heads = s.heads, .head_dim = s.head_dim}});
  list.push_back(gemm("projection", s.tokens, s.hidden, s.query));
  list.push_back(pass("residual1", s, 3 * s.hidden));
  list.push_back(pass("norm2", s, 2 * s.hidden));
  list.push_back(gemm("fc1", s.tokens, s.ffn_in, s.hidden));
  list.push_back(pass("activation", s, s.ffn_in + s.ffn));
  list.push_back(gemm("fc2", s.tokens, s.hidden, s.ffn));
  list.push_back(pass("residual2", s, 3 * s.hidden));
  return list;
}

std::vector<Operation> layer_backward(const spec::Model& model, const Shape& s) {
  const int64_t rotated = s.query + s.key_value;
  std::vector<Operation> list;
  add_linear_backward(list, "fc2", s, s.hidden, s.ffn);
  list.push_back(pass("activation backward", s, 2 * s.ffn_in + s.ffn));
  add_linear_backward(list, "fc1", s, s.ffn_in, s.hidden);
  list.push_back(pass("norm2 backward", s, 3 * s.hidden, 2));
  list.push_back(pass("residual2 backward", s, 3 * s.hidden));
  add_linear_backward(list, "projection", s, s.hidden, s.query);
  list.push_back({"attention backward", Attention{.batch = s.batch,
                                                  .sequence = s.sequence,
                                                  .heads = s.heads,
                                                  .head_dim = s.head_dim,
                                                  .backward = true}});
  if (model.positions == spec::Positions::rope)
    list.push_back(pass("rope backward", s, 2 * rotated, 2));
  add_linear_backward(list, "qkv", s, s.query + 2 * s.key_value, s.hidden);
  list.push_back(pass("norm1 backward", s, 3 * s.hidden, 2));
  list.push_back(pass("residual1 backward", s, 3 * s.hidden));
  return list;
}

/// [M60] Elements per token that one layer keeps for its backward pass with flash attention:
/// inputs of the norms and of every GEMM, both sides of the activation, q k v and the output of
/// attention. Rotary embedding writes new q and k while v stays a view of the whole qkv output.
/// Method of Korthikanti 2022 sec. 4, without its attention square and its dropout masks.
int64_t kept_elements(const spec::Model& model, const Shape& s) {
  const int64_t qkv = s.query + 2 * s.key_value;
  const int64_t rotated = model.positions == spec::Positions::rope ? s.query + s.key_value : 0;
  const int64_t attention_output = s.query;
  const int64_t norms = 4 * s.hidden;
  return norms + qkv + rotated + attention_output + s.ffn_in + s.ffn;
}

/// [M60] Bytes per micro-batch that live from forward to backward. Recomputing the attention core
/// saves only the statistics of its softmax: q, k, v are its inputs and the projection needs its
/// output. Recomputing the layer leaves the layer's input.
Bytes kept_bytes(const spec::Model& model, const Shape& s, spec::Recompute recompute) {
  const auto tokens = static_cast<double>(s.tokens);
  const Bytes all(tokens * static_cast<double>(kept_elements(model, s)) * s.activation);
  const Bytes statistics(tokens * kFloat * static_cast<double>(s.heads));
  switch (recompute) {
    case spec::Recompute::none:
      return all + statistics;
    case spec::Recompute::selective:
      return all;
    case spec::Recompute::full:
      return Bytes(tokens * static_cast<double>(s.hidden) * s.activation);
  }
  throw InternalError("recompute");
}

Layer transformer_layer(const spec::Model& model, const spec::Training& training, const Shape& s,
                        int number) {
  Layer layer{.name = "layer " + std::to_string(number),
              .forward = layer_forward(model, s),
              .backward = {},
              .tensors = layer_tensors(model, s),
              .kept = {},
              .transient = {},
              .like = 0};
  for (Tensor& tensor : layer.tensors) tensor.name = layer.name + " " + tensor.name;
  if (training.recompute == spec::Recompute::full) layer.backward = layer.forward;
  if (training.recompute == spec::Recompute::selective)
    for (const Operation& operation : layer.forward)
      if (operation.name == "attention") layer.backward.push_back(operation);
  for (Operation& operation : layer.backward) operation.name += " recomputed";
  const auto backward = layer_backward(model, s);
  layer.backward.insert(layer.backward.end(), backward.begin(), backward.end());

  layer.kept = kept_bytes(model, s, training.recompute);
  layer.transient = kept_bytes(model, s, spec::Recompute::none) - layer.kept;
  return layer;
}

Layer embedding_layer(const spec::Model& model, const Shape& s) {
  Layer layer{.name = "embedding",
              .forward = {},
              .backward = {},
              .tensors = {},
              .kept = {},
              .transient = {},
              .like = 0};
  layer.tensors.push_back({"embedding.weight", s.vocab * s.hidden, false});
  if (model.positions == spec::Positions::learned)
    layer.tensors.push_back({"positions.weight", int64_t{model.max_positions} * s.hidden, false});
  layer.forward.push_back(pass("lookup", s, 2 * s.hidden));
  layer.backward.push_back(pass("scatter", s, 5 * s.hidden));  // bf16 read, fp32 read and write
  return layer;
}

/// [M5] Cross-entropy as Megatron-LM runs it (fp32, unfused): convert, maximum, subtract, exponent,
/// sum, divide forward; scale and convert backward. Bytes per logit.
constexpr double kLossForward = 6 + 4 + 8 + 8 + 4 + 8;
constexpr double kLossBackward = 8 + 6;

Layer head_layer(const spec::Model& model, const Shape& s) {
  Layer layer{
      .name = "head", .forward = {}, .backward = {}, .tensors = {}, .kept = {}, .transient = {}};
  layer.tensors.push_back(norm_weight("final norm", model));
  if (!model.tied_embeddings) layer.tensors.push_back({"output.weight", s.vocab * s.hidden, false});
  const double logits = static_cast<double>(s.tokens) * static_cast<double>(s.vocab);
  layer.forward.push_back(pass("final norm", s, 2 * s.hidden));
  layer.forward.push_back(gemm("logits", s.tokens, s.vocab, s.hidden));
  layer.forward.push_back({"loss", Pass{.traffic = Bytes(logits * kLossForward), .launches = 6}});
  layer.backward.push_back(
      {"loss backward", Pass{.traffic = Bytes(logits * kLossBackward), .launches = 2}});
  add_linear_backward(layer.backward, "logits", s, s.vocab, s.hidden);
  layer.backward.push_back(pass("final norm backward", s, 3 * s.hidden, 2));

  // Loss [M61]: bf16 logits, their fp32 copy that becomes the softmax, and the bf16 gradient.
  layer.kept = Bytes(static_cast<double>(2 * s.hidden * s.tokens) * s.activation);
  layer.transient = Bytes(logits * (s.activation + kFloat + s.activation));
  return layer;
}

Flops forward_flops(const Layer& layer) {
  Flops sum;
  for (const Operation& operation : layer.forward) sum += flops_of(operation);
  return sum;
}

}  // namespace

Flops flops_of(const Operation& operation) {
  if (const auto* gemm = std::get_if<Gemm>(&operation.shape)) return cost::flops_of(*gemm);
  if (const auto* attention = std::get_if<Attention>(&operation.shape))
    return cost::flops_of(*attention);
  return Flops(0);
}

Seconds time_of(const Operation& operation, const cost::KernelCosts& costs) {
  return std::visit(
      [&]<class Shape>(const Shape& shape) {
        if constexpr (std::is_same_v<Shape, Exchange>)
          return Seconds(0);
        else
          return costs.time(shape);
      },
      operation.shape);
}

Workload workload_of(const spec::Model& model, const spec::Training& training) {
  const Shape s = shape_of(model, training);
  Workload work;
  work.layers.push_back(embedding_layer(model, s));
  for (int i = 0; i < model.layers; ++i) {
    work.layers.push_back(transformer_layer(model, training, s, i));
    work.layers.back().like = 1;
  }
  work.layers.push_back(head_layer(model, s));
  work.layers.back().like = work.layers.size() - 1;
  for (const Layer& layer : work.layers) {
    work.model_flops += 3.0 * forward_flops(layer);  // [M3] backward is two forwards
    for (const Tensor& tensor : layer.tensors) {
      work.parameters += tensor.numel;
      work.largest_tensor = std::max(work.largest_tensor, tensor.numel);
    }
  }
  return work;
}

std::vector<Tensor> tensors_of(const Workload& workload) {
  std::vector<Tensor> list;
  for (const Layer& layer : workload.layers)
    list.insert(list.end(), layer.tensors.begin(), layer.tensors.end());
  return list;
}

}  // namespace scapesim::workload
