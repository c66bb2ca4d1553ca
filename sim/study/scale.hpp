// SPDX-License-Identifier: Apache-2.0
// One scenario on several numbers of GPUs.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "sim/predict/predict.hpp"
#include "sim/spec/spec.hpp"
#include "sim/study/point.hpp"

namespace scapesim::study {

/// strong: the global batch stays; weak: it grows with the GPUs.
enum class Scaling { strong, weak };

struct Scale {
  Scaling scaling = Scaling::strong;
  std::vector<Point> points;  ///< series by series, GPU counts ascending
};

/// A series with its profile.
struct Series {
  spec::Scenario scenario;
  cost::Profile profile;
};

/// Loads the profile of every scenario; paths of profiles are relative to `folder`. Throws
/// InputError.
std::vector<Series> with_profiles(std::vector<spec::Scenario> scenarios,
                                  const std::filesystem::path& folder);

/// Every series on every count, with efficiency against the smallest feasible count of its series.
/// Throws InputError when a count breaks a rule of the scenario. Counts may repeat or be unordered.
Scale scale(std::span<const Series> series, std::vector<int> gpus, Scaling scaling,
            const PredictOptions& options);

/// Sets the efficiency of every run of one series (points of one series, ascending).
void set_efficiency(std::span<Point> points, Scaling scaling);

/// The same of what was measured: per comparison the efficiency of a measured step time against the
/// one measured on the smallest count of its series that is predicted to fit. None for other
/// metrics and where that count was not measured.
std::vector<std::optional<double>> measured_efficiencies(const Scale& scale,
                                                         std::span<const Comparison> against);

}  // namespace scapesim::study
