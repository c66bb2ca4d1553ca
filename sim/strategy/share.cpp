// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/share.hpp"

#include "sim/strategy/optimizer.hpp"

namespace scapesim::strategy {

using graph::Axis;
using graph::CollectiveKind;
using graph::OpId;
using graph::Stream;

std::int64_t elements_of(const workload::Layer& layer, Axis axis) {
  std::int64_t sum = 0;
  for (const workload::Tensor& tensor : layer.tensors)
    if (tensor.expert == (axis == Axis::expert_data)) sum += tensor.numel;
  return sum;
}

Bytes frozen_of(const workload::Layer& layer, Axis axis) {
  return workload::frozen_bytes(
      layer, axis == Axis::expert_data ? workload::Part::experts : workload::Part::dense);
}

std::vector<Share> shares_of(const Context& context) {
  std::vector<Share> shares;
  for (const Axis axis : {Axis::data, Axis::expert_data}) {
    Share share{.axis = axis, .elements = 0, .ranks = graph::group_size(context.mesh, axis)};
    for (const workload::Layer& layer : context.workload.layers)
      share.elements += elements_of(layer, axis);
    if (share.elements > 0) shares.push_back(share);
  }
  return shares;
}

std::string call_name(std::string_view what, Axis axis) {
  return (axis == Axis::expert_data ? "expert " : "") + std::string(what);
}

// [M23] With the optimizer sharded, or the model split, a rank knows a part of the gradients only.
std::optional<OpId> add_norm(Program& program, const Context& context, const Waits& ready) {
  const bool sharded = context.scenario.strategy.sharding != spec::Sharding::none;
  if (!sharded && context.mesh.ranks() == context.ranks) return std::nullopt;
  return add_call(program, context,
                  {.name = "gradient norm all-reduce",
                   .kind = CollectiveKind::all_reduce,
                   .bytes = Bytes(4),
                   .regime = Regime::scalar,
                   .axis = Axis::world},
                  Stream::communication, "M23", ready);
}

// [M241] The sum of both gradients, over pairs of first and last stage.
std::optional<OpId> add_embedding_sum(Program& program, const Context& context, const Waits& ready,
                                      int shares) {
  if (context.tied_embedding == 0) return std::nullopt;
  const double element = gradient_bytes(context.scenario.training.gradient_dtype);
  return add_call(program, context,
                  {.name = "embedding gradient all-reduce",
                   .kind = CollectiveKind::all_reduce,
                   .bytes = Bytes(static_cast<double>(context.tied_embedding) * element / shares),
                   .axis = Axis::embedding},
                  Stream::communication, "M241", ready);
}

OpId add_upkeep(Program& program, const Context& context, double elements, OpId last) {
  const double per_parameter = gradient_upkeep_bytes(context.scenario.training.gradient_dtype);
  return add_pass(program, context,
                  {.name = "gradient scaling and zeroing",
                   .traffic = Bytes(elements * per_parameter),
                   .launches = 2,
                   .formula = "M31"},
                  {{last}});
}

OpId add_update(Program& program, const Context& context, double elements, const Waits& ready) {
  const spec::Scenario& s = context.scenario;
  const bool fused = s.strategy.kernels == spec::Kernels::fused;
  const bool mixed = s.training.precision != spec::Precision::fp32;
  // The fused kernel writes the parameters in compute precision too.
  const double copy = fused && mixed ? parameter_bytes(s.training.precision) : 0;
  const double bytes = update_bytes(s.training.optimizer, s.strategy.kernels) + copy;
  return add_pass(program, context,
                  {.name = std::string(name_of(s.training.optimizer)) + " update",
                   .traffic = Bytes(elements * bytes),
                   .launches = fused ? 1 : 12,
                   .formula = "M30"},
                  ready);
}

}  // namespace scapesim::strategy
