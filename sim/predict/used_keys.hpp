// SPDX-License-Identifier: Apache-2.0
// Which numbers and curves of a profile a prediction rests on.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cost/profile.hpp"
#include "sim/graph/graph.hpp"

namespace scapesim {

using ProfileKeys = std::set<std::string, std::less<>>;

/// "gemm.*" and "hbm.launch_s" of the list "gemm.*, hbm.launch_s".
std::vector<std::string> patterns_in(std::string_view list);

/// ProfileKeys of the profile that a list such as "gemm.*, hbm.launch_s" names.
ProfileKeys keys_named(const cost::Profile& profile, std::string_view list);

/// ProfileKeys that the operations of a step name, and those that every prediction uses (memory
/// context, model discrepancy). Only keys that the profile has.
ProfileKeys used_keys(const cost::Profile& profile, const graph::StepGraph& graph);

/// Weakest provenance among these keys.
cost::Provenance weakest(const cost::Profile& profile, const ProfileKeys& keys);

}  // namespace scapesim
