// SPDX-License-Identifier: Apache-2.0
#include "sim/workload/shape.hpp"

#include <algorithm>
#include <cmath>

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
  s.experts_split = split > 1;
  s.experts_elsewhere = parallelism.ep > 1;
}

}  // namespace

bool gated(const spec::Model& model) {
  return model.activation == spec::Activation::swiglu ||
         model.activation == spec::Activation::geglu;
}

Shape shape_of(const spec::Model& model, const spec::Training& training,
               const spec::Parallelism& parallelism) {
  Shape s{};
  s.tp = parallelism.tp;
  s.cp = parallelism.cp;
  s.sequence_parallel = parallelism.sequence_parallel && s.tp > 1;
  s.core = training.attention;
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

void add_linear_backward(Operations& list, int64_t tokens, const Linear& layer) {
  add_gemm(list, layer.name + " dgrad", tokens, layer.in, layer.out);
  list.push_back({layer.name + " wgrad",
                  Gemm{.m = layer.out, .n = layer.in, .k = tokens, .accumulate_fp32 = true}});
}

void add_columns_forward(Operations& list, const Shape& s, const Linear& layer) {
  add_cast(list, layer, " input cast", s, s.norm_tokens, layer.in);
  if (s.sequence_parallel)
    add_exchange(list, s,
                 {.name = layer.name + " input all-gather",
                  .kind = CollectiveKind::all_gather,
                  .elements = times(s.tokens, layer.in)});
  add_gemm(list, layer.name, s.tokens, layer.out, layer.in);
}

// The input is gathered again beside the input gradient, whose sum runs beside the weight gradient:
// Megatron-LM's LinearWithGradAccumulationAndAsyncCommunication.
void add_columns_backward(Operations& list, const Shape& s, const Linear& layer) {
  const std::string dgrad = layer.name + " dgrad", wgrad = layer.name + " wgrad";
  Operations products;
  add_cast(list, layer, " gradient cast", s, s.tokens, layer.out);
  add_linear_backward(products, s.tokens, layer);
  if (s.sequence_parallel)
    add_exchange(list, s,
                 {.name = layer.name + " input all-gather again",
                  .kind = CollectiveKind::all_gather,
                  .elements = times(s.tokens, layer.in),
                  .overlaps = dgrad});
  list.push_back(products[0]);
  if (s.tp > 1)
    add_exchange(
        list, s,
        {.name = dgrad + (s.sequence_parallel ? " reduce-scatter" : " all-reduce"),
         .kind = s.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
         .elements = times(s.tokens, layer.in),
         .overlaps = wgrad});
  list.push_back(products[1]);
}

void add_rows_forward(Operations& list, const Shape& s, const Linear& layer) {
  add_cast(list, layer, " input cast", s, s.tokens, layer.in);
  add_gemm(list, layer.name, s.tokens, layer.out, layer.in);
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
  add_linear_backward(list, s.tokens, layer);
}

void add_norm_tensor(std::vector<Tensor>& list, const std::string& name, const spec::Model& model,
                     int64_t width) {
  if (model.norm_parameters == spec::NormParameters::none) return;
  const bool with_bias =
      model.norm == spec::Norm::layernorm && model.norm_parameters == spec::NormParameters::usual;
  list.push_back({name, width * (with_bias ? 2 : 1), true});
}

void add_weight(std::vector<Tensor>& list, const Linear& layer, bool bias) {
  list.push_back(
      {.name = layer.name + ".weight", .numel = layer.out * layer.in, .rows = layer.out});
  if (bias) list.push_back({layer.name + ".bias", layer.out, true});
}

}  // namespace scapesim::workload
