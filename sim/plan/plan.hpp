// SPDX-License-Identifier: Apache-2.0
// Workload + strategy + fabric -> the step graph of one training step.
#pragma once

#include "sim/cost/profile.hpp"
#include "sim/graph/graph.hpp"
#include "sim/plan/ring.hpp"
#include "sim/spec/spec.hpp"
#include "sim/workload/workload.hpp"
#include "topologies/fabric.hpp"

namespace scapesim::plan {

/// One step of data-parallel training: micro-batches forward and backward layer by layer on the
/// compute stream, the strategy's operations around them. All ranks run one program, that of the
/// rank with the largest part.
graph::StepGraph step_graph(const spec::Scenario& scenario, const workload::Workload& workload,
                            const cost::Profile& profile, const topology::Fabric& fabric);

}  // namespace scapesim::plan
