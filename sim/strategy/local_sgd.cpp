// SPDX-License-Identifier: Apache-2.0
// Local steps with an outer optimizer (DiLoCo, Douillard et al. 2023, arXiv 2311.08105): H steps of
// the scenario's optimizer without communication, then an all-reduce of the parameters' differences
// and a Nesterov step; or the same with the all-reduce beside the next round, a round late.
#include "sim/strategy/bucketed.hpp"
#include "sim/strategy/methods.hpp"
#include "sim/strategy/optimizer.hpp"
#include "sim/strategy/share.hpp"

namespace scapesim::strategy {

namespace {

using graph::CollectiveKind;
using graph::OpId;
using graph::Stream;

class LocalSgd final : public Communication {
 public:
  explicit LocalSgd(const Context& context) : context_(context) {}

  // [M340] A step of the graph is a round: every local operation stands for H of its kind.
  int training_steps() const override { return context_.scenario.strategy.local_steps; }

  void step_end(Program& program, OpId last) override {
    const std::size_t first = program.operations.size();
    const OpId upkeep = add_upkeep(program, context_, parameters(), last);
    const OpId update = add_update(program, context_, parameters(), {{upkeep}});
    for (std::size_t i = first; i < program.operations.size(); ++i)
      repeat(program.operations[i], training_steps());
    if (context_.ranks == 1) return;
    outer_step(program, update);
  }

 private:
  double parameters() const { return static_cast<double>(context_.workload.parameters); }
  bool overlapped() const {
    return context_.scenario.strategy.outer_wait == spec::OuterWait::overlapped;
  }

  OpId pass(Program& program, std::string name, double per_parameter, const Waits& waits) const {
    return add_pass(program, context_,
                    {.name = std::move(name),
                     .traffic = Bytes(parameters() * per_parameter),
                     .formula = "M341"},
                    waits);
  }

  // [M341] Difference to the last common parameters; its mean; Nesterov momentum and new common
  // parameters, which all ranks go on from.
  void outer_step(Program& program, OpId update) const {
    const double element = payload_bytes(context_.scenario.strategy.payload_dtype);
    const spec::Precision precision = context_.scenario.training.precision;
    const double copy = precision == spec::Precision::fp32 ? 0 : parameter_bytes(precision);
    const OpId difference =
        pass(program, "difference to the common parameters", 8 + element, {{update}});
    const auto reduced = add_call(program, context_,
                                  {.name = "outer all-reduce",
                                   .kind = CollectiveKind::all_reduce,
                                   .bytes = Bytes(parameters() * element)},
                                  Stream::communication, "M341", {{difference}});
    // Overlapped: what is applied here was sent at the end of the round before.
    Waits ready{{difference}};
    also_wait(ready, reduced, overlapped() ? 1 : 0);
    pass(program, "outer update", element + 8 + 8 + 4 + copy, ready);
  }

  const Context& context_;
};

}  // namespace

std::unique_ptr<Communication> make_local_sgd(const Context& context) {
  return std::make_unique<LocalSgd>(context);
}

// [M342] The common parameters and the outer momentum in fp32; overlapped, the difference on its
// way as well.
StateMemory local_sgd_memory(const Context& context) {
  const spec::Strategy& strategy = context.scenario.strategy;
  const double n = static_cast<double>(context.workload.parameters);
  const double element = payload_bytes(strategy.payload_dtype);
  const bool overlapped = strategy.outer_wait == spec::OuterWait::overlapped;
  StateMemory memory = dense_memory(context);
  memory.strategy = Bytes(8 * n + (overlapped ? element * n : 0));
  if (!overlapped) memory.step_end = std::max(memory.step_end, Bytes(element * n));
  return memory;
}

}  // namespace scapesim::strategy
