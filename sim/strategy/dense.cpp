// SPDX-License-Identifier: Apache-2.0
// Dense gradients: DDP all-reduce (one buffer or buckets, overlapped with backward or not), and
// Megatron-LM's distributed optimizer (ZeRO-1): reduce-scatter, sharded update, all-gather.
#include <algorithm>

#include "sim/strategy/methods.hpp"
#include "sim/strategy/optimizer.hpp"

namespace scapesim::strategy {

namespace {

using graph::CollectiveKind;
using graph::Kind;
using graph::OpId;
using graph::Stream;

bool sharded(const Context& context) {
  return context.scenario.strategy.sharding == spec::Sharding::zero1;
}

double parameters(const Context& context) {
  return static_cast<double>(context.workload.parameters);
}

/// Optimizer state a rank updates: all of it, or its shard.
double updated_parameters(const Context& context) {
  return sharded(context) ? parameters(context) / context.ranks : parameters(context);
}

class Dense final : public Communication {
 public:
  explicit Dense(const Context& context) : context_(context) {}

  void gradient_ready(Program& program, int layer, OpId backward) override {
    if (!context_.scenario.training.overlap_gradients) return;
    waiting_ += parameters_of(context_.workload.layers[static_cast<std::size_t>(layer)]);
    if (gradient_size(waiting_) >= overlapped_bucket()) reduce(program, waiting_, backward);
  }

  void step_end(Program& program, OpId last) override {
    const OpId upkeep = add_upkeep(program, last);
    if (!context_.scenario.training.overlap_gradients)
      reduce_in_buckets(program, upkeep);
    else if (waiting_ > 0)
      reduce(program, waiting_, last);

    Waits ready;
    also_wait(ready, reduced_);
    // Without sharding every rank holds all reduced gradients: no communication for the norm.
    if (sharded(context_))
      also_wait(ready, add_call(program, context_,
                                {.name = "gradient norm all-reduce",
                                 .kind = CollectiveKind::all_reduce,
                                 .bytes = Bytes(4),
                                 .regime = Regime::scalar},
                                Stream::communication, "M23", ready));
    const OpId update = add_update(program, ready);
    if (sharded(context_)) gather_parameters(program, update);
  }

 private:
  // [M35] Megatron-LM's default when gradients overlap: 40 million elements, or a million per rank.
  Bytes overlapped_bucket() const {
    const std::int64_t elements = std::max<std::int64_t>(40'000'000, 1'000'000LL * context_.ranks);
    return context_.scenario.training.bucket.value_or(gradient_size(elements));
  }

  Bytes gradient_size(std::int64_t elements) const {
    return Bytes(static_cast<double>(elements) *
                 gradient_bytes(context_.scenario.training.gradient_dtype));
  }

  OpId add_upkeep(Program& program, OpId last) const {
    const double per_parameter = gradient_upkeep_bytes(context_.scenario.training.gradient_dtype);
    return add_pass(program, context_,
                    {.name = "gradient scaling and zeroing",
                     .traffic = Bytes(parameters(context_) * per_parameter),
                     .launches = 2,
                     .formula = "M31"},
                    {{last}});
  }

  // [M32] Gradients cross the ring once as an all-reduce (8Na bytes sent in fp32), or as a
  // reduce-scatter (4Na) when the optimizer is sharded.
  void reduce(Program& program, std::int64_t elements, OpId ready) {
    const auto kind =
        sharded(context_) ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
    const auto call =
        add_call(program, context_,
                 {.name = sharded(context_) ? "gradient reduce-scatter" : "gradient all-reduce",
                  .kind = kind,
                  .bytes = gradient_size(elements)},
                 Stream::communication, "M32", {{ready}});
    if (call) reduced_ = call;
    waiting_ = 0;
  }

  void reduce_in_buckets(Program& program, OpId ready) {
    const auto& bucket = context_.scenario.training.bucket;
    std::int64_t left = context_.workload.parameters;
    if (bucket) {
      const double size = gradient_bytes(context_.scenario.training.gradient_dtype);
      const auto most = std::max<std::int64_t>(1, static_cast<std::int64_t>(bucket->si() / size));
      refuse_too_many("training.bucket", (left + most - 1) / most, "buckets");
      for (; left > most; left -= most) reduce(program, most, ready);
    }
    reduce(program, left, ready);
  }

  OpId add_update(Program& program, const Waits& ready) const {
    const spec::Scenario& s = context_.scenario;
    const bool fused = s.strategy.kernels == spec::Kernels::fused;
    const bool mixed = s.training.precision != spec::Precision::fp32;
    // The fused kernel writes the parameters in compute precision too.
    const double copy = fused && mixed ? parameter_bytes(s.training.precision) : 0;
    const double bytes = update_bytes(s.training.optimizer, s.strategy.kernels) + copy;
    return add_pass(program, context_,
                    {.name = std::string(name_of(s.training.optimizer)) + " update",
                     .traffic = Bytes(updated_parameters(context_) * bytes),
                     .launches = fused ? 1 : 12,
                     .formula = "M30"},
                    ready);
  }

  void gather_parameters(Program& program, OpId update) const {
    const double element = parameter_bytes(context_.scenario.training.precision);
    const auto gathered = add_call(program, context_,
                                   {.name = "parameter all-gather",
                                    .kind = CollectiveKind::all_gather,
                                    .bytes = Bytes(parameters(context_) * element)},
                                   Stream::communication, "M32", {{update}});
    // The step ends when the parameters are whole again.
    if (gathered)
      add_pass(program, context_,
               {.name = "parameters ready",
                .kind = Kind::host,
                .traffic = Bytes(0),
                .launches = 0,
                .formula = "M32"},
               {{*gathered}});
  }

  const Context& context_;
  std::int64_t waiting_ = 0;  ///< gradient elements complete and not yet in a bucket
  std::optional<OpId> reduced_;
};

}  // namespace

std::unique_ptr<Communication> make_dense(const Context& context) {
  return std::make_unique<Dense>(context);
}

// [M62] Parameters in compute precision, gradients, fp32 master weights and moments; the sharded
// optimizer keeps its share of the latter two only (Rajbhandari 2020, ZeRO-1).
StateMemory dense_memory(const Context& context) {
  const spec::Training& training = context.scenario.training;
  const double n = parameters(context);
  const bool mixed = training.precision != spec::Precision::fp32;
  const double state = 4.0 * moments(training.optimizer) + (mixed ? 4.0 : 0.0);
  return {.parameters = Bytes(n * parameter_bytes(training.precision)),
          .gradients = Bytes(n * gradient_bytes(training.gradient_dtype)),
          .optimizer = Bytes(updated_parameters(context) * state),
          .strategy = Bytes(0),
          .step_end = Bytes(2 * 4.0 * static_cast<double>(context.workload.largest_tensor))};
}

}  // namespace scapesim::strategy
