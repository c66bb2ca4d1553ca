// SPDX-License-Identifier: Apache-2.0
// The step of one pipeline stage: its passes in the schedule's order with the strategy's operations
// around them. What stages send each other is added by plan.cpp.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/plan/pass_cost.hpp"
#include "sim/plan/schedule.hpp"
#include "sim/plan/stages.hpp"
#include "sim/strategy/strategy.hpp"

namespace scapesim::plan {

/// First and last operation of a pass on the compute stream.
struct SlotOps {
  graph::OpId first;
  graph::OpId last;
};

/// The layers and the pass that an operation stands for.
struct PassOp {
  graph::OpId op;
  std::size_t begin = 0;
  std::size_t end = 0;
  Pass pass = Pass::forward;
  std::optional<Pair> pair = {};  ///< that hides its exchanges of experts
};

struct StageProgram {
  strategy::Program program;
  std::vector<PassOp> passes;
  StageOrder order;
  std::vector<SlotOps> ops;  ///< per slot of the order
  std::vector<int> resting;  ///< chunks of which nothing runs backward
  int training_steps = 1;    ///< that the program stands for
};

/// A training step, or the forward passes of as many micro-batches and nothing else.
enum class Purpose { training, evaluation };

/// What all stages share.
struct StepInputs {
  const spec::Scenario& scenario;
  const workload::Workload& workload;  ///< of the whole model
  const cost::Profile& profile;
  const cost::KernelCosts& costs;
  const LayerCosts& layer_costs;
  const std::vector<Part>& parts;
  Purpose purpose = Purpose::training;
};

/// What a strategy sees of a stage; `held` is the stage's own workload and outlives the context.
strategy::Context context_of_stage(const spec::Scenario& scenario, const workload::Workload& held,
                                   const cost::Profile& profile, const cost::KernelCosts& costs,
                                   int stage);

StageProgram stage_program(const StepInputs& inputs, int stage);

}  // namespace scapesim::plan
