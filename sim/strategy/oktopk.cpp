// SPDX-License-Identifier: Apache-2.0
// Ok-Topk (Li and Hoefler 2022, PPoPP): top-k of the sum by a sparse reduce-scatter over balanced
// regions and an all-gather of what exceeds a global threshold. Selection is over all parameters
// at once, by thresholds that are found exactly every so many steps.
#include "sim/strategy/methods.hpp"
#include "sim/strategy/optimizer.hpp"
#include "sim/strategy/share.hpp"
#include "sim/strategy/sparse.hpp"

namespace scapesim::strategy {

namespace {

using graph::CollectiveKind;
using graph::OpId;
using graph::Stream;

constexpr double kThresholdPeriod = 32;  // steps from one exact threshold to the next, as released

/// k = max(1, floor(d N)) of all parameters.
Sparse selected_of(const Context& context) {
  const double n = static_cast<double>(context.workload.parameters);
  const double count = std::floor(density_at(context.scenario.strategy) * n);
  return {.elements = n, .count = std::max(1.0, count)};
}

class OkTopK final : public Communication {
 public:
  explicit OkTopK(const Context& context) : context_(context) {}

  // [M325] Residual and gradient, selection by the threshold known, exact ones now and then.
  void step_end(Program& program, OpId last) override {
    const Sparse sent = selected_of(context_);
    const double n = sent.elements;
    const double gradient = gradient_bytes(context_.scenario.training.gradient_dtype);
    const OpId upkeep = add_upkeep(program, context_, n, last);
    const OpId summed = pass(program, "residual and gradient", n * (gradient + 8), {{upkeep}});
    const OpId threshold =
        pass(program, "exact threshold, its share", n * 12 / kThresholdPeriod, {{summed}});
    const OpId packed =
        pass(program, "selection by threshold", 4 * n + sent.bytes(), {{threshold}});
    Waits ready = exchange(program, sent, packed);
    // What made it into the sum leaves the residual, the rest stays: touched once each.
    ready = {
        {pass(program, "sum and residual", 4 * n + sent.bytes() + 3 * sent.touched(4), ready)}};
    also_wait(ready, add_embedding_sum(program, context_, ready));
    also_wait(ready, add_norm(program, context_, ready));
    add_update(program, context_, n, ready);
  }

 private:
  OpId pass(Program& program, std::string name, double bytes, const Waits& waits) const {
    return add_pass(program, context_,
                    {.name = std::move(name), .traffic = Bytes(bytes), .formula = "M325"}, waits);
  }

  Waits call(Program& program, std::string name, CollectiveKind kind, double bytes,
             Waits ready) const {
    also_wait(ready, add_call(program, context_,
                              {.name = std::move(name), .kind = kind, .bytes = Bytes(bytes)},
                              Stream::communication, "M326", ready));
    return ready;
  }

  // [M326] Regions to their ranks, who sum them; selected sums balanced over ranks, then gathered.
  // At the bound of each: k pairs through every rank three times.
  Waits exchange(Program& program, const Sparse& sent, OpId packed) const {
    Waits ready = call(program, "sparse reduce-scatter", CollectiveKind::all_to_all, sent.bytes(),
                       {{packed}});
    ready = {{pass(program, "sum of a region", sent.bytes() + 4 * sent.elements / context_.ranks,
                   ready)}};
    ready = call(program, "balancing exchange", CollectiveKind::all_to_all, sent.bytes(), ready);
    return call(program, "selected sums all-gather", CollectiveKind::all_gather, sent.bytes(),
                ready);
  }

  const Context& context_;
};

}  // namespace

std::unique_ptr<Communication> make_oktopk(const Context& context) {
  return std::make_unique<OkTopK>(context);
}

// [M327] The residual; what is sent and received, twice.
StateMemory oktopk_memory(const Context& context) {
  StateMemory memory = dense_memory(context);
  const Sparse sent = selected_of(context);
  memory.strategy = Bytes(4 * sent.elements);
  memory.step_end = Bytes(4 * sent.bytes());
  return memory;
}

}  // namespace scapesim::strategy
