// SPDX-License-Identifier: Apache-2.0
// Collectives as SimGrid communications, the references that the fluid core is held against: chunk
// by chunk (64 ranks of a ring take some 20 ms, 1,024 minutes), or one flow per transfer.
#pragma once

#include <vector>

#include "sim/plan/collectives.hpp"

namespace scapesim::engine {

struct ChunkOptions {
  int pieces = 512;  ///< of what goes through a pipelined algorithm other than a ring
};

/// When each call has ended for its last rank, if all begin at 0. Takes the same calls as
/// plan::plan_collectives(), with equal terms; no broadcasts. A ring's ranks pass chunks on step by
/// step; in other algorithms a piece is sent when it has arrived (pipelined), or all of it at once.
/// Chunks are whole bytes (rounded).
std::vector<Seconds> chunk_level_ends(const topology::Fabric& fabric,
                                      const std::vector<plan::GroupSet>& sets,
                                      const std::vector<plan::CollectiveCall>& calls,
                                      const ChunkOptions& options = {});

/// The same with one communication per transfer that begins after the collective's latency and goes
/// its own pace: equal to the fluid core where one class of links is the bottleneck of all.
std::vector<Seconds> flow_level_ends(const topology::Fabric& fabric,
                                     const std::vector<plan::GroupSet>& sets,
                                     const std::vector<plan::CollectiveCall>& calls);

}  // namespace scapesim::engine
