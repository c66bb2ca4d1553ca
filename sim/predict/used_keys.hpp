// SPDX-License-Identifier: Apache-2.0
// Which numbers and curves of a profile a prediction rests on.
#pragma once

#include <set>
#include <string>

#include "sim/cost/profile.hpp"
#include "sim/graph/graph.hpp"

namespace scapesim {

/// Keys that the operations of a step name, and those that every prediction uses (memory context,
/// model discrepancy). Only keys that the profile has.
std::set<std::string, std::less<>> used_keys(const cost::Profile& profile,
                                             const graph::StepGraph& graph);

/// Weakest provenance among these keys.
cost::Provenance weakest(const cost::Profile& profile,
                         const std::set<std::string, std::less<>>& keys);

}  // namespace scapesim
