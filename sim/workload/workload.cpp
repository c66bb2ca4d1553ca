// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/workload.hpp"

#include <algorithm>
#include <optional>

#include "sim/base/check.hpp"
#include "sim/workload/documents.hpp"
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
  // [M430] The gradient of a frozen norm's weight is a kernel less.
  const int launches = s.trains ? 2 : 1;
  if (s.autocast)
    return add_stream_pass(list, name + " backward", s, 3 * s.element + (s.element + kFloat),
                           launches + 1);
  // [M417] Eager frameworks add the gradients of scale and shift by a kernel each.
  const int sums = s.trains && s.kernels == spec::ElementWise::eager ? 2 : 0;
  add_pass(list, name + " backward", s, s.norm_tokens, 3 * s.hidden, launches + sums);
}

/// Sum of the stream and a branch. [M452] Under autocast in fp32; backward its gradient is cast for
/// the branch, and both gradients of the stream are added. [M416] Dropout is part of the sum and
/// writes its mask; backward it is a pass of its own.
void add_residual_forward(Operations& list, const Shape& s, const std::string& name,
                          int64_t terms) {
  const double mask = s.hidden_dropout ? 1 : 0;
  if (s.autocast)
    return add_stream_pass(list, name, s,
                           2 * kFloat + static_cast<double>(terms - 1) * s.element + mask, 1);
  add_stream_pass(list, name, s, static_cast<double>(terms + 1) * s.element + mask, 1);
}
void add_residual_backward(Operations& list, const Shape& s, const std::string& name,
                           int64_t terms) {
  if (s.hidden_dropout)
    add_dropout(list, name + " dropout backward", s, times(s.norm_tokens, s.hidden));
  if (s.autocast)
    return add_stream_pass(list, name + " backward", s, (kFloat + s.element) + 3 * kFloat, 2);
  add_pass(list, name + " backward", s, s.norm_tokens, (terms + 1) * s.hidden);
}

/// [M416] The mask of a residual sum lives until the backward pass.
double kept_mask(const Shape& s) {
  return s.hidden_dropout ? mask_elements(s, times(s.norm_tokens, s.hidden)) : 0;
}

/// The two halves of a layer with their norms and residual sums.
struct Block {
  Operations forward, backward;
  std::vector<Tensor> tensors;
  std::vector<Tensor> adapters = {};
  double kept = 0;
  Bytes statistics, routing;
};

void take(Block& block, const Branch& branch) {
  block.tensors.insert(block.tensors.end(), branch.tensors.begin(), branch.tensors.end());
  block.adapters.insert(block.adapters.end(), branch.adapters.begin(), branch.adapters.end());
  block.kept += branch.kept;
  block.statistics += branch.statistics;
  block.routing += branch.routing;
}

/// [M4] Element-wise traffic in elements per token: each tensor read or written once per kernel.
/// [M60] Input and output of each norm are kept, but not the output that is only summed; [M430] nor
/// that which only a frozen matrix reads.
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
  const int64_t outputs = branch.keeps_input ? 1 : 0;
  block.kept += times((1 + outputs + both) * s.hidden, s.norm_tokens) + kept_mask(s);
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
  const bool either = attention.keeps_input || mlp.keeps_input;
  const int64_t outputs =
      two ? (attention.keeps_input ? 1 : 0) + (mlp.keeps_input ? 1 : 0) : (either ? 1 : 0);
  block.kept += times((1 + outputs) * s.hidden, s.norm_tokens) + kept_mask(s);
  return block;
}

enum class Mlp { dense, experts };

/// [M430] What of a layer is trained: its parameters; adapters, of the lowest layer with any or of
/// one above; nothing, with nothing below it either.
enum class Trained { parameters, lowest_adapters, adapters, nothing };

/// What makes two transformer layers differ in their operations.
struct Variety {
  Mlp mlp = Mlp::dense;
  Reach reach = Reach::all;
  spec::Recompute recompute = spec::Recompute::none;
  Trained trained = Trained::parameters;
  bool operator==(const Variety&) const = default;
};

/// [M430] Below the lowest layer with adapters nothing wants a gradient: what follows the last
/// weight gradient is not computed.
void drop_input_gradient(Operations& backward) {
  const auto last = std::find_if(backward.rbegin(), backward.rend(), is_weight_gradient);
  backward.erase(last.base(), backward.end());
}

/// [M430] Tensors become frozen ones.
void freeze(Layer& layer, const Shape& s) {
  for (Tensor& tensor : layer.tensors) {
    const bool coded = s.four_bits && layer.role == Role::block && tensor.rows > 0;
    tensor.stored = coded ? kFourBits : s.element;
    layer.frozen.push_back(std::move(tensor));
  }
  layer.tensors.clear();
}

/// [M430] A layer that is only run forward.
void rest(Layer& layer, const Shape& s) {
  freeze(layer, s);
  layer.rests = true;
  layer.backward.clear();
  layer.kept = Bytes(0);
}

bool is_adapted(const spec::Training& training) { return training.lora.rank > 0; }

/// Whether what stands before the layers is trained.
bool trains_embedding(const spec::Training& training) {
  return training.frozen_layers == 0 && !is_adapted(training);
}

Trained trained_of(const spec::Training& training, int layer) {
  if (layer < training.frozen_layers) return Trained::nothing;
  if (!is_adapted(training)) return Trained::parameters;
  return layer == training.frozen_layers ? Trained::lowest_adapters : Trained::adapters;
}

/// The layer's own part of a rank's shape.
Shape shape_for(Shape s, const Variety& variety) {
  s.trains = variety.trained == Trained::parameters;
  if (s.trains || variety.trained == Trained::nothing) s.lora_rank = 0;
  return s;
}

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

/// [M430] What a layer without a backward pass holds at once: its input, the first matrix's output
/// and the second one's input.
Bytes largest_moment(const Shape& s) {
  const double inner = std::max(times(s.tokens, s.ffn_in + s.ffn),
                                times(s.experts * s.expert_rows, s.expert_ffn_in + s.expert_ffn));
  return activation_bytes(s, times(s.norm_tokens, s.hidden) + inner);
}

/// A layer without its number.
Layer transformer_layer(const spec::Model& model, const spec::Parallelism& parallelism,
                        const Shape& rank, const Variety& variety) {
  const Shape s = shape_for(rank, variety);
  Block block = block_of(model, parallelism, s, variety);
  Layer layer;
  layer.role = Role::block;
  if (variety.trained == Trained::lowest_adapters) drop_input_gradient(block.backward);
  layer.backward = recomputed(block.forward, variety.recompute);
  append(layer.backward, block.backward);
  layer.forward = std::move(block.forward);
  layer.kept = kept_bytes(block, s, variety.recompute);
  layer.transient = kept_bytes(block, s, spec::Recompute::none) - layer.kept;
  layer.tensors = std::move(block.tensors);
  if (variety.trained == Trained::nothing) layer.transient = largest_moment(s), rest(layer, s);
  if (variety.trained != Trained::parameters && !layer.rests) freeze(layer, s);
  layer.tensors.insert(layer.tensors.end(), block.adapters.begin(), block.adapters.end());
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
          .recompute = recompute_of(model, training, parallelism, layer),
          .trained = trained_of(training, layer)};
}

void name_layer(Layer& layer, std::string name) {
  layer.name = std::move(name);
  for (Tensor& tensor : layer.tensors) tensor.name = layer.name + " " + tensor.name;
  for (Tensor& tensor : layer.frozen) tensor.name = layer.name + " " + tensor.name;
}

/// Layers like one before them, with operations of their own or without.
enum class Alike { whole, bare };

/// Layers of each variety are built once and copied.
void add_blocks(std::vector<Layer>& layers, const spec::Model& model,
                const spec::Training& training, const spec::Parallelism& parallelism,
                const Shape& s, Alike alike) {
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
    if (alike == Alike::bare) found->layer.forward.clear(), found->layer.backward.clear();
  }
}

/// [M430] The output of a model with adapters is frozen, a matrix that it shares with the embedding
/// as well where layers are.
Layer output_layer(const spec::Model& model, const spec::Training& training, Shape s) {
  s.trains = !is_adapted(training);
  Layer head = head_layer(model, training, s);
  if (!s.trains) freeze(head, s);
  return head;
}

std::vector<Layer> layers_of(const spec::Model& model, const spec::Training& training,
                             const spec::Parallelism& parallelism, Shape s, Alike alike) {
  s.lora_rank = training.lora.rank;
  s.lora_targets = training.lora.targets;
  s.four_bits = training.frozen_weights == spec::FrozenWeights::nf4;
  std::vector<Layer> layers;
  layers.push_back(embedding_layer(model, s));
  if (!trains_embedding(training)) rest(layers.back(), s);
  add_blocks(layers, model, training, parallelism, s, alike);
  Layer head = output_layer(model, training, s);
  for (int i = 0; i < model.mtp_layers; ++i) {
    Layer block = transformer_layer(model, parallelism, s,
                                    variety_of(model, training, parallelism, model.layers - 1));
    layers.push_back(prediction_layer(model, std::move(block), head, s));
    layers.back().like = layers.size() - 1 - static_cast<std::size_t>(i);
    name_layer(layers.back(), "prediction " + std::to_string(i));
  }
  // The last stage of a pipeline keeps its own copy of tied embeddings; that of a V is the first.
  if (parallelism.pp > 1 && model.tied_embeddings &&
      parallelism.schedule != spec::Schedule::dualpipe) {
    Tensor copy{.name = "output.weight (copy of the embedding)",
                .numel = s.vocab * s.hidden,
                .rows = s.vocab};
    copy.stored = trains_embedding(training) ? 0 : s.element;
    (trains_embedding(training) ? head.tensors : head.frozen).push_back(std::move(copy));
  }
  head.like = layers.size();
  layers.push_back(std::move(head));
  return layers;
}

Flops forward_flops(const Layer& layer) {
  Flops sum;
  for (const Operation& operation : layer.forward) sum += flops_of(operation);
  return sum;
}

/// [M430] Products of the backward pass that are there; attention's is two forwards.
Flops backward_flops(const Layer& layer) {
  Flops sum;
  for (const Operation& operation : layer.backward) {
    Operation counted = operation;
    const bool attends = std::holds_alternative<Attention>(counted.shape);
    if (attends) std::get<Attention>(counted.shape).backward = false;
    sum += (attends ? 2.0 : 1.0) * flops_of(counted);
  }
  return sum;
}

/// [M3] Backward is two forwards, [M430] or less where parameters are frozen.
Flops layer_flops(const Layer& layer, const spec::Training& training) {
  const Flops forward = forward_flops(layer);
  const bool whole = trains_embedding(training) ||
                     (layer.role == Role::block && layer.frozen.empty() && !layer.rests);
  return whole ? 3.0 * forward : forward + backward_flops(layer);
}

Flops step_flops(const std::vector<Layer>& layers, const spec::Training& training) {
  std::vector<Flops> list;
  Flops sum;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::size_t like = layers[i].like;
    list.push_back(like < i ? list[like] : layer_flops(layers[i], training));
    sum += list.back();
  }
  return sum;
}

/// The experts that tokens choose, exactly and nothing else, as one product per matrix.
Shape whole_shape(const spec::Model& model, const spec::Training& training) {
  Shape s = shape_of(model, training, {});
  s.experts = 1;
  s.expert_rows = s.sent_rows = s.tokens * model.experts_per_token;
  s.document = counted_document(training);
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

int64_t elements(const std::vector<Tensor>& tensors) {
  int64_t sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.numel;
  return sum;
}

int64_t expert_elements(const std::vector<Tensor>& tensors) {
  int64_t sum = 0;
  for (const Tensor& tensor : tensors)
    if (tensor.expert) sum += tensor.numel;
  return sum;
}

/// [M1] Whole counts; of the routed experts a token uses its choice.
void add_counts(Workload& work, const spec::Model& model, const std::vector<Layer>& whole) {
  for (const Layer& layer : whole) {
    // Built with one expert [whole_shape].
    const int64_t trained_one = expert_elements(layer.tensors);
    const int64_t one = trained_one + expert_elements(layer.frozen);
    const int64_t trained = elements(layer.tensors) - trained_one;
    const int64_t shared = trained + elements(layer.frozen) - (one - trained_one);
    work.trainable_parameters += trained + trained_one * model.experts;
    work.parameters += shared + one * model.experts;
    work.active_parameters += shared + one * model.experts_per_token;
  }
}

Workload rank_work(const spec::Model& model, const spec::Training& training,
                   const spec::Parallelism& parallelism, Alike alike) {
  const Shape s = shape_of(model, training, parallelism);
  Workload work;
  work.layers = layers_of(model, training, parallelism, s, alike);
  work.largest_tensor = largest_of(work.layers, s);
  return work;
}

}  // namespace

bool is_weight_gradient(const Operation& operation) {
  return std::holds_alternative<Gemm>(operation.shape) && operation.name.ends_with(" wgrad");
}

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
  counted.recompute = spec::Recompute::none;
  const std::vector<Layer> whole =
      layers_of(model, counted, {}, whole_shape(model, counted), Alike::bare);
  Workload work = rank_work(model, training, parallelism, Alike::whole);
  add_counts(work, model, whole);
  work.model_flops = useful_share(training) * step_flops(whole, counted);
  return work;
}

Workload rank_workload(const spec::Model& model, const spec::Training& training,
                       const spec::Parallelism& parallelism) {
  return rank_work(model, training, parallelism, Alike::bare);
}

std::vector<Tensor> tensors_of(const Workload& workload) {
  std::vector<Tensor> list;
  for (const Layer& layer : workload.layers)
    list.insert(list.end(), layer.tensors.begin(), layer.tensors.end());
  return list;
}

int64_t parameters_of(const Layer& layer) { return elements(layer.tensors); }

int64_t expert_parameters_of(const Layer& layer) { return expert_elements(layer.tensors); }

Bytes frozen_bytes(const Layer& layer, Part part) {
  double sum = 0;
  for (const Tensor& tensor : layer.frozen)
    if (tensor.expert == (part == Part::experts))
      sum += static_cast<double>(tensor.numel) * tensor.stored;
  return Bytes(sum);
}

}  // namespace scapesim::workload
