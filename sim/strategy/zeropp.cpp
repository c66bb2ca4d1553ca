// SPDX-License-Identifier: Apache-2.0
// ZeRO++ (Wang et al. 2023, arXiv 2306.10209; DeepSpeed's coalesced_collectives.py): ZeRO-3 whose
// parameter gathers are quantised (qwZ), whose backward gathers stay inside a node that keeps a
// second copy (hpZ), and whose gradients go by two quantised all-to-alls, inside nodes and then
// between them (qgZ). Each part has a switch.
#include <algorithm>

#include "sim/strategy/fully_sharded.hpp"
#include "sim/strategy/methods.hpp"
#include "sim/strategy/optimizer.hpp"
#include "sim/strategy/quantised.hpp"

namespace scapesim::strategy {

namespace {

using graph::Axis;
using graph::CollectiveKind;
using graph::OpId;
using graph::Stream;

constexpr double kWeightBlock = 8000;  // most values per scale, DeepSpeed's CUDAQuantizer
constexpr double kHalf = 2;            // bytes: kernels read and write fp16 or bf16

/// What qgZ does with the tensors of a layer.
struct GradientPlan {
  double values = 0;        ///< by quantised all-to-alls
  double scales = 0;        ///< of the first one
  double inner_scales = 0;  ///< of the second one, per rank of a group
  double whole = 0;         ///< by reduce-scatter: vectors, and what does not divide
};

// [M313] One scale per row or column, whichever are more, and per rank at least; between nodes a
// rank's share of them. Vectors and tensors whose size 2 P does not divide fall back.
GradientPlan plan_of(const Context& context, const workload::Layer& layer) {
  const spec::Strategy& strategy = context.scenario.strategy;
  const int ranks = context.ranks;
  const double group = graph::group_size(context.mesh, Axis::shard);
  GradientPlan plan;
  for (const workload::Tensor& tensor : layer.tensors) {
    const auto n = static_cast<double>(tensor.numel);
    if (tensor.rows == 0 || tensor.numel % (2LL * ranks) != 0) {
      plan.whole += n;
      continue;
    }
    const std::int64_t side = std::max(tensor.rows, tensor.numel / tensor.rows);
    const double scales = strategy.block ? std::ceil(n / *strategy.block)
                                         : static_cast<double>(std::max<std::int64_t>(side, ranks));
    plan.values += n;
    plan.scales += scales;
    plan.inner_scales += std::ceil(scales / group);
  }
  return plan;
}

class ZeroPlusPlus final : public FullySharded {
 public:
  explicit ZeroPlusPlus(const Context& context)
      : FullySharded(context), strategy_(context.scenario.strategy) {}

 protected:
  // [M311] qwZ: codes and scales travel, and are read back into whole parameters before the pass.
  // [M312] hpZ: forward gathers leave a copy in the node, which backward gathers read.
  Waits gather_layer(Program& program, const LayerPass& pass) override {
    const bool inside = strategy_.zeropp.secondary && pass.direction == Direction::backward;
    const Axis axis = inside ? Axis::shard : Axis::data;
    const double ranks = graph::group_size(context().mesh, axis);
    const double n = static_cast<double>(workload::parameters_of(layer_of(pass)));
    if (n == 0 || ranks == 1) return {};
    const Quantised codes =
        quantised(n, strategy_.weight_bits.value_or(8),
                  strategy_.block.value_or(static_cast<int>(kWeightBlock)), ranks);
    Waits ready;
    if (strategy_.zeropp.weights) {
      const OpId coded = on_stream(program, "quantise parameter shard", "M311",
                                   (n * kHalf + codes.bytes()) / ranks, {});
      when_room(program, coded);
      ready = {{coded}};
    }
    const double element = parameter_bytes(context().scenario.training.precision);
    const OpId gathered =
        *add_call(program, context(),
                  {.name = inside ? "parameter all-gather in the node" : "parameter all-gather",
                   .kind = CollectiveKind::all_gather,
                   .bytes = Bytes(strategy_.zeropp.weights ? codes.bytes() : n * element),
                   .axis = axis},
                  Stream::communication, inside ? "M312" : "M311", ready);
    if (ready.empty()) when_room(program, gathered);
    Waits whole{{gathered}};
    if (strategy_.zeropp.weights)
      whole = {{add_pass(program, context(),
                         {.name = "dequantise parameters",
                          .traffic = Bytes(codes.bytes() + n * kHalf),
                          .formula = "M311"},
                         whole)}};
    if (strategy_.zeropp.secondary && !inside && pass.first)
      whole.push_back({copy_inside(program, n, whole)});
    return whole;
  }

  // [M313] Codes to the ranks of the node, summed there and coded again, then to the same ranks of
  // other nodes and summed.
  Waits reduce_layer(Program& program, const LayerPass& pass, OpId backward) override {
    if (!strategy_.zeropp.gradients) return FullySharded::reduce_layer(program, pass, backward);
    const GradientPlan plan = plan_of(context(), layer_of(pass));
    Waits done;
    if (plan.whole > 0) also_wait(done, scatter(program, Axis::data, plan.whole, backward));
    if (plan.values == 0 || context().ranks == 1) return done;
    const double bits = strategy_.gradient_bits.value_or(4);
    const double gradient = gradient_bytes(context().scenario.training.gradient_dtype);
    const double group = graph::group_size(context().mesh, Axis::shard);
    const Quantised first{plan.values, bits, plan.scales};
    const Quantised second{plan.values / group, bits, plan.inner_scales};
    Waits ready{{on_stream(program, "quantise gradients", "M313",
                           plan.values * gradient + first.bytes(), {{backward}})}};
    also_wait(ready,
              exchange(program, "gradient all-to-all in the node", first, Axis::shard, ready));
    ready = {{on_stream(program, "sum and quantise gradients", "M313",
                        first.bytes() + second.bytes(), ready)}};
    also_wait(ready,
              exchange(program, "gradient all-to-all between nodes", second, Axis::replica, ready));
    done.push_back({on_stream(program, "dequantise and sum gradients", "M313",
                              second.bytes() + plan.values / context().ranks * gradient, ready)});
    return done;
  }

 private:
  /// A kernel in the order of the communicator's stream, beside the passes.
  OpId on_stream(Program& program, std::string name, std::string formula, double bytes,
                 const Waits& waits) const {
    return add_pass(program, context(),
                    {.name = std::move(name),
                     .traffic = Bytes(bytes),
                     .formula = std::move(formula),
                     .stream = Stream::communication},
                    waits);
  }

  OpId copy_inside(Program& program, double n, const Waits& whole) const {
    const double group = graph::group_size(context().mesh, Axis::shard);
    return add_pass(program, context(),
                    {.name = "copy of the parameters in the node",
                     .traffic = Bytes(2 * kHalf * n / group),
                     .formula = "M312"},
                    whole);
  }

  std::optional<OpId> exchange(Program& program, std::string name, const Quantised& codes,
                               Axis axis, const Waits& ready) const {
    return add_call(program, context(),
                    {.name = std::move(name),
                     .kind = CollectiveKind::all_to_all,
                     .bytes = Bytes(codes.bytes()),
                     .axis = axis},
                    Stream::communication, "M313", ready);
  }

  const spec::Strategy& strategy_;
};

}  // namespace

std::unique_ptr<Communication> make_zeropp(const Context& context) {
  return std::make_unique<ZeroPlusPlus>(context);
}

// [M314] ZeRO-3's, the second copy, and the codes of the largest layer.
StateMemory zeropp_memory(const Context& context) {
  const spec::ZeroPlusPlus& parts = context.scenario.strategy.zeropp;
  StateMemory memory = fully_sharded_memory(context);
  const double n = static_cast<double>(context.workload.parameters);
  const double group = graph::group_size(context.mesh, Axis::shard);
  if (parts.secondary) memory.strategy += Bytes(kHalf * n / group);
  std::int64_t largest = 0;
  for (const workload::Layer& layer : context.workload.layers)
    largest = std::max(largest, workload::parameters_of(layer));
  const double bits = context.scenario.strategy.gradient_bits.value_or(4);
  if (parts.gradients) memory.strategy += Bytes(2 * static_cast<double>(largest) * bits / 8);
  if (parts.weights)
    memory.strategy +=
        Bytes(static_cast<double>(largest) * context.scenario.strategy.weight_bits.value_or(8) / 8);
  return memory;
}

}  // namespace scapesim::strategy
