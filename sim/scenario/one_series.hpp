// SPDX-License-Identifier: Apache-2.0
// One variant of a scenario file, without the others' rules.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/load.hpp"

namespace scapesim::scenario {

/// As load_scenarios, but the variant of this name alone, whatever `set` makes of the others; all
/// of them when there is none of this name. Throws InputError.
std::vector<spec::Scenario> load_series(const std::filesystem::path& file,
                                        std::span<const std::string> set, GpuCount gpus,
                                        std::string_view series);

}  // namespace scapesim::scenario
