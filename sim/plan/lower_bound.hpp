// SPDX-License-Identifier: Apache-2.0
// What no run of a collective can beat, whatever its algorithm: a check on ourselves.
#pragma once

#include "sim/plan/algorithms.hpp"

namespace scapesim::plan {

/// The links over which a node of a group leaves it at once (its NICs; of several nodes the widest
/// way), or a rank its GPU where the group has one node only. Empty: there is no telling.
std::vector<topology::Link> way_out(const Site& site);

/// [M151] Shortest time of a call in this mode, by its latency and by what a node or a rank must
/// send.
Seconds lower_bound(const Site& site, std::span<const topology::Link> way_out,
                    const CollectiveCall& call, const cost::Mode& mode);

}  // namespace scapesim::plan
