// SPDX-License-Identifier: Apache-2.0
// Predictions against published measurements, and whether their errors stay in a budget.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace scapesim::study {

/// One measured value and its prediction.
struct ValidationRow {
  std::string model;
  std::string series;  ///< "dense", "dense zero1", "scape d=0.01", ...
  int gpus = 0;
  std::string metric;  ///< as in study::metrics()
  double measured = 0;
  std::optional<double> predicted;  ///< none: infeasible
};

/// Errors of the rows of one method and metric.
struct ValidationGroup {
  std::string method;  ///< "dense", "scape"
  std::string metric;
  int rows = 0;
  double mean_error = 0;   ///< mean of |predicted / measured - 1|
  double worst_error = 0;  ///< largest of them
};

/// One row of the error budget.
struct ValidationCheck {
  std::string name;
  std::string help;
  std::optional<double> value;  ///< an error; none when nothing could be predicted
  double limit = 0;
  bool passed = false;
};

struct Validation {
  std::string suite;
  std::string calibration;
  std::vector<ValidationRow> rows;
  std::vector<ValidationGroup> groups;
  std::vector<ValidationCheck> checks;
  bool passed = false;  ///< every check passed
};

std::optional<double> error_of(const ValidationRow& row);

/// The suite `vista`: the runs on TACC Vista in calib/data/vista_scape.csv under `data`, the
/// scenarios scenarios/vista-*.toml and the budget calib/data/vista-budget.csv.
Validation validate_vista(const std::filesystem::path& data);

/// The suite `jupiter`: calib/data/jupiter-single-node.csv names shipped scenarios and their
/// measured metrics. How the curves of another machine do there: no budget, always passed.
Validation validate_jupiter(const std::filesystem::path& data);

/// The suite `collectives`: the nccl-tests tables that calib/data/collectives-validation.csv names,
/// each with a shipped profile, by the closed forms of its modes; budget collectives-budget.csv.
Validation validate_collectives(const std::filesystem::path& data);

/// A suite: one function and one row.
struct Suite {
  std::string_view name;
  std::string_view help;
  Validation (*run)(const std::filesystem::path& data);
};
std::span<const Suite> suites();

}  // namespace scapesim::study
