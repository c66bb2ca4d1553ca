// SPDX-License-Identifier: Apache-2.0
// A step whose ranks do not compute alike: drawn steps, the one that stands for them, their spread.
#pragma once

#include <span>

#include "sim/plan/uneven.hpp"
#include "sim/predict/predict.hpp"
#include "topologies/fabric.hpp"

namespace scapesim {

/// none: every pipeline is simulated; full: only those that a step waits for; automatic: all that
/// differ in small jobs, else the latter.
enum class Reduction { automatic, none, full };

struct UnevenStep {
  graph::StepGraph graph;
  engine::Timeline timeline;
  Seconds step_time;
  std::size_t pipelines = 0;  ///< simulated
};

/// The step with these paces; plans[i] is planned with GPU i, `even` is the timeline of plans[0].
UnevenStep uneven_step(std::span<const plan::StepPlan> plans, const engine::Timeline& even,
                       const std::vector<plan::Pace>& paces, engine::Driver driver,
                       Reduction reduction = Reduction::automatic);

/// [M404] All drawn steps; the graph and timeline of the one nearest to their mean.
struct UnevenRun {
  UnevenStep typical;
  result::Uneven spread;
};
UnevenRun uneven_run(const spec::Scenario& scenario, const workload::Workload& workload,
                     const cost::Profile& profile, const topology::Fabric& fabric,
                     const plan::StepPlan& even_plan, const engine::Timeline& even,
                     engine::Driver driver);

/// The scenario and profile of other GPU i: what the GPU computes is its own, host and network are
/// those of the job.
spec::Scenario with_other_gpu(const spec::Scenario& scenario, std::size_t other);
cost::Profile with_other_gpu(const cost::Profile& profile, std::size_t other);

}  // namespace scapesim
