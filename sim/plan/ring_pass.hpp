// SPDX-License-Identifier: Apache-2.0
// A reduce-scatter or all-gather around a ring as a part of a larger collective.
#pragma once

#include "sim/plan/sheet.hpp"

namespace scapesim::plan {

/// Every rank passes `units` to the next in each of n-1 steps, from the second on what has arrived
/// in the step before. `after[i]` is what rank i waits for; becomes what it has received last.
void ring_pass(Sheet& sheet, std::span<const topology::GpuId> ranks, std::uint64_t units,
               std::vector<std::vector<TransferId>>& after);

}  // namespace scapesim::plan
