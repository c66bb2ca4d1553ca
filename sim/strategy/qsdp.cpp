// SPDX-License-Identifier: Apache-2.0
// QSDP (Markov et al. 2023, arXiv 2302.02390): fully sharded training whose gathered parameters and
// scattered gradients are quantised in buckets with an fp32 scale and offset each.
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

constexpr int kBucket = 1024;  // values per scale and offset, as published
constexpr int kBits = 8;       // of parameters and gradients, as published

/// Matrices; norms and biases travel as they are (as published).
double matrices_of(const workload::Layer& layer) {
  double sum = 0;
  for (const workload::Tensor& tensor : layer.tensors)
    if (!tensor.always_selected) sum += static_cast<double>(tensor.numel);
  return sum;
}

class Qsdp final : public FullySharded {
 public:
  explicit Qsdp(const Context& context)
      : FullySharded(context), strategy_(context.scenario.strategy) {}

 protected:
  // [M315] Codes, scales and offsets of matrices, vectors as they are, in one gather.
  Waits gather_layer(Program& program, const LayerPass& pass) override {
    if (context().ranks == 1) return {};
    const double n = matrices_of(layer_of(pass));
    const double element = parameter_bytes(context().scenario.training.precision);
    const double coded = coded_bytes(n, strategy_.weight_bits.value_or(kBits));
    const OpId codes =
        on_stream(program, "quantise parameter shard", (n * element + coded) / context().ranks, {});
    when_room(program, codes);
    const auto gathered = add_call(program, context(),
                                   {.name = "parameter all-gather",
                                    .kind = CollectiveKind::all_gather,
                                    .bytes = Bytes(coded + vectors(pass) * element)},
                                   Stream::communication, "M315", {{codes}});
    return {{add_pass(
        program, context(),
        {.name = "dequantise parameters", .traffic = Bytes(coded + n * element), .formula = "M315"},
        {{*gathered}})}};
  }

  // [M316] A reduce-scatter of codes cannot be summed on the way: every rank sends each other rank
  // its part, and sums what it gets.
  Waits reduce_layer(Program& program, const LayerPass& pass, OpId backward) override {
    if (context().ranks == 1) return {};
    const double n = matrices_of(layer_of(pass));
    const double element = gradient_bytes(context().scenario.training.gradient_dtype);
    const double coded = coded_bytes(n, strategy_.gradient_bits.value_or(kBits));
    Waits done;
    if (vectors(pass) > 0) also_wait(done, scatter(program, Axis::data, vectors(pass), backward));
    if (n == 0) return done;
    Waits ready{{on_stream(program, "quantise gradients", n * element + coded, {{backward}})}};
    also_wait(ready, add_call(program, context(),
                              {.name = "gradient code exchange",
                               .kind = CollectiveKind::all_to_all,
                               .bytes = Bytes(coded)},
                              Stream::communication, "M316", ready));
    done.push_back({on_stream(program, "dequantise and sum gradients",
                              coded + n / context().ranks * element, ready)});
    return done;
  }

 private:
  double vectors(const LayerPass& pass) const {
    return static_cast<double>(workload::parameters_of(layer_of(pass))) -
           matrices_of(layer_of(pass));
  }

  double coded_bytes(double values, int bits) const {
    const Quantised codes =
        quantised(values, bits, strategy_.block.value_or(kBucket), context().ranks);
    return codes.code_bytes() + 2 * 4 * codes.scales;
  }

  OpId on_stream(Program& program, std::string name, double bytes, const Waits& waits) const {
    return add_pass(program, context(),
                    {.name = std::move(name),
                     .traffic = Bytes(bytes),
                     .formula = "M315",
                     .stream = Stream::communication},
                    waits);
  }

  const spec::Strategy& strategy_;
};

}  // namespace

std::unique_ptr<Communication> make_qsdp(const Context& context) {
  return std::make_unique<Qsdp>(context);
}

// [M317] Fully sharded training's, and the codes of the largest layer both ways.
StateMemory qsdp_memory(const Context& context) {
  const spec::Strategy& strategy = context.scenario.strategy;
  StateMemory memory = fully_sharded_memory(context);
  std::int64_t largest = 0;
  for (const workload::Layer& layer : context.workload.layers)
    largest = std::max(largest, workload::parameters_of(layer));
  const double bits =
      strategy.weight_bits.value_or(kBits) + 2.0 * strategy.gradient_bits.value_or(kBits);
  memory.strategy += Bytes(static_cast<double>(largest) * bits / 8);
  return memory;
}

}  // namespace scapesim::strategy
