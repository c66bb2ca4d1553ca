// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/workload.hpp"

#include <algorithm>
#include <optional>

#include "sim/base/check.hpp"
#include "sim/workload/shape.hpp"

namespace scapesim::workload {

namespace {

using std::int64_t;

void append(Operations& list, const Operations& more) {
  list.insert(list.end(), more.begin(), more.end());
}

bool placed_before(const spec::Model& model) {
  return model.norm_placement == spec::NormPlacement::pre ||
         model.norm_placement == spec::NormPlacement::both;
}
bool placed_behind(const spec::Model& model) {
  return model.norm_placement == spec::NormPlacement::branch ||
         model.norm_placement == spec::NormPlacement::both;
}
bool placed_last(const spec::Model& model) {
  return model.norm_placement == spec::NormPlacement::post;
}

/// Traffic in bytes per element of the residual stream.
void add_stream_pass(Operations& list, std::string name, const Shape& s, double bytes,
                     int launches) {
  list.push_back({std::move(name), Pass{.traffic = Bytes(times(s.norm_tokens, s.hidden) * bytes),
                                        .launches = launches}});
}

/// [M452] Under autocast the stream is fp32: a norm reads it and writes its cast, the gradient is
/// cast back.
void add_norm_forward(Operations& list, const Shape& s, const std::string& name) {
  if (s.autocast) return add_stream_pass(list, name, s, (kFloat + s.element) + 2 * s.element, 2);
  add_pass(list, name, s, s.norm_tokens, 2 * s.hidden);
}
void add_norm_backward(Operations& list, const Shape& s, const std::string& name) {
  if (s.autocast)
    return add_stream_pass(list, name + " backward", s, 3 * s.element + (s.element + kFloat), 3);
  add_pass(list, name + " backward", s, s.norm_tokens, 3 * s.hidden, 2);
}

/// Sum of the stream and a branch. [M452] Under autocast in fp32; backward its gradient is cast for
/// the branch, and both gradients of the stream are added.
void add_residual_forward(Operations& list, const Shape& s, const std::string& name,
                          int64_t terms) {
  if (s.autocast)
    return add_stream_pass(list, name, s, 2 * kFloat + static_cast<double>(terms - 1) * s.element,
                           1);
  add_pass(list, name, s, s.norm_tokens, (terms + 1) * s.hidden);
}
void add_residual_backward(Operations& list, const Shape& s, const std::string& name,
                           int64_t terms) {
  if (s.autocast)
    return add_stream_pass(list, name + " backward", s, (kFloat + s.element) + 3 * kFloat, 2);
  add_pass(list, name + " backward", s, s.norm_tokens, (terms + 1) * s.hidden);
}

/// The two halves of a layer with their norms and residual sums.
struct Block {
  Operations forward, backward;
  std::vector<Tensor> tensors;
  double kept = 0;
  Bytes statistics, routing;
};

void take(Block& block, const Branch& branch) {
  block.tensors.insert(block.tensors.end(), branch.tensors.begin(), branch.tensors.end());
  block.kept += branch.kept;
  block.statistics += branch.statistics;
  block.routing += branch.routing;
}

/// [M4] Element-wise traffic in elements per token: each tensor read or written once per kernel.
/// [M60] Input and output of each norm are kept, but not the output that is only summed.
void add_half(Block& block, const spec::Model& model, const Shape& s, const Branch& branch,
              const std::string& number) {
  const std::string norm = "norm" + number, behind = norm + " behind";
  if (placed_before(model)) {
    add_norm_tensor(block.tensors, norm, model, s.hidden);
    add_norm_forward(block.forward, s, norm);
  }
  append(block.forward, branch.forward);
  take(block, branch);
  if (placed_behind(model)) {
    add_norm_tensor(block.tensors, behind, model, s.hidden);
    add_norm_forward(block.forward, s, behind);
  }
  add_residual_forward(block.forward, s, "residual" + number, 2);
  if (placed_last(model)) {
    add_norm_tensor(block.tensors, norm, model, s.hidden);
    add_norm_forward(block.forward, s, norm);
  }

  Operations backward;
  if (placed_last(model)) add_norm_backward(backward, s, norm);
  if (placed_behind(model)) add_norm_backward(backward, s, behind);
  append(backward, branch.backward);
  if (placed_before(model)) add_norm_backward(backward, s, norm);
  add_residual_backward(backward, s, "residual" + number, 2);
  block.backward.insert(block.backward.begin(), backward.begin(), backward.end());
  const int64_t both = model.norm_placement == spec::NormPlacement::both ? 1 : 0;
  block.kept += times((2 + both) * s.hidden, s.norm_tokens);
}

/// Attention and MLP read the same input and are summed at once.
Block parallel_block(const spec::Model& model, const Shape& s, const Branch& attention,
                     const Branch& mlp) {
  const bool two = model.blocks == spec::Blocks::parallel;
  Block block;
  add_norm_tensor(block.tensors, "norm1", model, s.hidden);
  add_norm_forward(block.forward, s, "norm1");
  append(block.forward, attention.forward);
  take(block, attention);
  if (two) {
    add_norm_tensor(block.tensors, "norm2", model, s.hidden);
    add_norm_forward(block.forward, s, "norm2");
  }
  append(block.forward, mlp.forward);
  take(block, mlp);
  add_residual_forward(block.forward, s, "residual1", 3);

  append(block.backward, mlp.backward);
  if (two) add_norm_backward(block.backward, s, "norm2");
  append(block.backward, attention.backward);
  add_norm_backward(block.backward, s, "norm1");
  add_residual_backward(block.backward, s, "residual1", 3);
  block.kept += times((two ? 3 : 2) * s.hidden, s.norm_tokens);
  return block;
}

enum class Mlp { dense, experts };

/// What makes two transformer layers differ in their operations.
struct Variety {
  Mlp mlp = Mlp::dense;
  Reach reach = Reach::all;
  spec::Recompute recompute = spec::Recompute::none;
  bool operator==(const Variety&) const = default;
};

Block block_of(const spec::Model& model, const spec::Parallelism& parallelism, const Shape& s,
               const Variety& variety) {
  const Branch attention = attention_branch(model, parallelism, s, variety.reach);
  const Branch mlp = variety.mlp == Mlp::experts ? expert_branch(model, s) : mlp_branch(model, s);
  if (model.blocks != spec::Blocks::sequential) return parallel_block(model, s, attention, mlp);
  Block block;
  add_half(block, model, s, attention, "1");
  add_half(block, model, s, mlp, "2");
  return block;
}

/// [M60] Bytes per micro-batch that live from forward to backward. Recomputing the attention core
/// saves only the statistics of its softmax: q, k, v are its inputs and the projection needs its
/// output. Recomputing the layer leaves the layer's input.
Bytes kept_bytes(const Block& block, const Shape& s, spec::Recompute recompute) {
  const Bytes all = activation_bytes(s, block.kept) + block.routing;
  switch (recompute) {
    case spec::Recompute::none:
      return all + block.statistics;
    case spec::Recompute::selective:
      return all;
    case spec::Recompute::full:
      return activation_bytes(s, times(s.norm_tokens, s.hidden));
  }
  throw InternalError("recompute");
}

bool of_core(const Operation& operation) {
  const auto* exchange = std::get_if<Exchange>(&operation.shape);
  return operation.name.starts_with("attention") ||
         (exchange != nullptr && exchange->overlaps.starts_with("attention"));
}

Operations recomputed(const Operations& forward, spec::Recompute recompute) {
  Operations list;
  if (recompute == spec::Recompute::none) return list;
  for (const Operation& operation : forward)
    if (recompute == spec::Recompute::full || of_core(operation)) list.push_back(operation);
  for (Operation& operation : list) {
    operation.name += " recomputed";
    if (auto* exchange = std::get_if<Exchange>(&operation.shape))
      if (!exchange->overlaps.empty()) exchange->overlaps += " recomputed";
  }
  return list;
}

/// A layer without its number.
Layer transformer_layer(const spec::Model& model, const spec::Parallelism& parallelism,
                        const Shape& s, const Variety& variety) {
  Block block = block_of(model, parallelism, s, variety);
  Layer layer;
  layer.role = Role::block;
  layer.backward = recomputed(block.forward, variety.recompute);
  append(layer.backward, block.backward);
  layer.forward = std::move(block.forward);
  layer.kept = kept_bytes(block, s, variety.recompute);
  layer.transient = kept_bytes(block, s, spec::Recompute::none) - layer.kept;
  layer.tensors = std::move(block.tensors);
  return layer;
}

bool has_experts(const spec::Model& model, int layer) {
  if (model.experts == 0 || layer < model.dense_layers) return false;
  return (layer - model.dense_layers) % model.moe_every == model.moe_every - 1;
}

Reach reach_of(const spec::Model& model, const spec::Training& training, int layer) {
  const bool window = model.window > 0 && model.window < training.sequence;
  const int every = model.full_attention_every;
  return window && (every == 0 || (layer + 1) % every != 0) ? Reach::window : Reach::all;
}

/// [M215] The first layers of each of the pp equal runs of layers (Megatron-LM's method "block").
spec::Recompute recompute_of(const spec::Model& model, const spec::Training& training,
                             const spec::Parallelism& parallelism, int layer) {
  if (!training.recompute_layers) return training.recompute;
  const int run = (model.layers + parallelism.pp - 1) / parallelism.pp;
  return layer % run < *training.recompute_layers ? training.recompute : spec::Recompute::none;
}

Variety variety_of(const spec::Model& model, const spec::Training& training,
                   const spec::Parallelism& parallelism, int layer) {
  return {.mlp = has_experts(model, layer) ? Mlp::experts : Mlp::dense,
          .reach = reach_of(model, training, layer),
          .recompute = recompute_of(model, training, parallelism, layer)};
}

void name_layer(Layer& layer, std::string name) {
  layer.name = std::move(name);
  for (Tensor& tensor : layer.tensors) tensor.name = layer.name + " " + tensor.name;
}

/// Layers of each variety are built once and copied.
void add_blocks(std::vector<Layer>& layers, const spec::Model& model,
                const spec::Training& training, const spec::Parallelism& parallelism,
                const Shape& s) {
  struct Built {
    Variety variety;
    Layer layer;
  };
  std::vector<Built> built;
  for (int i = 0; i < model.layers; ++i) {
    const Variety variety = variety_of(model, training, parallelism, i);
    auto found = std::ranges::find(built, variety, &Built::variety);
    if (found == built.end()) {
      built.push_back({variety, transformer_layer(model, parallelism, s, variety)});
      found = built.end() - 1;
      found->layer.like = layers.size();
    }
    layers.push_back(found->layer);
    name_layer(layers.back(), "layer " + std::to_string(i));
  }
}

std::vector<Layer> layers_of(const spec::Model& model, const spec::Training& training,
                             const spec::Parallelism& parallelism, const Shape& s) {
  std::vector<Layer> layers;
  layers.push_back(embedding_layer(model, s));
  add_blocks(layers, model, training, parallelism, s);
  Layer head = head_layer(model, training, s);
  for (int i = 0; i < model.mtp_layers; ++i) {
    Layer block = transformer_layer(model, parallelism, s,
                                    variety_of(model, training, parallelism, model.layers - 1));
    layers.push_back(prediction_layer(model, std::move(block), head, s));
    layers.back().like = layers.size() - 1 - static_cast<std::size_t>(i);
    name_layer(layers.back(), "prediction " + std::to_string(i));
  }
  // The last stage of a pipeline keeps its own copy of tied embeddings.
  if (parallelism.pp > 1 && model.tied_embeddings)
    head.tensors.push_back({.name = "output.weight (copy of the embedding)",
                            .numel = s.vocab * s.hidden,
                            .rows = s.vocab});
  head.like = layers.size();
  layers.push_back(std::move(head));
  return layers;
}

Flops forward_flops(const Layer& layer) {
  Flops sum;
  for (const Operation& operation : layer.forward) sum += flops_of(operation);
  return sum;
}

/// [M3] Backward is two forwards.
Flops step_flops(const std::vector<Layer>& layers) {
  std::vector<Flops> forward;
  Flops sum;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::size_t like = layers[i].like;
    forward.push_back(like < i ? forward[like] : forward_flops(layers[i]));
    sum += 3.0 * forward.back();
  }
  return sum;
}

/// The experts that tokens choose, exactly and nothing else, as one product per matrix.
Shape whole_shape(const spec::Model& model, const spec::Training& training) {
  Shape s = shape_of(model, training, {});
  s.experts = 1;
  s.expert_rows = s.sent_rows = s.tokens * model.experts_per_token;
  return s;
}

/// Elements of the largest tensor; experts are tensors of their own.
int64_t largest_of(const std::vector<Layer>& layers, const Shape& s) {
  int64_t largest = 0;
  for (const Layer& layer : layers)
    for (const Tensor& tensor : layer.tensors)
      largest = std::max(largest, tensor.expert ? tensor.numel / s.experts : tensor.numel);
  return largest;
}

/// [M1] Whole counts; of the routed experts a token uses its choice.
void add_counts(Workload& work, const spec::Model& model, const std::vector<Layer>& whole) {
  for (const Layer& layer : whole) {
    // Built with one expert [whole_shape].
    const int64_t one = expert_parameters_of(layer), shared = parameters_of(layer) - one;
    work.parameters += shared + one * model.experts;
    work.active_parameters += shared + one * model.experts_per_token;
  }
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
      [&]<class Kind>(const Kind& shape) {
        if constexpr (std::is_same_v<Kind, Exchange>)
          return Seconds(0);
        else
          return costs.time(shape);
      },
      operation.shape);
}

int launches_of(const Operation& operation) {
  if (const auto* gemm = std::get_if<Gemm>(&operation.shape))
    return gemm->batched ? 1 : static_cast<int>(gemm->groups);
  if (const auto* pass = std::get_if<Pass>(&operation.shape)) return pass->launches;
  return std::holds_alternative<Attention>(operation.shape) ? 1 : 0;
}

Workload workload_of(const spec::Model& model, const spec::Training& training,
                     const spec::Parallelism& parallelism) {
  // Model FLOPs [M3] do not depend on how attention is computed.
  spec::Training counted = training;
  counted.attention = spec::AttentionCore::flash;
  const std::vector<Layer> whole = layers_of(model, counted, {}, whole_shape(model, counted));
  Workload work = rank_workload(model, training, parallelism);
  add_counts(work, model, whole);
  work.model_flops = step_flops(whole);
  return work;
}

Workload rank_workload(const spec::Model& model, const spec::Training& training,
                       const spec::Parallelism& parallelism) {
  const Shape s = shape_of(model, training, parallelism);
  Workload work;
  work.layers = layers_of(model, training, parallelism, s);
  work.largest_tensor = largest_of(work.layers, s);
  return work;
}

std::vector<Tensor> tensors_of(const Workload& workload) {
  std::vector<Tensor> list;
  for (const Layer& layer : workload.layers)
    list.insert(list.end(), layer.tensors.begin(), layer.tensors.end());
  return list;
}

int64_t parameters_of(const Layer& layer) {
  int64_t sum = 0;
  for (const Tensor& tensor : layer.tensors) sum += tensor.numel;
  return sum;
}

int64_t expert_parameters_of(const Layer& layer) {
  int64_t sum = 0;
  for (const Tensor& tensor : layer.tensors)
    if (tensor.expert) sum += tensor.numel;
  return sum;
}

}  // namespace scapesim::workload
