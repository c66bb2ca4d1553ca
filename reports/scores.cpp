// SPDX-License-Identifier: Apache-2.0
#include "reports/scores.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/csv.hpp"
#include "reports/table.hpp"

namespace scapesim::reports {
namespace {

using Json = nlohmann::ordered_json;
using study::Score;
using study::ScoredRow;

constexpr std::size_t kWorstRows = 10;

/// Largest errors first; a row predicted not to fit is the worst.
std::vector<const ScoredRow*> by_error(const study::Scores& scores, std::size_t most) {
  std::vector<const ScoredRow*> rows;
  for (const ScoredRow& row : scores.rows) rows.push_back(&row);
  const auto size = [](const ScoredRow* row) {
    return std::abs(study::error_of(*row).value_or(INFINITY));
  };
  std::ranges::stable_sort(
      rows, [&](const ScoredRow* a, const ScoredRow* b) { return size(a) > size(b); });
  rows.resize(std::min(rows.size(), most));
  return rows;
}

std::string interval_text(const ScoredRow& row) {
  if (!row.low) return "";
  return metric_text(row.metric, *row.low) + " - " + metric_text(row.metric, *row.high);
}

std::string rows_text(const std::vector<const ScoredRow*>& list) {
  std::vector<std::vector<std::string>> cells;
  for (const ScoredRow* row : list) {
    const std::optional<double> error = study::error_of(*row);
    cells.push_back(
        {row->row, row->source, row->model, row->gpu, fmt::format("{}", row->gpus), row->metric,
         row->predicted ? metric_text(row->metric, *row->predicted) : "infeasible",
         interval_text(*row), metric_text(row->metric, row->measured),
         error ? signed_percent(*error) : "-", fmt::format("{:.1f}", row->octaves), row->reason});
  }
  return table({{"row", Align::left},
                {"source", Align::left},
                {"model", Align::left},
                {"GPU", Align::left},
                {"GPUs"},
                {"metric", Align::left},
                {"predicted"},
                {"90 % interval"},
                {"measured"},
                {"error"},
                {"octaves outside"},
                {"look at", Align::left}},
               cells) +
         "\n";
}

std::string groups_text(const std::vector<Score>& scores) {
  std::vector<std::vector<std::string>> cells;
  for (const Score& score : scores) {
    const bool any = score.rows > score.infeasible;
    const auto shown = [&](double share) { return any ? percent(share) : "-"; };
    cells.push_back({score.by, score.by == "all" ? "" : score.name, fmt::format("{}", score.rows),
                     shown(score.median), shown(score.mean), shown(score.p90), shown(score.worst),
                     any ? signed_percent(score.bias) : "-",
                     score.covered ? percent(*score.covered) : "",
                     fmt::format("{}", score.infeasible)});
  }
  return table({{"by", Align::left},
                {"", Align::left},
                {"rows"},
                {"median error"},
                {"mean"},
                {"90th percentile"},
                {"worst"},
                {"bias"},
                {"in interval"},
                {"infeasible"}},
               cells);
}

std::string budget_text(const study::Scores& scores) {
  if (scores.checks.empty()) return "\nno error budget\n";
  std::vector<std::vector<std::string>> cells;
  for (const study::ValidationCheck& check : scores.checks)
    cells.push_back({check.help, check.value ? fmt::format("{:.2f} %", 100 * *check.value) : "none",
                     fmt::format("{:.2f} %", 100 * check.limit), check.passed ? "ok" : "ABOVE"});
  return "\n" + table({{"error budget", Align::left}, {"value"}, {"limit"}, {""}}, cells) +
         (scores.passed ? "within the budget\n" : "above the budget\n");
}

std::string scaling_text(const study::StrongScaling& scaling) {
  if (scaling.pairs == 0) return "";
  return fmt::format(
      "\nstrong scaling, ratios of rows at equal batch: {} pair{}, median error {}, 90th "
      "percentile {}\n",
      scaling.pairs, scaling.pairs == 1 ? "" : "s", percent(scaling.median), percent(scaling.p90));
}

Json or_null(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json row_json(const ScoredRow& row) {
  return {{"row", row.row},
          {"source", row.source},
          {"quality", row.quality},
          {"model", row.model},
          {"gpu", row.gpu},
          {"gpus", row.gpus},
          {"method", row.method},
          {"metric", row.metric},
          {"measured", row.measured},
          {"predicted", or_null(row.predicted)},
          {"low", or_null(row.low)},
          {"high", or_null(row.high)},
          {"error", or_null(study::error_of(row))},
          {"calibration", row.calibration},
          {"weakest_provenance", row.weakest},
          {"octaves_outside", row.octaves},
          {"reason", row.reason},
          {"note", row.note}};
}

Json score_json(const Score& score) {
  const bool any = score.rows > score.infeasible;
  const auto known = [&](double value) { return any ? Json(value) : Json(nullptr); };
  return {{"by", score.by},
          {"name", score.name},
          {"rows", score.rows},
          {"infeasible", score.infeasible},
          {"median_error", known(score.median)},
          {"mean_error", known(score.mean)},
          {"p90_error", known(score.p90)},
          {"worst_error", known(score.worst)},
          {"bias", known(score.bias)},
          {"in_interval", or_null(score.covered)}};
}

std::string exact(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace

std::string scores_text(const study::Scores& scores, ShownRows shown) {
  std::string out = fmt::format("{}: {} rows\n\n", scores.name, scores.rows.size());
  const std::size_t rows = scores.rows.size();
  if (shown == ShownRows::worst && rows > kWorstRows)
    out += fmt::format("the {} rows with the largest errors\n", kWorstRows);
  if (shown != ShownRows::none)
    out += rows_text(by_error(scores, shown == ShownRows::all ? rows : kWorstRows));
  return out + groups_text(scores.scores) + scaling_text(scores.scaling) + budget_text(scores);
}

std::string scores_json(const study::Scores& scores) {
  Json rows = Json::array(), groups = Json::array(), checks = Json::array();
  for (const ScoredRow& row : scores.rows) rows.push_back(row_json(row));
  for (const Score& score : scores.scores) groups.push_back(score_json(score));
  for (const study::ValidationCheck& check : scores.checks)
    checks.push_back({{"name", check.name},
                      {"value", or_null(check.value)},
                      {"limit", check.limit},
                      {"passed", check.passed}});
  const auto known = [&](double value) {
    return scores.scaling.pairs > 0 ? Json(value) : Json(nullptr);
  };
  const Json document = {{"schema", "scapesim.scores/1"},
                         {"name", scores.name},
                         {"passed", scores.passed},
                         {"checks", checks},
                         {"groups", groups},
                         {"strong_scaling",
                          {{"pairs", scores.scaling.pairs},
                           {"median_error", known(scores.scaling.median)},
                           {"p90_error", known(scores.scaling.p90)}}},
                         {"rows", rows}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

std::string scores_csv(const study::Scores& scores) {
  std::string out =
      "row,source,quality,model,gpu,gpus,method,metric,measured,predicted,low,high,error,"
      "calibration,weakest_provenance,octaves_outside\n";
  for (const ScoredRow& row : scores.rows)
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_cell(row.row),
                       csv_cell(row.source), csv_cell(row.quality), csv_cell(row.model),
                       csv_cell(row.gpu), row.gpus, csv_cell(row.method), row.metric, row.measured,
                       exact(row.predicted), exact(row.low), exact(row.high),
                       exact(study::error_of(row)), csv_cell(row.calibration), row.weakest,
                       row.octaves);
  return out;
}

}  // namespace scapesim::reports
