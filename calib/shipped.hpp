// SPDX-License-Identifier: Apache-2.0
// Builds the profiles that ship in calib/profiles from the rows in calib/data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calib/training.hpp"
#include "sim/cost/profile.hpp"

namespace scapesim::calib {

struct ShippedProfiles {
  std::vector<cost::Profile> profiles;
  std::string report;  ///< fits with their residuals, one line each
};

/// Fits everything afresh. `root` holds calib/data and scenarios.
ShippedProfiles build_shipped_profiles(const std::filesystem::path& root);

/// The dense runs on TACC Vista as scenarios with their measured times. No other run is returned.
std::vector<TrainingRun> vista_dense_runs(const std::filesystem::path& root);

}  // namespace scapesim::calib
