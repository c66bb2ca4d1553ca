// SPDX-License-Identifier: Apache-2.0
// Parameters, gradients and optimizer state sharded: ZeRO-3, FSDP, and HSDP, which shards inside
// groups and sums across them. A layer's parameters are gathered before its passes and its
// gradients are scattered behind every backward pass.
#include "sim/strategy/fully_sharded.hpp"

#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/strategy/methods.hpp"
#include "sim/strategy/optimizer.hpp"
#include "sim/strategy/share.hpp"

namespace scapesim::strategy {

namespace {

using graph::Axis;
using graph::CollectiveKind;
using graph::OpId;
using graph::Stream;

double held(const Context& context, const Share& share) {
  const Axis axis = sharded_over(context, share.axis);
  return static_cast<double>(share.elements) / graph::group_size(context.mesh, axis);
}

/// [M452] Bytes of a gathered parameter: autocast casts after the gather.
double gathered_bytes(const Context& context) {
  const spec::Training& training = context.scenario.training;
  return training.autocast ? 4 : parameter_bytes(training.precision);
}

double held_elements(const Context& context) {
  double sum = 0;
  for (const Share& share : shares_of(context)) sum += held(context, share);
  return sum;
}

}  // namespace

Axis sharded_over(const Context& context, Axis axis) {
  const bool groups = context.scenario.strategy.sharding == spec::Sharding::hsdp;
  return groups && axis == Axis::data ? Axis::shard : axis;
}

FullySharded::FullySharded(const Context& context)
    : context_(context), shares_(shares_of(context)), strategy_(context.scenario.strategy) {}

// [M243] A layer is gathered while those before it run: when the layer `prefetch` + 1 passes
// before has freed its parameters. Gradients of a layer are queued behind the gathers that were
// issued first.
Waits FullySharded::layer_needed(Program& program, const LayerPass& pass) {
  Waits needed;
  // [M430] Nothing runs backward there.
  const bool rests = pass.direction == Direction::backward && layer_of(pass).rests;
  if (!rests && !kept(pass) && !still_held(pass)) needed = gather_layer(program, pass);
  send_gradients(program, static_cast<std::size_t>(strategy_.prefetch));
  return needed;
}

void FullySharded::layer_done(Program& program, const LayerPass& pass, OpId op) {
  passes_.push_back(op);
  held_layer_ = pass.layer;
  if (pass.direction == Direction::backward) {
    if (workload::parameters_of(layer_of(pass)) > 0)
      pending_.push_back({pass, copy_gradients(program, pass, op)});
    held_layer_.reset();
  }
}

void FullySharded::step_end(Program& program, OpId last) {
  send_gradients(program, 0);
  Waits ready = reduced_;
  const OpId upkeep = add_upkeep(program, context_, held_elements(context_), last);
  const Waits gradients = ready.empty() ? Waits{{upkeep}} : ready;
  // [M241] Both ends of a pipeline sum their shares of a tied embedding's gradients.
  const int shares = graph::group_size(context_.mesh, sharded_over(context_, Axis::data));
  also_wait(ready, add_embedding_sum(program, context_, gradients, shares));
  also_wait(ready, add_norm(program, context_, ready.empty() ? gradients : ready));
  const OpId update = add_update(program, context_, held_elements(context_), ready);
  for (const OpId first : first_gathers_)
    program.operations[index(first)].waits_for.push_back({update, 1});
}

const workload::Layer& FullySharded::layer_of(const LayerPass& pass) const {
  return context_.workload.layers[static_cast<std::size_t>(pass.layer)];
}

/// Without resharding a layer stays whole until its backward pass; in a pipeline, where the next
/// micro-batch may be on its way, for the whole step.
bool FullySharded::kept(const LayerPass& pass) const {
  if (strategy_.reshard_after_forward) return false;
  const bool pipelined = context_.mesh.pp > 1 && !pass.first;
  return pass.direction == Direction::backward || pipelined;
}

/// The layer that ran last is still whole.
bool FullySharded::still_held(const LayerPass& pass) const {
  return held_layer_ == pass.layer && pass.direction == Direction::backward;
}

// [M456] Gradients of a layer are copied into one flat tensor and divided by the ranks: read and
// written twice. Under autocast they are fp32 until they are cast for the reduction.
OpId FullySharded::copy_gradients(Program& program, const LayerPass& pass, OpId ready) const {
  const spec::Training& training = context_.scenario.training;
  const double made = training.autocast ? 4 : parameter_bytes(training.precision);
  const double sent = gradient_bytes(training.gradient_dtype);
  const double bytes = 2 * made + (made == sent ? 0 : made + sent) + 2 * sent;
  const auto elements = static_cast<double>(workload::parameters_of(layer_of(pass)));
  return add_pass(program, context_,
                  {.name = "gradient copies",
                   .kind = graph::Kind::compute,
                   .traffic = Bytes(elements * bytes),
                   .launches = made == sent ? 2 : 3,
                   .formula = "M456"},
                  {{ready}});
}

void FullySharded::when_room(Program& program, OpId op) {
  const auto ahead = static_cast<std::size_t>(strategy_.prefetch) + 1;
  if (passes_.size() >= ahead)
    program.operations[index(op)].waits_for.push_back({passes_[passes_.size() - ahead]});
  else
    first_gathers_.push_back(op);
}

Waits FullySharded::gather_layer(Program& program, const LayerPass& pass) {
  const double element = gathered_bytes(context_);
  Waits gathered;
  for (const Axis axis : {Axis::data, Axis::expert_data}) {
    const std::int64_t elements = elements_of(layer_of(pass), axis);
    const Bytes size =
        Bytes(static_cast<double>(elements) * element) + frozen_of(layer_of(pass), axis);
    if (size == Bytes(0)) continue;
    const auto call = add_call(program, context_,
                               {.name = call_name("parameter all-gather", axis),
                                .kind = CollectiveKind::all_gather,
                                .bytes = size,
                                .axis = sharded_over(context_, axis)},
                               Stream::communication, "M243", {});
    if (call) when_room(program, *call);
    also_wait(gathered, call);
  }
  return gathered;
}

void FullySharded::send_gradients(Program& program, std::size_t left) {
  for (; pending_.size() > left; pending_.pop_front()) {
    const Pending& pending = pending_.front();
    const Waits done = reduce_layer(program, pending.pass, pending.backward);
    if (pending.pass.last) reduced_.insert(reduced_.end(), done.begin(), done.end());
  }
}

Waits FullySharded::reduce_layer(Program& program, const LayerPass& pass, OpId backward) {
  Waits done;
  for (const Share& share : shares_) {
    const std::int64_t elements = elements_of(layer_of(pass), share.axis);
    if (elements > 0)
      also_wait(done, scatter(program, share.axis, static_cast<double>(elements), backward));
  }
  return done;
}

// [M244] Every backward pass scatters its gradients; across the groups of HSDP the shares are
// summed as well.
std::optional<OpId> FullySharded::scatter(Program& program, Axis axis, double elements,
                                          OpId backward) {
  const Bytes size(elements * gradient_bytes(context_.scenario.training.gradient_dtype));
  const Axis shard = sharded_over(context_, axis);
  auto done = add_call(program, context_,
                       {.name = call_name("gradient reduce-scatter", axis),
                        .kind = CollectiveKind::reduce_scatter,
                        .bytes = size,
                        .axis = shard},
                       Stream::communication, "M244", {{backward}});
  if (shard != Axis::shard) return done;
  Waits ready{{backward}};
  also_wait(ready, done);
  const auto summed = add_call(program, context_,
                               {.name = "gradient all-reduce",
                                .kind = CollectiveKind::all_reduce,
                                .bytes = size / graph::group_size(context_.mesh, shard),
                                .axis = Axis::replica},
                               Stream::communication, "M244", ready);
  return summed ? summed : done;
}

namespace {

/// The largest layers that are whole at once.
Bytes gathered_size(const Context& context) {
  std::vector<double> sizes;
  for (const workload::Layer& layer : context.workload.layers) {
    const Bytes frozen = frozen_of(layer, Axis::data) + frozen_of(layer, Axis::expert_data);
    sizes.push_back(static_cast<double>(workload::parameters_of(layer)) * gathered_bytes(context) +
                    frozen.si());
  }
  if (context.scenario.strategy.reshard_after_forward) {
    std::ranges::sort(sizes, std::greater{});
    sizes.resize(
        std::min(sizes.size(), static_cast<std::size_t>(context.scenario.strategy.prefetch) + 1));
  }
  double sum = 0;
  for (const double size : sizes) sum += size;
  return Bytes(sum);
}

}  // namespace

bool is_fully_sharded(spec::Sharding sharding) {
  return sharding == spec::Sharding::zero3 || sharding == spec::Sharding::fsdp ||
         sharding == spec::Sharding::hsdp;
}

Bytes frozen_memory(const Context& context) {
  const bool shards = is_fully_sharded(context.scenario.strategy.sharding);
  Bytes sum;
  for (const Axis axis : {Axis::data, Axis::expert_data}) {
    Bytes whole;
    for (const workload::Layer& layer : context.workload.layers) whole += frozen_of(layer, axis);
    const int ranks = shards ? graph::group_size(context.mesh, sharded_over(context, axis)) : 1;
    sum += whole / ranks;
  }
  return sum;
}

std::unique_ptr<Communication> make_fully_sharded(const Context& context) {
  return std::make_unique<FullySharded>(context);
}

// [M245] A share of everything (Rajbhandari 2020, table 1), the layers gathered at once and the
// gradients of the layer that runs. FSDP keeps fp32 shards alone and casts what it gathers; ZeRO-3
// keeps a share in compute precision beside its master weights.
StateMemory fully_sharded_memory(const Context& context) {
  const spec::Training& training = context.scenario.training;
  const bool keeps_copy = context.scenario.strategy.sharding == spec::Sharding::zero3;
  const bool mixed = training.precision != spec::Precision::fp32;
  const double n = held_elements(context);
  const double parameter = parameter_bytes(training.precision);
  const double master = mixed ? 4.0 : 0.0;
  std::int64_t largest = 0;
  for (const workload::Layer& layer : context.workload.layers)
    largest = std::max(largest, workload::parameters_of(layer));
  const double gradient = gradient_bytes(training.gradient_dtype);
  return {.parameters = Bytes(n * (keeps_copy || !mixed ? parameter : 0)),
          .gradients = Bytes(n * gradient),
          .optimizer = Bytes(n * (4.0 * moments(training.optimizer) + master)),
          .strategy = gathered_size(context) + Bytes(static_cast<double>(largest) * gradient),
          .step_end = Bytes(0)};
}

}  // namespace scapesim::strategy
