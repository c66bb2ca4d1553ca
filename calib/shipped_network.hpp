// SPDX-License-Identifier: Apache-2.0
// The network part of the profiles that ship, from published nccl-tests tables.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cost/profile.hpp"

namespace scapesim::calib {

/// A profile that holds network.* only, with the fits' residuals appended to `report`. `root` holds
/// calib/data. Throws InternalError for an id that network_profiles() does not list.
cost::Profile network_numbers(std::string_view profile_id, const std::filesystem::path& root,
                              std::string& report);

/// The ids that network_numbers() knows.
std::vector<std::string_view> network_profiles();

}  // namespace scapesim::calib
