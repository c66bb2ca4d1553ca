// SPDX-License-Identifier: Apache-2.0
// Logs -> profile: whatever the observations can say replaces the base profile's numbers; what they
// cannot is named.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calib/observations.hpp"
#include "calib/residuals.hpp"
#include "sim/cost/profile.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::calib {

/// A training log and the scenario it was, at the log's GPU count.
struct TrainingLog {
  Observations observations;
  spec::Scenario scenario;
};

struct CalibrationInput {
  cost::Profile base;
  std::string id;
  std::vector<Observations> observations;  ///< files without training steps, or of unknown scenario
  std::vector<TrainingLog> logs;
  std::optional<spec::Cluster> cluster;  ///< what the links and the GPU are; needed by some fits
};

struct Calibration {
  cost::Profile profile;
  std::string report;                  ///< one line per fit: rows, rms, worst, values
  std::vector<ResidualSet> residuals;  ///< every row that a fit used
  std::vector<std::string> gaps;       ///< what stayed as in the base, and why
};

/// Fits, in the order copies, memory, kernels, collectives, training logs. Throws InputError when
/// nothing in the input could be used.
Calibration calibrate(const CalibrationInput& input);

/// Median step time of a log after its first steps (a tenth, at least 2 when there are 10).
std::optional<Seconds> steady_step_time(const Observations& log);
/// Communication per step from a log's timers (names that contain all-reduce, reduce-scatter,
/// all-gather or all-grads-sync, as Megatron-LM calls them); none without such timers.
std::optional<Seconds> communication_time(const Observations& log);

}  // namespace scapesim::calib
