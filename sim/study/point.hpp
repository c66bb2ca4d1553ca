// SPDX-License-Identifier: Apache-2.0
// Predictions of several series and GPU counts, and what was measured for them.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result/result.hpp"

namespace scapesim::study {

/// One prediction of a study.
struct Point {
  std::string scenario;
  std::string series;  ///< variant name, empty without variants
  int gpus = 0;
  result::Outcome outcome;
};

const result::Run* run_of(const Point& point);  ///< nullptr when infeasible
bool all_infeasible(std::span<const Point> points);

/// A quantity that measurements are compared in: one row of the table of `--against` metrics.
struct Metric {
  std::string_view name;  ///< "step_time_s"
  std::string_view help;
  double (*predicted)(const result::Run&);
};
std::span<const Metric> metrics();

struct Measured {
  std::string series;
  int gpus = 0;
  std::string metric;
  double value = 0;
};

/// Reads `series,gpus,metric,value`. Throws InputError with every problem.
std::vector<Measured> load_measured(const std::filesystem::path& file);
std::vector<Measured> parse_measured(std::string_view text, const std::string& file);

/// Step, communication and computation time of a training log (calib/ importers; the steady steps'
/// medians). Throws InputError when it does not say its step time or on how many GPUs it ran.
std::vector<Measured> measured_of_log(const std::filesystem::path& file, std::optional<int> gpus,
                                      const std::string& series);

/// Whether a measured row is of the point's series (without variants: of its scenario).
bool belongs(const Measured& measured, const Point& point);

/// A measured value and the prediction of the same series, GPU count and metric.
struct Comparison {
  Measured measured;
  std::optional<double> predicted;  ///< none: no such point, or infeasible
};
std::vector<Comparison> compare(std::span<const Point> points, std::span<const Measured> measured);

/// predicted / measured - 1; none without a prediction.
std::optional<double> error_of(const Comparison& comparison);

}  // namespace scapesim::study
