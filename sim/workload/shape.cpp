// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/shape.hpp"

#include <algorithm>
#include <cmath>

#include "sim/workload/documents.hpp"

namespace scapesim::workload {

namespace {

using graph::Axis;
using graph::CollectiveKind;
using std::int64_t;

// Bytes of an activation under mixed precision; fp8 keeps bf16 activations.
constexpr double kMixed = 2;

// Bytes of a value and its share of a block's scale: one per tensor, per 32 and per 16 values.
double narrow_bytes(spec::Precision precision) {
  switch (precision) {
    case spec::Precision::fp8:
      return 1;
    case spec::Precision::mxfp8:
      return 1 + 1.0 / 32;
    case spec::Precision::nvfp4:
      return 0.5 + 1.0 / 16;
    default:
      return 0;
  }
}

int64_t share(int64_t whole, int64_t parts) { return (whole + parts - 1) / parts; }

// [M214] Tokens that an expert-parallel rank sends: one copy per expert chosen, padded to the
// experts' capacity (Lepikhin 2020) or as many as the fullest rank gets.
int64_t sent_rows(const spec::Model& model, int64_t tokens) {
  const double load = model.capacity_factor > 0 ? model.capacity_factor : model.expert_imbalance;
  return static_cast<int64_t>(std::ceil(times(tokens, model.experts_per_token) * load));
}

// [M457] Expected number of ranks that hold one of a token's k experts, chosen evenly without
// repetition: ep (1 - C(E - E/ep, k) / C(E, k)).
double rank_copies(const spec::Model& model, int ep) {
  const int elsewhere = model.experts - model.experts / ep;
  double none = 1;
  for (int i = 0; i < model.experts_per_token; ++i)
    none *= std::max(0.0, static_cast<double>(elsewhere - i)) / (model.experts - i);
  return ep * (1 - none);
}

void add_experts(Shape& s, const spec::Model& model, const spec::Parallelism& parallelism) {
  const int64_t split = parallelism.expert_tp == 1 ? 1 : s.tp;
  const int64_t gate = gated(model) ? 2 : 1;
  s.experts = std::max(1, model.experts / parallelism.ep);
  s.sent_rows = sent_rows(model, s.norm_tokens);
  s.expert_rows = share(s.sent_rows * split, s.experts);
  s.expert_ffn = share(model.expert_ffn, split);
  s.expert_ffn_in = gate * s.expert_ffn;
  s.shared_ffn = share(int64_t{model.shared_experts} * model.expert_ffn, s.tp);
  s.shared_ffn_in = gate * s.shared_ffn;
  s.ep = parallelism.ep;
  s.rank_copies = model.experts > 0 ? rank_copies(model, parallelism.ep) : 0;
  s.experts_split = split > 1;
  s.experts_elsewhere = parallelism.ep > 1;
}

}  // namespace

bool gated(const spec::Model& model) {
  return model.activation == spec::Activation::swiglu ||
         model.activation == spec::Activation::geglu;
}

bool adapts(const Shape& s, spec::LoraTarget target) {
  using enum spec::LoraTarget;
  if (s.lora_rank == 0) return false;
  const auto has = [&](spec::LoraTarget wanted) {
    return std::ranges::find(s.lora_targets, wanted) != s.lora_targets.end();
  };
  const bool is_fused = target == qkv_proj || target == gate_up_proj;
  return has(target) || (!is_fused && has(all_linear));
}

Shape shape_of(const spec::Model& model, const spec::Training& training,
               const spec::Parallelism& parallelism) {
  Shape s{};
  s.tp = parallelism.tp;
  s.cp = parallelism.cp;
  s.sequence_parallel = parallelism.sequence_parallel && s.tp > 1;
  s.core = training.attention;
  s.kernels = training.kernels;
  s.dispatcher = parallelism.dispatcher;
  s.permute_fusion = parallelism.permute_fusion;
  s.autocast = training.autocast;
  s.hidden_dropout = training.hidden_dropout > 0;
  s.attention_dropout = training.attention_dropout > 0;
  s.fp32_sums = training.kernels == spec::ElementWise::fused && !training.autocast &&
                training.gradient_dtype == spec::GradientDtype::fp32;
  s.tensor_overlap = parallelism.tensor_overlap;
  s.gradient = training.gradient_dtype == spec::GradientDtype::fp32 ? kFloat : kMixed;
  s.batch = training.micro_batch;
  s.sequence = training.sequence;
  s.tokens = s.batch * share(s.sequence, s.cp);
  s.norm_tokens = s.sequence_parallel ? share(s.tokens, s.tp) : s.tokens;
  s.hidden = model.hidden;
  s.heads = share(model.heads, s.tp);
  s.kv_heads = share(model.kv_heads, s.tp);
  s.head_dim = model.head_dim;
  s.value_dim = model.value_head_dim > 0 ? model.value_head_dim : model.head_dim;
  s.query = s.heads * s.head_dim;
  s.key = s.kv_heads * s.head_dim;
  s.value = s.kv_heads * s.value_dim;
  s.attended = s.heads * s.value_dim;
  s.ffn = share(model.ffn, s.tp);
  s.ffn_in = gated(model) ? 2 * s.ffn : s.ffn;
  s.vocab = share(model.vocab, s.tp);
  s.element = training.precision == spec::Precision::fp32 ? kFloat : kMixed;
  s.narrow = 2 * narrow_bytes(training.precision);
  if (training.documents == spec::Documents::packed) s.document = packed_document(training);
  add_experts(s, model, parallelism);
  return s;
}

void add_gemm(Operations& list, std::string name, int64_t m, int64_t n, int64_t k) {
  list.push_back({std::move(name), Gemm{.m = m, .n = n, .k = k}});
}

void add_pass(Operations& list, std::string name, const Shape& s, int64_t tokens, int64_t per_token,
              int launches) {
  const double elements = static_cast<double>(per_token) * static_cast<double>(tokens);
  list.push_back(
      {std::move(name), Pass{.traffic = Bytes(elements * s.element), .launches = launches}});
}

void add_dropout(Operations& list, std::string name, const Shape& s, double elements) {
  list.push_back({std::move(name), Pass{.traffic = Bytes(elements * (2 * s.element + 1))}});
}

void add_cast(Operations& list, const Linear& layer, std::string_view what, const Shape& s,
              int64_t tokens, int64_t width) {
  if (s.narrow == 0 || !layer.cast) return;
  list.push_back({layer.name + std::string(what),
                  Pass{.traffic = Bytes(times(tokens, width) * (s.element + s.narrow))}});
}

void add_exchange(Operations& list, const Shape& s, ExchangeSpec spec) {
  list.push_back({std::move(spec.name), Exchange{.kind = spec.kind,
                                                 .axis = spec.axis,
                                                 .bytes = activation_bytes(s, spec.elements),
                                                 .overlaps = std::move(spec.overlaps)}});
}

// [M451] Rows of every operand are as wide as the layer's input or output.
bool is_aligned(const Shape& s, const Linear& layer) {
  return aligned(s, layer.in) && aligned(s, layer.out);
}

// [M452] Under autocast a weight is cast at each use, and its gradient back. [M430] Frozen ones lie
// in the type they are multiplied in.
void add_weight_cast(Operations& list, const Shape& s, const Linear& layer, const char* what) {
  if (!s.autocast || !s.trains) return;
  list.push_back({layer.name + what,
                  Pass{.traffic = Bytes(times(layer.out, layer.in) * (kFloat + s.element))}});
}

// [M417] The gradient of a bias is the sum of the output's over the tokens, added by a kernel of
// its own.
void add_bias_gradient(Operations& list, const Shape& s, int64_t tokens, const Linear& layer) {
  if (!layer.bias) return;
  list.push_back({layer.name + " bias gradient",
                  Pass{.traffic = Bytes(times(tokens, layer.out) * s.element), .launches = 2}});
}

// [M453] Behind an eager backward pass the weight gradient is cast to the buffer's type, where that
// is another one, and added to it.
void add_accumulation(Operations& list, const Shape& s, int64_t tokens, const Linear& layer) {
  if (s.kernels != spec::ElementWise::eager || s.autocast) return;
  add_bias_gradient(list, s, tokens, layer);
  const bool casts = s.gradient != s.element;
  const double bytes = 3 * s.gradient + (casts ? s.element + s.gradient : 0);
  list.push_back(
      {layer.name + " gradient sum",
       Pass{.traffic = Bytes(times(layer.out, layer.in) * bytes), .launches = casts ? 2 : 1}});
}

// [M431] Four bits and the constants of their blocks are read by two kernels, the matrix is
// written.
void add_dequantising(Operations& list, const Shape& s, const Linear& layer) {
  if (s.trains || !s.four_bits || !layer.narrowable) return;
  list.push_back({layer.name + " dequantise",
                  Pass{.traffic = Bytes(times(layer.out, layer.in) * (kFourBits + s.element)),
                       .launches = 2}});
}

// [M431] One kernel adds the adapter's output, scaled; eager: one scales, one adds.
void add_joining(Operations& list, const Shape& s, std::string name, int64_t tokens,
                 int64_t width) {
  const bool eager = s.kernels == spec::ElementWise::eager;
  add_pass(list, std::move(name), s, tokens, (eager ? 5 : 3) * width, eager ? 2 : 1);
}

enum class Sum { none, tensor };

// [M431] What ranks of a tensor-parallel group have parts of.
void add_rank_sum(Operations& list, const Shape& s, std::string name, int64_t tokens, Sum sum) {
  if (sum == Sum::tensor && s.tp > 1)
    add_exchange(list, s, {.name = std::move(name), .elements = times(tokens, s.lora_rank)});
}

// [M437] A product of tokens with r: as many equal parts of k, a width of the model, as have 1,024
// elements or more, at most 16, are multiplied at once, and their sums added.
Gemm thin(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kShortest = 1024, kMost = 16;
  int64_t parts = 1;
  while (parts < kMost && k % (2 * parts) == 0 && k / (2 * parts) >= kShortest) parts *= 2;
  return {.m = m, .n = n, .k = k / parts, .groups = parts, .batched = parts > 1};
}

void add_thin(Operations& list, std::string name, int64_t m, int64_t n, int64_t k) {
  list.push_back({std::move(name), thin(m, n, k)});
}

void add_thin_wgrad(Operations& list, std::string name, int64_t m, int64_t n, int64_t k) {
  list.push_back({std::move(name), Gemm{.m = m, .n = n, .k = k, .accumulate_fp32 = true}});
}

void add_adapters_forward(Operations& list, const Shape& s, int64_t tokens, const Linear& layer,
                          Sum inner) {
  for (const Linear::Adapter& adapter : layer.adapters) {
    add_thin(list, adapter.name + " lora_A", tokens, s.lora_rank, layer.in);
    add_rank_sum(list, s, adapter.name + " lora_A all-reduce", tokens, inner);
    add_thin(list, adapter.name + " lora_B", tokens, adapter.out, s.lora_rank);
    add_joining(list, s, adapter.name + " lora sum", tokens, adapter.out);
  }
}

void add_adapters_wgrad(Operations& list, const Shape& s, int64_t tokens, const Linear& layer,
                        Sum inner) {
  for (const Linear::Adapter& adapter : layer.adapters) {
    if (s.kernels == spec::ElementWise::eager)
      add_pass(list, adapter.name + " lora scale backward", s, tokens, 2 * adapter.out);
    add_thin(list, adapter.name + " lora_B dgrad", tokens, s.lora_rank, adapter.out);
    add_rank_sum(list, s, adapter.name + " lora_B dgrad all-reduce", tokens, inner);
    add_thin_wgrad(list, adapter.name + " lora_B wgrad", adapter.out, s.lora_rank, tokens);
    add_thin_wgrad(list, adapter.name + " lora_A wgrad", s.lora_rank, layer.in, tokens);
  }
}

void add_adapters_dgrad(Operations& list, const Shape& s, int64_t tokens, const Linear& layer) {
  for (const Linear::Adapter& adapter : layer.adapters) {
    add_thin(list, adapter.name + " lora_A dgrad", tokens, layer.in, s.lora_rank);
    add_pass(list, adapter.name + " lora input gradient sum", s, tokens, 3 * layer.in);
  }
}

void add_linear_forward(Operations& list, const Shape& s, int64_t tokens, const Linear& layer) {
  add_weight_cast(list, s, layer, " weight cast");
  add_dequantising(list, s, layer);
  list.push_back(
      {layer.name,
       Gemm{.m = tokens, .n = layer.out, .k = layer.in, .aligned = is_aligned(s, layer)}});
}

void add_linear_backward(Operations& list, const Shape& s, int64_t tokens, const Linear& layer) {
  const bool rows_aligned = is_aligned(s, layer);
  add_dequantising(list, s, layer);
  list.push_back({layer.name + " dgrad",
                  Gemm{.m = tokens, .n = layer.in, .k = layer.out, .aligned = rows_aligned}});
  if (!s.trains) return;
  list.push_back({layer.name + " wgrad", Gemm{.m = layer.out,
                                              .n = layer.in,
                                              .k = tokens,
                                              .accumulate_fp32 = s.fp32_sums,
                                              .aligned = rows_aligned}});
  add_accumulation(list, s, tokens, layer);
}

void add_columns_forward(Operations& list, const Shape& s, const Linear& layer) {
  add_cast(list, layer, " input cast", s, s.norm_tokens, layer.in);
  if (s.sequence_parallel)
    add_exchange(list, s,
                 {.name = layer.name + " input all-gather",
                  .kind = CollectiveKind::all_gather,
                  .elements = times(s.tokens, layer.in)});
  add_linear_forward(list, s, s.tokens, layer);
  add_adapters_forward(list, s, s.tokens, layer, Sum::none);
}

// [M430] [M431] Of a frozen matrix: the weight gradients of its adapters, which need the input
// whole again, then the input gradient, whose sum nothing hides (Megatron-LM's
// LinearWithFrozenWeight).
void add_frozen_columns_backward(Operations& list, const Shape& s, const Linear& layer) {
  add_cast(list, layer, " gradient cast", s, s.tokens, layer.out);
  if (s.sequence_parallel && !layer.adapters.empty())
    add_exchange(list, s,
                 {.name = layer.name + " input all-gather again",
                  .kind = CollectiveKind::all_gather,
                  .elements = times(s.tokens, layer.in)});
  add_adapters_wgrad(list, s, s.tokens, layer, Sum::tensor);
  add_linear_backward(list, s, s.tokens, layer);
  add_adapters_dgrad(list, s, s.tokens, layer);
  if (s.tp > 1)
    add_exchange(
        list, s,
        {.name = layer.name + (s.sequence_parallel ? " dgrad reduce-scatter" : " dgrad all-reduce"),
         .kind = s.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
         .elements = times(s.tokens, layer.in)});
}

// The input is gathered again beside the input gradient, whose sum runs beside the weight gradient:
// Megatron-LM's LinearWithGradAccumulationAndAsyncCommunication.
void add_columns_backward(Operations& list, const Shape& s, const Linear& layer) {
  if (!s.trains) return add_frozen_columns_backward(list, s, layer);
  const std::string dgrad = layer.name + " dgrad", wgrad = layer.name + " wgrad";
  Operations products;
  add_cast(list, layer, " gradient cast", s, s.tokens, layer.out);
  add_linear_backward(products, s, s.tokens, layer);
  if (s.sequence_parallel)
    add_exchange(list, s,
                 {.name = layer.name + " input all-gather again",
                  .kind = CollectiveKind::all_gather,
                  .elements = times(s.tokens, layer.in),
                  .overlaps = s.tensor_overlap ? dgrad : ""});
  list.push_back(products[0]);
  if (s.tp > 1)
    add_exchange(
        list, s,
        {.name = dgrad + (s.sequence_parallel ? " reduce-scatter" : " all-reduce"),
         .kind = s.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
         .elements = times(s.tokens, layer.in),
         .overlaps = s.tensor_overlap ? wgrad : ""});
  list.insert(list.end(), products.begin() + 1, products.end());
  add_weight_cast(list, s, layer, " gradient cast back");
}

void add_rows_forward(Operations& list, const Shape& s, const Linear& layer) {
  add_cast(list, layer, " input cast", s, s.tokens, layer.in);
  add_linear_forward(list, s, s.tokens, layer);
  add_adapters_forward(list, s, s.tokens, layer, Sum::tensor);
  if (s.tp > 1)
    add_exchange(
        list, s,
        {.name = layer.name + (s.sequence_parallel ? " reduce-scatter" : " all-reduce"),
         .kind = s.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
         .elements = times(s.tokens, layer.out)});
}

void add_rows_backward(Operations& list, const Shape& s, const Linear& layer) {
  add_cast(list, layer, " gradient cast", s, s.norm_tokens, layer.out);
  if (s.sequence_parallel)
    add_exchange(list, s,
                 {.name = layer.name + " gradient all-gather",
                  .kind = CollectiveKind::all_gather,
                  .elements = times(s.tokens, layer.out)});
  add_adapters_wgrad(list, s, s.tokens, layer, Sum::none);
  add_linear_backward(list, s, s.tokens, layer);
  add_adapters_dgrad(list, s, s.tokens, layer);
  add_weight_cast(list, s, layer, " gradient cast back");
}

void add_norm_tensor(std::vector<Tensor>& list, const std::string& name, const spec::Model& model,
                     int64_t width) {
  if (model.norm_parameters == spec::NormParameters::none) return;
  const bool with_bias =
      model.norm == spec::Norm::layernorm && model.norm_parameters == spec::NormParameters::usual;
  list.push_back({.name = name,
                  .numel = width * (with_bias ? 2 : 1),
                  .always_selected = true,
                  .whole = Whole::sequence});
}

void add_weight(std::vector<Tensor>& list, const Linear& layer, bool bias) {
  const auto whole = [&](Split split) {
    return layer.split == split || layer.split == Split::none ? Whole::sequence : Whole::never;
  };
  list.push_back({.name = layer.name + ".weight",
                  .numel = layer.out * layer.in,
                  .rows = layer.out,
                  .whole = whole(Split::none)});
  if (bias)
    list.push_back({.name = layer.name + ".bias",
                    .numel = layer.out,
                    .always_selected = true,
                    .whole = whole(Split::rows)});
}

void add_adapter_tensors(std::vector<Tensor>& list, const Shape& s, const Linear& layer) {
  for (const Linear::Adapter& adapter : layer.adapters) {
    list.push_back(
        {.name = adapter.name + ".lora_A", .numel = s.lora_rank * layer.in, .rows = s.lora_rank});
    list.push_back({.name = adapter.name + ".lora_B",
                    .numel = adapter.out * s.lora_rank,
                    .rows = adapter.out});
  }
}

double kept_by_adapters(const Shape& s, const Linear& layer) {
  return static_cast<double>(layer.adapters.size()) * times(s.tokens, s.lora_rank);
}

}  // namespace scapesim::workload
