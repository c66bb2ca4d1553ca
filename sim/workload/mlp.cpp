// SPDX-License-Identifier: Apache-2.0
// The MLP branch of a layer: one MLP, or routed and shared experts.
#include <algorithm>

#include "sim/workload/shape.hpp"

namespace scapesim::workload {

namespace {

using graph::Axis;
using graph::CollectiveKind;
using std::int64_t;

/// An MLP's sizes on the rank.
struct Mlp {
  std::string prefix;
  int64_t ffn = 0;
  int64_t ffn_in = 0;
};

Linear fc1_of(const Mlp& mlp, const Shape& s) { return {mlp.prefix + "fc1", mlp.ffn_in, s.hidden}; }
Linear fc2_of(const Mlp& mlp, const Shape& s) { return {mlp.prefix + "fc2", s.hidden, mlp.ffn}; }

void add_mlp_forward(Operations& list, const Shape& s, const Mlp& mlp) {
  add_columns_forward(list, s, fc1_of(mlp, s));
  add_pass(list, mlp.prefix + "activation", s, s.tokens, mlp.ffn_in + mlp.ffn);
  add_rows_forward(list, s, fc2_of(mlp, s));
}

void add_mlp_backward(Operations& list, const Shape& s, const Mlp& mlp) {
  add_rows_backward(list, s, fc2_of(mlp, s));
  add_pass(list, mlp.prefix + "activation backward", s, s.tokens, 2 * mlp.ffn_in + mlp.ffn);
  add_columns_backward(list, s, fc1_of(mlp, s));
}

void add_mlp_tensors(std::vector<Tensor>& list, const spec::Model& model, const Shape& s,
                     const Mlp& mlp) {
  const bool bias = model.biases == spec::Biases::all;
  add_weight(list, fc1_of(mlp, s), bias);
  add_weight(list, fc2_of(mlp, s), bias);
}

double kept_elements(const Shape& s, const Mlp& mlp) {
  return times(s.tokens, mlp.ffn_in + mlp.ffn);
}

int64_t rows(const Shape& s) { return s.experts * s.expert_rows; }

/// One product per expert of the rank, in one launch.
Operation grouped(std::string name, const Shape& s, Gemm gemm) {
  gemm.groups = s.experts;
  return {std::move(name), gemm};
}

void add_grouped_forward(Operations& list, const Shape& s, const Linear& layer) {
  add_cast(list, layer, " input cast", s, rows(s), layer.in);
  list.push_back(grouped(layer.name, s, {.m = s.expert_rows, .n = layer.out, .k = layer.in}));
}

void add_grouped_backward(Operations& list, const Shape& s, const Linear& layer) {
  add_cast(list, layer, " gradient cast", s, rows(s), layer.out);
  list.push_back(
      grouped(layer.name + " dgrad", s, {.m = s.expert_rows, .n = layer.in, .k = layer.out}));
  list.push_back(
      grouped(layer.name + " wgrad", s,
              {.m = layer.out, .n = layer.in, .k = s.expert_rows, .accumulate_fp32 = true}));
}

/// [M214] Tokens to their experts or back, and where these are split over tp the rows of the whole
/// group to all its ranks, or summed and scattered.
void add_to_experts(Operations& list, const Shape& s, const std::string& name) {
  if (s.experts_elsewhere)
    add_exchange(list, s,
                 {.name = name + " all-to-all",
                  .kind = CollectiveKind::all_to_all,
                  .axis = Axis::expert,
                  .elements = times(s.sent_rows, s.hidden)});
  if (s.experts_split)
    add_exchange(list, s,
                 {.name = name + " all-gather",
                  .kind = CollectiveKind::all_gather,
                  .elements = times(rows(s), s.hidden)});
}
void add_from_experts(Operations& list, const Shape& s, const std::string& name) {
  if (s.experts_split)
    add_exchange(list, s,
                 {.name = name + " reduce-scatter",
                  .kind = CollectiveKind::reduce_scatter,
                  .elements = times(rows(s), s.hidden)});
  if (s.experts_elsewhere)
    add_exchange(list, s,
                 {.name = name + " all-to-all",
                  .kind = CollectiveKind::all_to_all,
                  .axis = Axis::expert,
                  .elements = times(s.sent_rows, s.hidden)});
}

/// Passes over the routed copies of the tokens; `routed` elements for each copy, `whole` for each
/// token.
void add_routed_pass(Operations& list, const std::string& name, const Shape& s, int64_t routed,
                     int64_t whole, int launches) {
  const double elements = times(s.sent_rows, routed) + times(s.norm_tokens, whole);
  list.push_back({name, Pass{.traffic = Bytes(elements * s.element), .launches = launches}});
}

/// [M214] Router in fp32: logits, softmax and choice, each read and written once.
constexpr int64_t kRouterPasses = 6;

Linear router_of(const spec::Model& model, const Shape& s) {
  return {"router", model.experts, s.hidden};
}
Mlp experts_of(const Shape& s) { return {"expert ", s.expert_ffn, s.expert_ffn_in}; }
Mlp shared_of(const Shape& s) { return {"shared ", s.shared_ffn, s.shared_ffn_in}; }

Pass router_pass(const spec::Model& model, const Shape& s) {
  const double logits = times(s.norm_tokens, model.experts);
  return {.traffic = Bytes(logits * kFloat * static_cast<double>(kRouterPasses)), .launches = 3};
}

void add_experts_forward(Operations& list, const spec::Model& model, const Shape& s) {
  const Mlp mlp = experts_of(s);
  add_gemm(list, "router", s.norm_tokens, model.experts, s.hidden);
  list.push_back({"routing", router_pass(model, s)});
  add_routed_pass(list, "permute", s, s.hidden, s.hidden, 1);
  add_to_experts(list, s, "dispatch");
  add_grouped_forward(list, s, fc1_of(mlp, s));
  add_pass(list, "expert activation", s, rows(s), mlp.ffn_in + mlp.ffn);
  add_grouped_forward(list, s, fc2_of(mlp, s));
  add_from_experts(list, s, "combine");
  add_routed_pass(list, "unpermute", s, s.hidden, s.hidden, 1);
}

void add_experts_backward(Operations& list, const spec::Model& model, const Shape& s) {
  const Mlp mlp = experts_of(s);
  add_routed_pass(list, "unpermute backward", s, 2 * s.hidden, s.hidden, 1);
  add_to_experts(list, s, "combine backward");
  add_grouped_backward(list, s, fc2_of(mlp, s));
  add_pass(list, "expert activation backward", s, rows(s), 2 * mlp.ffn_in + mlp.ffn);
  add_grouped_backward(list, s, fc1_of(mlp, s));
  add_from_experts(list, s, "dispatch backward");
  add_routed_pass(list, "permute backward", s, s.hidden, s.hidden, 1);
  list.push_back({"routing backward", router_pass(model, s)});
  add_linear_backward(list, s.norm_tokens, router_of(model, s));
}

/// [M1] Router, routed experts in one tensor per matrix as grouped products hold them, shared ones.
std::vector<Tensor> expert_tensors(const spec::Model& model, const Shape& s) {
  std::vector<Tensor> list;
  add_weight(list, router_of(model, s), false);
  if (model.router_bias) list.push_back({"router.bias", model.experts, true});
  std::vector<Tensor> one;
  add_mlp_tensors(one, model, s, experts_of(s));
  for (Tensor tensor : one) {
    tensor.numel *= s.experts;
    tensor.rows *= s.experts;
    tensor.expert = true;
    list.push_back(std::move(tensor));
  }
  if (model.shared_experts > 0) add_mlp_tensors(list, model, s, shared_of(s));
  if (model.shared_expert_gate) list.push_back({"shared gate.weight", s.hidden});
  return list;
}

}  // namespace

Branch mlp_branch(const spec::Model& model, const Shape& s) {
  const Mlp mlp{"", s.ffn, s.ffn_in};
  Branch branch;
  add_mlp_tensors(branch.tensors, model, s, mlp);
  add_mlp_forward(branch.forward, s, mlp);
  add_mlp_backward(branch.backward, s, mlp);
  branch.kept = kept_elements(s, mlp);
  return branch;
}

// [M60] Of the experts: their input, both sides of the activation, their output, which the router's
// gradient needs; the router's logits and weights in fp32.
Branch expert_branch(const spec::Model& model, const Shape& s) {
  Branch branch;
  branch.tensors = expert_tensors(model, s);
  add_experts_forward(branch.forward, model, s);
  if (model.shared_experts > 0) {
    add_mlp_forward(branch.forward, s, shared_of(s));
    add_mlp_backward(branch.backward, s, shared_of(s));
    branch.kept += kept_elements(s, shared_of(s));
  }
  add_experts_backward(branch.backward, model, s);
  branch.kept +=
      times(rows(s), s.expert_ffn_in + s.expert_ffn + s.hidden) + times(s.sent_rows, s.hidden);
  branch.routing = Bytes(2 * kFloat * times(s.norm_tokens, model.experts));
  return branch;
}

}  // namespace scapesim::workload
