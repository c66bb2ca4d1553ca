// SPDX-License-Identifier: Apache-2.0
// The MLP branch of a layer: one MLP, or routed and shared experts.
#include <algorithm>

#include "sim/base/check.hpp"
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
  bool bias = false;
};

Linear fc1_of(const Mlp& mlp, const Shape& s) {
  using enum spec::LoraTarget;
  Linear layer{.name = mlp.prefix + "fc1", .out = mlp.ffn_in, .in = s.hidden, .bias = mlp.bias};
  const auto add = [&](spec::LoraTarget target, int64_t out) {
    if (adapts(s, target)) layer.adapters.push_back({std::string(name_of(target)), out});
  };
  add(gate_up_proj, mlp.ffn_in);
  if (mlp.ffn_in > mlp.ffn) add(gate_proj, mlp.ffn);
  add(up_proj, mlp.ffn);
  return layer;
}
Linear fc2_of(const Mlp& mlp, const Shape& s) {
  Linear layer{.name = mlp.prefix + "fc2",
               .out = s.hidden,
               .in = mlp.ffn,
               .bias = mlp.bias,
               .split = Split::rows};
  if (adapts(s, spec::LoraTarget::down_proj)) layer.adapters.push_back({"down_proj", s.hidden});
  return layer;
}

/// [M453] One kernel, or with a gate one for each half forward, and backward two for the product,
/// one for the non-linearity and one that joins the gradients of gate and input.
void add_activation_forward(Operations& list, const Shape& s, int64_t tokens, const Mlp& mlp) {
  const bool apart = s.kernels == spec::ElementWise::eager && mlp.ffn_in > mlp.ffn;
  add_pass(list, mlp.prefix + "activation", s, tokens, apart ? 5 * mlp.ffn : mlp.ffn_in + mlp.ffn,
           apart ? 2 : 1);
}
void add_activation_backward(Operations& list, const Shape& s, int64_t tokens, const Mlp& mlp) {
  const bool apart = s.kernels == spec::ElementWise::eager && mlp.ffn_in > mlp.ffn;
  add_pass(list, mlp.prefix + "activation backward", s, tokens,
           apart ? 13 * mlp.ffn : 2 * mlp.ffn_in + mlp.ffn, apart ? 4 : 1);
}

void add_mlp_forward(Operations& list, const Shape& s, const Mlp& mlp) {
  add_columns_forward(list, s, fc1_of(mlp, s));
  add_activation_forward(list, s, s.tokens, mlp);
  add_rows_forward(list, s, fc2_of(mlp, s));
}

void add_mlp_backward(Operations& list, const Shape& s, const Mlp& mlp) {
  add_rows_backward(list, s, fc2_of(mlp, s));
  add_activation_backward(list, s, s.tokens, mlp);
  add_columns_backward(list, s, fc1_of(mlp, s));
}

void add_mlp_tensors(std::vector<Tensor>& list, const spec::Model& model, const Shape& s,
                     const Mlp& mlp) {
  const bool bias = model.biases == spec::Biases::all;
  add_weight(list, fc1_of(mlp, s), bias);
  add_weight(list, fc2_of(mlp, s), bias);
}

/// [M60] Both sides of the activation. [M430] The second one is the input of the second matrix,
/// which only its weight gradient and its adapters need.
double kept_elements(const Shape& s, const Mlp& mlp) {
  const Linear fc1 = fc1_of(mlp, s), fc2 = fc2_of(mlp, s);
  const bool input = s.trains || !fc2.adapters.empty();
  return times(s.tokens, mlp.ffn_in + (input ? mlp.ffn : 0)) + kept_by_adapters(s, fc1) +
         kept_by_adapters(s, fc2);
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
  if (!s.trains) return;
  list.push_back(
      grouped(layer.name + " wgrad", s,
              {.m = layer.out, .n = layer.in, .k = s.expert_rows, .accumulate_fp32 = s.fp32_sums}));
}

/// Activations that cross the expert-parallel group with its dispatcher.
struct Crossing {
  CollectiveKind out = CollectiveKind::all_to_all;   ///< to the experts
  CollectiveKind back = CollectiveKind::all_to_all;  ///< from them
  double elements = 0;
};
Crossing crossing_of(const Shape& s) {
  switch (s.dispatcher) {
    case spec::Dispatcher::all_to_all:
      return {.elements = times(s.sent_rows, s.hidden)};
    case spec::Dispatcher::per_rank:
      return {.elements = s.rank_copies * times(s.norm_tokens, s.hidden)};
    case spec::Dispatcher::all_gather:
      return {.out = CollectiveKind::all_gather,
              .back = CollectiveKind::reduce_scatter,
              .elements = times(s.ep * s.norm_tokens, s.hidden)};
  }
  throw InternalError("dispatcher");
}

/// [M214] [M457] Tokens to their experts or back, and where these are split over tp the rows of the
/// whole group to all its ranks, or summed and scattered.
void add_to_experts(Operations& list, const Shape& s, const std::string& name) {
  const Crossing crossing = crossing_of(s);
  if (s.experts_elsewhere)
    add_exchange(list, s,
                 {.name = name + " " + std::string(name_of(crossing.out)),
                  .kind = crossing.out,
                  .axis = Axis::expert,
                  .elements = crossing.elements});
  if (s.experts_split)
    add_exchange(list, s,
                 {.name = name + " all-gather",
                  .kind = CollectiveKind::all_gather,
                  .elements = times(rows(s), s.hidden)});
}
void add_from_experts(Operations& list, const Shape& s, const std::string& name) {
  const Crossing crossing = crossing_of(s);
  if (s.experts_split)
    add_exchange(list, s,
                 {.name = name + " reduce-scatter",
                  .kind = CollectiveKind::reduce_scatter,
                  .elements = times(rows(s), s.hidden)});
  if (s.experts_elsewhere)
    add_exchange(list, s,
                 {.name = name + " " + std::string(name_of(crossing.back)),
                  .kind = crossing.back,
                  .axis = Axis::expert,
                  .elements = crossing.elements});
}

/// Passes over the routed copies of the tokens; `routed` elements for each copy, `whole` for each
/// token.
void add_routed_pass(Operations& list, const std::string& name, const Shape& s, int64_t routed,
                     int64_t whole, int launches) {
  const double elements = times(s.sent_rows, routed) + times(s.norm_tokens, whole);
  list.push_back({name, Pass{.traffic = Bytes(elements * s.element), .launches = launches}});
}

/// Rows of a token summed: one read and one write, or [M409] zeros written, and each row read and
/// added.
void add_joining(Operations& list, const std::string& name, const Shape& s) {
  add_routed_pass(list, name, s, (s.permute_fusion ? 1 : 3) * s.hidden, s.hidden,
                  s.permute_fusion ? 1 : 2);
  if (!s.permute_fusion) std::get<Pass>(list.back().shape).added = times(s.sent_rows, s.hidden);
}

/// [M214] Router in fp32: logits, softmax and choice, each read and written once.
constexpr int64_t kRouterPasses = 6;

Linear router_of(const spec::Model& model, const Shape& s) {
  return {.name = "router", .out = model.experts, .in = s.hidden, .split = Split::none};
}
Mlp experts_of(const Shape& s) { return {"expert ", s.expert_ffn, s.expert_ffn_in}; }
Mlp shared_of(const Shape& s) { return {"shared ", s.shared_ffn, s.shared_ffn_in}; }

Pass router_pass(const spec::Model& model, const Shape& s) {
  const double logits = times(s.norm_tokens, model.experts);
  return {.traffic = Bytes(logits * kFloat * static_cast<double>(kRouterPasses)), .launches = 3};
}

/// [M457] Rows put in the order of the rank's experts behind the exchange, or back before the other
/// one, in elements per row of the experts and per token of the rank. all_to_all: rows of each rank
/// are sorted by expert, one read and one write. per_rank: copies that arrived once become rows.
/// all_gather: rows are picked from all tokens; back they are added (read, read and written) to
/// zeros for all of them.
struct Order {
  double per_row = 0, per_token = 0;
  int launches = 0;
};
enum class Way { spread, join };
Order order_of(const Shape& s, Way way) {
  if (!s.experts_elsewhere) return {};
  switch (s.dispatcher) {
    case spec::Dispatcher::all_to_all:
      return s.experts > 1 ? Order{2, 0, 1} : Order{};
    case spec::Dispatcher::per_rank:
      return {1, s.rank_copies, 1};
    case spec::Dispatcher::all_gather:
      return way == Way::spread ? Order{2, 0, 2} : Order{3, static_cast<double>(s.ep), 2};
  }
  throw InternalError("dispatcher");
}
void add_order(Operations& list, const std::string& name, const Shape& s, Way way) {
  const Order order = order_of(s, way);
  if (order.launches == 0) return;
  const double elements =
      order.per_row * times(rows(s), s.hidden) + order.per_token * times(s.norm_tokens, s.hidden);
  const bool added =
      !s.permute_fusion && way == Way::join && s.dispatcher == spec::Dispatcher::all_gather;
  list.push_back({name, Pass{.traffic = activation_bytes(s, elements),
                             .launches = order.launches,
                             .added = added ? times(rows(s), s.hidden) : 0}});
}

/// Whether the sender copies a token for each expert before the exchange.
bool copies_first(const Shape& s) {
  return !s.experts_elsewhere || s.dispatcher == spec::Dispatcher::all_to_all;
}

void add_experts_forward(Operations& list, const spec::Model& model, const Shape& s) {
  const Mlp mlp = experts_of(s);
  add_gemm(list, "router", s.norm_tokens, model.experts, s.hidden);
  list.push_back({"routing", router_pass(model, s)});
  if (copies_first(s)) add_routed_pass(list, "permute", s, s.hidden, s.hidden, 1);
  add_to_experts(list, s, "dispatch");
  add_order(list, "rows to experts", s, Way::spread);
  add_grouped_forward(list, s, fc1_of(mlp, s));
  add_activation_forward(list, s, rows(s), mlp);
  add_grouped_forward(list, s, fc2_of(mlp, s));
  add_order(list, "rows from experts", s, Way::join);
  add_from_experts(list, s, "combine");
  if (copies_first(s)) add_joining(list, "unpermute", s);
}

void add_experts_backward(Operations& list, const spec::Model& model, const Shape& s) {
  const Mlp mlp = experts_of(s);
  if (copies_first(s)) add_routed_pass(list, "unpermute backward", s, 2 * s.hidden, s.hidden, 1);
  add_to_experts(list, s, "combine backward");
  add_order(list, "rows to experts backward", s, Way::spread);
  add_grouped_backward(list, s, fc2_of(mlp, s));
  add_activation_backward(list, s, rows(s), mlp);
  add_grouped_backward(list, s, fc1_of(mlp, s));
  add_order(list, "rows from experts backward", s, Way::join);
  add_from_experts(list, s, "dispatch backward");
  if (copies_first(s)) add_joining(list, "permute backward", s);
  list.push_back({"routing backward", router_pass(model, s)});
  add_linear_backward(list, s, s.norm_tokens, router_of(model, s));
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
    tensor.whole = Whole::never;
    list.push_back(std::move(tensor));
  }
  if (model.shared_experts > 0) add_mlp_tensors(list, model, s, shared_of(s));
  if (model.shared_expert_gate)
    list.push_back({.name = "shared gate.weight", .numel = s.hidden, .whole = Whole::sequence});
  return list;
}

}  // namespace

Branch mlp_branch(const spec::Model& model, const Shape& s) {
  const Mlp mlp{"", s.ffn, s.ffn_in, model.biases == spec::Biases::all};
  Branch branch;
  add_mlp_tensors(branch.tensors, model, s, mlp);
  add_mlp_forward(branch.forward, s, mlp);
  add_mlp_backward(branch.backward, s, mlp);
  branch.kept = kept_elements(s, mlp);
  const Linear fc1 = fc1_of(mlp, s);
  branch.keeps_input = s.trains || !fc1.adapters.empty();
  add_adapter_tensors(branch.adapters, s, fc1);
  add_adapter_tensors(branch.adapters, s, fc2_of(mlp, s));
  return branch;
}

// [M60] Of the experts: their input, both sides of the activation, their output, which the router's
// gradient needs; the router's logits and weights in fp32.
Branch expert_branch(const spec::Model& model, const Shape& s) {
  Branch branch;
  branch.tensors = expert_tensors(model, s);
  branch.keeps_input = s.trains;
  add_experts_forward(branch.forward, model, s);
  if (model.shared_experts > 0) {
    add_mlp_forward(branch.forward, s, shared_of(s));
    add_mlp_backward(branch.backward, s, shared_of(s));
    branch.kept += kept_elements(s, shared_of(s));
  }
  add_experts_backward(branch.backward, model, s);
  const int64_t products = s.trains ? s.expert_ffn : 0;
  branch.kept += times(rows(s), s.expert_ffn_in + products + s.hidden) +
                 (s.trains ? times(s.sent_rows, s.hidden) : 0);
  branch.routing = Bytes(2 * kFloat * times(s.norm_tokens, model.experts));
  return branch;
}

}  // namespace scapesim::workload
