// SPDX-License-Identifier: Apache-2.0
// A step graph with what its durations follow from, for ranks that compute at paces of their own.
#pragma once

#include <vector>

#include "sim/plan/pass_cost.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/stage_program.hpp"

namespace scapesim::plan {

struct StepPlan {
  graph::StepGraph graph;  ///< all ranks at their full pace
  LayerCosts layers;
  std::vector<std::vector<PassOp>> passes;  ///< per class
  graph::Mesh mesh;

  /// Durations of the operations of a class whose kernels take `slowdown` times as long, 0 for what
  /// is no local work. Passes by [M400], the optimizer's in proportion, host work as it is.
  std::vector<Seconds> durations(std::size_t rank_class, double slowdown) const;
};

StepPlan step_plan(const spec::Scenario& scenario, const workload::Workload& workload,
                   const cost::Profile& profile, const topology::Fabric& fabric,
                   Purpose purpose = Purpose::training);

}  // namespace scapesim::plan
