// SPDX-License-Identifier: Apache-2.0
// Measured runs as a table: every row names a scenario by its keys and one measured value. Scores
// the predictions by groups, against a budget where there is one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/study/validate.hpp"

namespace scapesim::study {

/// A run of the table and its prediction.
struct ScoredRow {
  std::string row;      ///< the column `row`, else the line
  std::string source;   ///< where it was published
  std::string quality;  ///< "exact" where every input is known; other rows are reported apart
  std::string note;
  std::string model;
  std::string gpu;
  std::string method;  ///< "dense zero1"
  int gpus = 0;
  std::string metric;
  double measured = 0;
  std::optional<double> predicted;  ///< none: predicted not to fit
  std::optional<double> low, high;  ///< 90 % interval of the metric, where it follows the step time
  std::string calibration;
  std::string weakest;  ///< provenance
  std::string job;      ///< equal for rows that differ in GPUs and split only
  double octaves = 0;   ///< farthest outside the calibrated range, in factors of two
  std::string reason;   ///< what to look at first when it is far off
};

/// predicted / measured - 1.
std::optional<double> error_of(const ScoredRow& row);

/// [M260] Errors of the rows that share a value of one column.
struct Score {
  std::string by;  ///< "all", "source", "gpu", "scale", "method", "quality"
  std::string name;
  int rows = 0;
  int infeasible = 0;  ///< ran, and were predicted not to fit
  double median = 0;   ///< of |error|
  double mean = 0;     ///< the same, mean
  double p90 = 0;
  double worst = 0;
  double bias = 0;                ///< median of the signed error
  std::optional<double> covered;  ///< share of the rows whose interval holds the measured value
};

/// [M423] Rows of one job at equal batch on different numbers of GPUs, two by two: how well the
/// ratio of their values is met. Their splits may differ.
struct StrongScaling {
  int pairs = 0;
  double median = 0;  ///< of |predicted ratio / measured ratio - 1|
  double p90 = 0;
};

struct Scores {
  std::string name;
  std::vector<ScoredRow> rows;
  std::vector<Score> scores;
  std::vector<ValidationCheck> checks;  ///< empty without a budget
  StrongScaling scaling = {};
  bool passed = true;
};

/// Reads and predicts a table. Columns: keys of a scenario ("cluster.gpus"), `scenario` (a file
/// below the keys, relative to the table), `metric` and `value`, `tokens` for the metric gpu_hours,
/// and for people `row`, `source`, `quality`, `note`, `reason` (known of a row that is far off).
/// `budget`, a table group,statistic,limit,why with groups like "gpu=H100" or "all" and statistics
/// median, mean, p90, bias, worst, infeasible. Throws InputError with every problem of all rows.
struct RowsOptions {
  std::optional<std::filesystem::path> budget;
  int interval_draws = 16;
};
Scores score_rows(const std::filesystem::path& table, const RowsOptions& options);

/// A suite that is a shipped table with its budget: one row.
struct TableSuite {
  std::string_view name;
  std::string_view help;
  std::string_view table;  ///< below the data folder
  std::string_view budget;
};
std::span<const TableSuite> table_suites();

}  // namespace scapesim::study
