// SPDX-License-Identifier: Apache-2.0
// Ring collectives chunk by chunk on SimGrid: three actors per rank, one communication per chunk
// and step. The reference that the fluid core is held against; 64 ranks take some 20 ms, 1,024
// minutes.
#pragma once

#include <vector>

#include "sim/plan/ring.hpp"

namespace scapesim::engine {

/// When each call has ended for its last rank, if all begin at 0. Takes the same calls as
/// plan::plan_collectives(): all-reduce, reduce-scatter and all-gather, with equal terms. Chunks
/// are whole bytes (rounded).
std::vector<Seconds> chunk_level_ends(const topology::Fabric& fabric,
                                      const std::vector<plan::GroupSet>& sets,
                                      const std::vector<plan::CollectiveCall>& calls);

}  // namespace scapesim::engine
