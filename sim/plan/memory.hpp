// SPDX-License-Identifier: Apache-2.0
// What a rank must hold, and when it is fullest.
#pragma once

#include "sim/base/units.hpp"
#include "sim/cost/profile.hpp"
#include "sim/plan/schedule.hpp"
#include "sim/spec/spec.hpp"
#include "sim/workload/workload.hpp"

namespace scapesim::plan {

struct MemoryNeed {
  Bytes parameters, gradients, optimizer, strategy, activations, temporary;
  Bytes total;    ///< of the framework's allocator at its peak
  Bytes context;  ///< CUDA and NCCL
  Bytes host;     ///< offloaded state and activations of one GPU
  int stage = 0;  ///< pipeline stage
};

/// [M64] Resident state plus the larger of two peaks: activations with the loss at the end of the
/// forward pass, or the temporaries of the update. Of the fullest pipeline stage.
MemoryNeed memory_need(const spec::Scenario& scenario, const workload::Workload& workload,
                       const cost::Profile& profile);

/// The same of one stage.
MemoryNeed stage_memory(const spec::Scenario& scenario, const workload::Workload& workload,
                        const cost::Profile& profile, int stage);

/// [M237] Most that a stage keeps of micro-batches between their forward and backward passes, if
/// chunk c of one micro-batch keeps kept[c].
Bytes most_kept(const StageOrder& order, const std::vector<Bytes>& kept);

}  // namespace scapesim::plan
