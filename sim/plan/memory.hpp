// SPDX-License-Identifier: Apache-2.0
// What a rank must hold, and when it is fullest.
#pragma once

#include "sim/base/units.hpp"
#include "sim/cost/profile.hpp"
#include "sim/spec/spec.hpp"
#include "sim/workload/workload.hpp"

namespace scapesim::plan {

struct MemoryNeed {
  Bytes parameters, gradients, optimizer, strategy, activations, temporary;
  Bytes total;    ///< of the framework's allocator at its peak
  Bytes context;  ///< CUDA and NCCL
  Bytes host;     ///< offloaded state of one GPU
};

/// [M64] Resident state plus the larger of two peaks: activations with the loss at the end of the
/// forward pass, or the temporaries of the update.
MemoryNeed memory_need(const spec::Scenario& scenario, const workload::Workload& workload,
                       const cost::Profile& profile);

}  // namespace scapesim::plan
