// SPDX-License-Identifier: Apache-2.0
// Dense gradients with whole parameters on every rank: DDP all-reduce (one buffer or buckets,
// overlapped with backward or not), Megatron-LM's distributed optimizer (ZeRO-1: reduce-scatter,
// sharded update, all-gather), and ZeRO-2, which keeps no gradients beyond the shard either.
#include <algorithm>

#include "sim/strategy/methods.hpp"
#include "sim/strategy/optimizer.hpp"
#include "sim/strategy/share.hpp"

namespace scapesim::strategy {

namespace {

using graph::Axis;
using graph::CollectiveKind;
using graph::Kind;
using graph::OpId;
using graph::Stream;

spec::Sharding sharding_of(const Context& context) { return context.scenario.strategy.sharding; }

bool sharded(const Context& context) { return sharding_of(context) != spec::Sharding::none; }

/// Gradients that a rank keeps from pass to pass.
double kept_gradients(const Context& context, const Share& share) {
  return sharding_of(context) == spec::Sharding::zero2 ? share.sharded()
                                                       : static_cast<double>(share.elements);
}

/// Optimizer state a rank updates: all of it, or its shard.
double updated(const Context& context, const Share& share) {
  return sharded(context) ? share.sharded() : static_cast<double>(share.elements);
}

template <class Count>
double sum_over(const std::vector<Share>& shares, const Context& context, Count count) {
  double sum = 0;
  for (const Share& share : shares) sum += count(context, share);
  return sum;
}

/// Gradients of one axis on their way.
struct Buffer {
  Share share;
  std::int64_t waiting = 0;  ///< elements complete and not yet in a bucket
  std::optional<OpId> reduced;
};

class Dense final : public Communication {
 public:
  explicit Dense(const Context& context) : context_(context), shares_(shares_of(context)) {
    for (const Share& share : shares_) buffers_.push_back({share, 0, std::nullopt});
  }

  bool watches(const LayerPass& pass) const override {
    if (pass.direction == Direction::forward) return gathers_ahead() && pass.first;
    return context_.scenario.training.overlap_gradients && reduces_after(pass);
  }

  void layer_done(Program& program, const LayerPass& pass, OpId op) override {
    if (pass.direction == Direction::forward) {
      first_forward_.push_back({pass.layer, op});
      return;
    }
    const auto& layer = context_.workload.layers[static_cast<std::size_t>(pass.layer)];
    for (Buffer& buffer : buffers_) {
      buffer.waiting += elements_of(layer, buffer.share.axis);
      if (gradient_size(buffer.waiting) >= overlapped_bucket(buffer.share))
        reduce(program, buffer, buffer.waiting, {{op}});
    }
  }

  /// Gradients of a whole pass, reduced behind it when nothing overlaps.
  Waits pass_done(Program& program, const LayerPass& pass, OpId op) override {
    Waits waits;
    if (!reduces_each() || pass.last) return waits;
    for (Buffer& buffer : buffers_) {
      const bool overlaps = context_.scenario.training.overlap_gradients;
      if (!overlaps && syncs_each())
        reduce_in_buckets(program, buffer, op);
      else if (!overlaps || buffer.waiting > 0)
        reduce(program, buffer, overlaps ? buffer.waiting : buffer.share.elements, {{op}});
      if (!overlaps || syncs_each()) also_wait(waits, buffer.reduced);
    }
    return waits;
  }

  void step_end(Program& program, OpId last) override {
    const double kept = sum_over(shares_, context_, kept_gradients);
    const OpId upkeep = add_upkeep(program, context_, kept, last);
    Waits ready;
    for (Buffer& buffer : buffers_) {
      if (!context_.scenario.training.overlap_gradients)
        reduce_in_buckets(program, buffer, upkeep);
      else if (buffer.waiting > 0)
        reduce(program, buffer, buffer.waiting, {{last}});
      also_wait(ready, buffer.reduced);
    }
    const Waits gradients = ready.empty() ? Waits{{upkeep}} : ready;
    also_wait(ready, add_embedding_sum(program, context_, gradients));
    also_wait(ready, add_norm(program, context_, ready.empty() ? gradients : ready));
    const OpId update = add_update(program, context_, sum_over(shares_, context_, updated), ready);
    if (sharded(context_)) gather_parameters(program, update);
  }

 private:
  bool gathers_ahead() const {
    return sharded(context_) && context_.scenario.training.overlap_parameters;
  }

  /// [M428] Without no_sync DDP sums the gradients of every micro-batch and waits for them.
  bool syncs_each() const {
    return context_.scenario.training.gradient_sync == spec::GradientSync::micro_batch;
  }
  bool reduces_each() const {
    return syncs_each() || sharding_of(context_) == spec::Sharding::zero2;
  }
  bool reduces_after(const LayerPass& pass) const { return pass.last || reduces_each(); }

  // [M35] Megatron-LM's default when gradients overlap: 40 million elements, or a million per rank.
  Bytes overlapped_bucket(const Share& share) const {
    const std::int64_t elements = std::max<std::int64_t>(40'000'000, 1'000'000LL * share.ranks);
    return context_.scenario.training.bucket.value_or(gradient_size(elements));
  }

  Bytes gradient_size(std::int64_t elements) const {
    return Bytes(static_cast<double>(elements) *
                 gradient_bytes(context_.scenario.training.gradient_dtype));
  }

  double gradient_element() const {
    return gradient_bytes(context_.scenario.training.gradient_dtype);
  }
  double wire_element() const {
    switch (context_.scenario.strategy.reduce_dtype) {
      case spec::ReduceDtype::gradient:
        return gradient_element();
      case spec::ReduceDtype::fp32:
        return 4;
      case spec::ReduceDtype::bf16:
        return 2;
      case spec::ReduceDtype::fp8:
        return 1;
    }
    throw InternalError("type of reduced gradients");
  }
  bool casts() const { return wire_element() != gradient_element(); }
  Bytes wire_size(std::int64_t elements) const {
    return Bytes(static_cast<double>(elements) * wire_element());
  }

  OpId cast(Program& program, std::string name, double bytes, const Waits& waits) const {
    const bool overlaps = context_.scenario.training.overlap_gradients;
    return add_pass(program, context_,
                    {.name = std::move(name),
                     .traffic = Bytes(bytes),
                     .formula = "M308",
                     .stream = overlaps ? Stream::communication : Stream::compute},
                    waits);
  }

  // [M308] Gradients cast to what travels, and back; fp8 reads them once more for their scale.
  Waits cast_to_wire(Program& program, const Buffer& buffer, std::int64_t elements,
                     const Waits& ready) const {
    if (!casts() || buffer.share.ranks == 1) return ready;
    const bool scaled = context_.scenario.strategy.reduce_dtype == spec::ReduceDtype::fp8;
    const double element = gradient_element() * (scaled ? 2 : 1) + wire_element();
    return {{cast(program, "cast of gradients", static_cast<double>(elements) * element, ready)}};
  }
  OpId cast_back(Program& program, const Buffer& buffer, std::int64_t elements, OpId call) const {
    const double kept =
        static_cast<double>(elements) / (sharded(context_) ? buffer.share.ranks : 1);
    return cast(program, "cast of reduced gradients", kept * (gradient_element() + wire_element()),
                {{call}});
  }

  // [M32] Gradients cross the ring once as an all-reduce (8Na bytes sent in fp32), or as a
  // reduce-scatter (4Na) when the optimizer is sharded. [M455] DeepSpeed's bf16 optimizer sums
  // them whole.
  void reduce(Program& program, Buffer& buffer, std::int64_t elements, const Waits& ready) const {
    const bool scatter = sharded(context_) &&
                         context_.scenario.strategy.reduction == spec::Reduction::reduce_scatter;
    const Waits sent = cast_to_wire(program, buffer, elements, ready);
    auto call =
        add_call(program, context_,
                 {.name = call_name(scatter ? "gradient reduce-scatter" : "gradient all-reduce",
                                    buffer.share.axis),
                  .kind = scatter ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                  .bytes = wire_size(elements),
                  .axis = buffer.share.axis},
                 Stream::communication, "M32", sent);
    if (call && casts()) call = cast_back(program, buffer, elements, *call);
    if (call) buffer.reduced = call;
    buffer.waiting = 0;
  }

  void reduce_in_buckets(Program& program, Buffer& buffer, OpId ready) const {
    const auto& bucket = context_.scenario.training.bucket;
    std::int64_t left = buffer.share.elements;
    if (bucket) {
      const double size = gradient_bytes(context_.scenario.training.gradient_dtype);
      const auto most = std::max<std::int64_t>(1, static_cast<std::int64_t>(bucket->si() / size));
      refuse_too_many("training.bucket", (left + most - 1) / most, "buckets");
      for (; left > most; left -= most) reduce(program, buffer, most, {{ready}});
    }
    reduce(program, buffer, left, {{ready}});
  }

  Bytes parameter_size(std::int64_t elements) const {
    return Bytes(static_cast<double>(elements) *
                 parameter_bytes(context_.scenario.training.precision));
  }

  std::optional<OpId> gather(Program& program, Axis axis, std::int64_t elements,
                             const Waits& ready) const {
    return add_call(program, context_,
                    {.name = call_name("parameter all-gather", axis),
                     .kind = CollectiveKind::all_gather,
                     .bytes = parameter_size(elements),
                     .axis = axis},
                    Stream::communication, "M32", ready);
  }

  void gather_parameters(Program& program, OpId update) const {
    if (gathers_ahead()) return gather_by_layer(program, update);
    Waits gathered;
    for (const Share& share : shares_)
      also_wait(gathered, gather(program, share.axis, share.elements, {{update}}));
    // The step ends when the parameters are whole again.
    if (!gathered.empty())
      add_pass(program, context_,
               {.name = "parameters ready",
                .kind = Kind::host,
                .traffic = Bytes(0),
                .launches = 0,
                .formula = "M32"},
               gathered);
  }

  // [M242] Buckets in the order of the next forward pass, whose layers wait for their own.
  void gather_by_layer(Program& program, OpId update) const {
    for (const Share& share : shares_) {
      std::int64_t waiting = 0;
      std::size_t served = 0;
      for (std::size_t i = 0; i < first_forward_.size(); ++i) {
        const auto layer = static_cast<std::size_t>(first_forward_[i].layer);
        waiting += elements_of(context_.workload.layers[layer], share.axis);
        const bool full = gradient_size(waiting) >= overlapped_bucket(share);
        if (!full && i + 1 < first_forward_.size()) continue;
        if (waiting == 0) continue;
        const auto gathered = gather(program, share.axis, waiting, {{update}});
        for (; served <= i; ++served)
          also_wait(program.operations[index(first_forward_[served].op)].waits_for, gathered, 1);
        waiting = 0;
      }
    }
  }

  struct LayerOp {
    int layer = 0;
    OpId op;
  };
  const Context& context_;
  std::vector<Share> shares_;
  std::vector<Buffer> buffers_;
  std::vector<LayerOp> first_forward_;
};

}  // namespace

std::unique_ptr<Communication> make_dense(const Context& context) {
  switch (sharding_of(context)) {
    case spec::Sharding::none:
    case spec::Sharding::zero1:
    case spec::Sharding::zero2:
      return std::make_unique<Dense>(context);
    case spec::Sharding::zero3:
    case spec::Sharding::fsdp:
    case spec::Sharding::hsdp:
      return make_fully_sharded(context);
  }
  throw InternalError("sharding");
}

// [M62] Parameters in compute precision, gradients, fp32 master weights and moments; sharded are
// the latter two (ZeRO-1), gradients as well (ZeRO-2), or all (Rajbhandari 2020, table 1).
StateMemory dense_memory(const Context& context) {
  const spec::Training& training = context.scenario.training;
  if (is_fully_sharded(context.scenario.strategy.sharding)) return fully_sharded_memory(context);
  const std::vector<Share> shares = shares_of(context);
  const double n = static_cast<double>(context.workload.parameters);
  const bool mixed = training.precision != spec::Precision::fp32;
  const double state = 4.0 * moments(training.optimizer) + (mixed ? 4.0 : 0.0);
  return {.parameters = Bytes(n * parameter_bytes(training.precision)),
          .gradients = Bytes(sum_over(shares, context, kept_gradients) *
                             gradient_bytes(training.gradient_dtype)),
          .optimizer = Bytes(sum_over(shares, context, updated) * state),
          .strategy = Bytes(0),
          .step_end = Bytes(2 * 4.0 * static_cast<double>(context.workload.largest_tensor))};
}

}  // namespace scapesim::strategy
