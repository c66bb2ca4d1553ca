// SPDX-License-Identifier: Apache-2.0
#include "sim/study/rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "sim/base/csv.hpp"
#include "sim/base/file.hpp"
#include "sim/scenario/keys.hpp"
#include "sim/scenario/load.hpp"
#include "sim/scenario/resolve.hpp"
#include "sim/study/capacity.hpp"
#include "sim/study/scale.hpp"

namespace scapesim::study {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 9> kOwnColumns = {
    "row", "source", "quality", "note", "reason", "metric", "value", "scenario", "tokens"};

/// A metric of whole trainings; its rows tell the tokens.
constexpr std::string_view kGpuHours = "gpu_hours";

/// Positions of the table's own columns in a row.
using Columns = std::map<std::string, std::size_t, std::less<>>;

bool is_key(std::string_view name) {
  const std::size_t dot = name.find('.');
  return dot != std::string_view::npos &&
         scenario::find_key(name.substr(0, dot), name.substr(dot + 1)).has_value();
}

std::vector<std::string> known_columns() {
  std::vector<std::string> names(kOwnColumns.begin(), kOwnColumns.end());
  for (const scenario::Key& key : scenario::keys())
    if (!key.section.empty()) names.push_back(fmt::format("{}.{}", key.section, key.name));
  return names;
}

Columns columns_of(const Csv& csv, Problems& problems) {
  const std::vector<std::string> names = known_columns();
  const std::vector<std::string_view> known(names.begin(), names.end());
  Columns columns;
  for (std::size_t i = 0; i < csv.header.cells.size(); ++i) {
    const CsvCell& cell = csv.header.cells[i];
    const bool own = std::ranges::find(kOwnColumns, cell.text) != kOwnColumns.end();
    if (own) columns[cell.text] = i;
    if (!own && !is_key(cell.text))
      problems.add(place_of(csv, cell), cell.text, "neither a key of a scenario nor a column",
                   did_you_mean(cell.text, known));
  }
  for (const std::string_view needed : {"metric", "value"})
    if (!columns.contains(needed))
      problems.add({csv.file, csv.header.cells.front().line, 1}, std::string(needed),
                   "missing column");
  return columns;
}

/// What rows have in common that differ in GPUs and in how the model is split over them.
std::string job_of(const ScoredRow& row, spec::Scenario scenario) {
  scenario.name.clear();
  scenario.cluster.gpus = 1;
  scenario.parallelism = {};
  scenario.strategy.sharding = spec::Sharding::none;
  spec::Training& training = scenario.training;
  training.micro_batch = 1;
  training.recompute = spec::Recompute::none;
  training.recompute_layers.reset();
  training.overlap_gradients = training.overlap_parameters = false;
  return row.source + " " + row.metric + " " + scenario::hash_of(scenario);
}

/// A row as a scenario with its profile, and what was measured.
struct Case {
  ScoredRow row;
  Tokens tokens;  ///< of kGpuHours
  Series series;
};

class Reader {
 public:
  Reader(const Csv& csv, Columns columns, fs::path table, Problems& problems)
      : csv_(csv), columns_(std::move(columns)), table_(std::move(table)), problems_(problems) {}

  Case read(const CsvRow& row) {
    Case result;
    result.row.row = cell(row, "row");
    if (result.row.row.empty()) result.row.row = fmt::format("line {}", row.cells.front().line);
    result.row.source = cell(row, "source");
    result.row.quality = cell(row, "quality");
    result.row.note = cell(row, "note");
    result.row.reason = cell(row, "reason");
    result.row.metric = metric(row.cells[columns_.at("metric")]);
    result.row.measured =
        positive_number(csv_, row.cells[columns_.at("value")], "value", problems_);
    result.tokens = tokens(row, result.row.metric);
    result.series.scenario = scenario(row);
    const spec::Scenario& s = result.series.scenario;
    result.row.model = s.model.name;
    result.row.gpu = s.cluster.gpu.name;
    result.row.gpus = s.cluster.gpus;
    result.row.job = job_of(result.row, s);
    result.row.method = std::string(name_of(s.strategy.method));
    if (s.strategy.sharding != spec::Sharding::none)
      result.row.method += " " + std::string(name_of(s.strategy.sharding));
    return result;
  }

 private:
  std::string cell(const CsvRow& row, std::string_view column) const {
    const auto found = columns_.find(column);
    return found == columns_.end() ? "" : row.cells[found->second].text;
  }

  std::string metric(const CsvCell& cell) {
    std::vector<std::string_view> names;
    for (const Metric& known : metrics()) names.push_back(known.name);
    names.push_back(kGpuHours);
    if (std::ranges::find(names, cell.text) == names.end())
      problems_.add(place_of(csv_, cell), "metric",
                    fmt::format("\"{}\" is not a metric", cell.text),
                    did_you_mean(cell.text, names));
    return cell.text;
  }

  Tokens tokens(const CsvRow& row, std::string_view metric) {
    if (metric != kGpuHours) return {};
    const auto column = columns_.find("tokens");
    if (column != columns_.end())
      return Tokens(positive_number(csv_, row.cells[column->second], "tokens", problems_));
    problems_.add(place_of(csv_, row.cells[columns_.at("metric")]), "metric",
                  "gpu_hours needs the tokens of the training", "add a column tokens");
    return {};
  }

  spec::Scenario scenario(const CsvRow& row) {
    std::vector<scenario::Cell> cells;
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const std::string& name = csv_.header.cells[i].text;
      if (row.cells[i].text.empty() || name.find('.') == std::string::npos) continue;
      cells.push_back({.key = name,
                       .text = row.cells[i].text,
                       .key_place = place_of(csv_, csv_.header.cells[i]),
                       .place = place_of(csv_, row.cells[i])});
    }
    std::optional<fs::path> base;
    if (const std::string file = cell(row, "scenario"); !file.empty())
      base = table_.parent_path() / file;
    return scenario::scenario_of_cells(cells, base, table_, problems_);
  }

  const Csv& csv_;
  Columns columns_;
  fs::path table_;
  Problems& problems_;
};

/// Profiles load once each; a row's are relative to the table.
std::vector<Case> read_cases(const fs::path& table) {
  const Csv csv = parse_table(read_file(table, "measured runs"), table.string());
  Problems problems;
  Columns columns = columns_of(csv, problems);
  problems.raise();
  Reader reader(csv, std::move(columns), table, problems);
  std::vector<Case> cases;
  for (const CsvRow& row : csv.rows) cases.push_back(reader.read(row));
  if (cases.empty()) problems.add({csv.file, 1, 1}, "", "no rows, the header alone");
  problems.raise();
  std::vector<spec::Scenario> scenarios;
  for (const Case& one : cases) scenarios.push_back(one.series.scenario);
  std::vector<Series> series = with_profiles(std::move(scenarios), table.parent_path());
  for (std::size_t i = 0; i < cases.size(); ++i) cases[i].series = std::move(series[i]);
  return cases;
}

/// The interval of the step time, carried over to a metric that is proportional to it or to its
/// inverse.
void add_interval(const result::Run& run, ScoredRow& row) {
  if (!run.has_interval) return;
  const double shortest = run.step_time_low / run.step_time;
  const double longest = run.step_time_high / run.step_time;
  if (row.metric == "step_time_s" || row.metric == kGpuHours) {
    row.low = *row.predicted * shortest;
    row.high = *row.predicted * longest;
  } else if (row.metric.starts_with("tokens_per_s") || row.metric == "mfu") {
    row.low = *row.predicted / longest;
    row.high = *row.predicted / shortest;
  }
}

/// What the table says, else the farthest extrapolation, else what is assumed, else the weakest
/// provenance.
void add_reason(const result::Run& run, ScoredRow& row) {
  const std::string told = row.reason;
  for (const result::Warning& warning : run.warnings)
    if (warning.code == "extrapolation" && warning.octaves >= row.octaves) {
      row.octaves = warning.octaves;
      row.reason = warning.message;
    }
  for (const result::Warning& warning : run.warnings)
    if (row.reason.empty() && warning.code == "assumed") row.reason = warning.message;
  if (row.reason.empty()) row.reason = "rests on " + row.weakest + " numbers";
  if (!told.empty()) row.reason = told;
}

double predicted_value(const Case& one, const result::Run& run) {
  if (one.row.metric == kGpuHours)
    return plan_of(one.series.scenario, one.series.profile.id, run,
                   {.tokens = one.tokens, .effective_time = kEffectiveTime})
        .gpu_hours;
  return std::ranges::find(metrics(), one.row.metric, &Metric::name)->predicted(run);
}

ScoredRow scored(const Case& one, const PredictOptions& options) {
  ScoredRow row = one.row;
  row.calibration = one.series.profile.id;
  const result::Outcome outcome = predict(one.series.scenario, one.series.profile, options).outcome;
  const auto* run = std::get_if<result::Run>(&outcome);
  if (run == nullptr) {
    row.reason = std::get<result::Infeasible>(outcome).reason;
    return row;
  }
  row.predicted = predicted_value(one, *run);
  row.weakest = run->weakest_provenance;
  add_interval(*run, row);
  add_reason(*run, row);
  return row;
}

/// Nearest-rank quantile of a sorted list.
double quantile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

double median(std::vector<double> list) {
  std::ranges::sort(list);
  const std::size_t half = list.size() / 2;
  return list.size() % 2 == 1 ? list[half] : (list[half - 1] + list[half]) / 2;
}

Score score_of(std::string by, std::string name, const std::vector<const ScoredRow*>& rows) {
  Score score{.by = std::move(by), .name = std::move(name), .covered = {}};
  std::vector<double> errors, sizes;
  int with_interval = 0, covered = 0;
  for (const ScoredRow* row : rows) {
    ++score.rows;
    if (!row->predicted) ++score.infeasible;
    if (const std::optional<double> error = error_of(*row)) {
      errors.push_back(*error);
      sizes.push_back(std::abs(*error));
    }
    if (!row->low) continue;
    ++with_interval;
    if (*row->low <= row->measured && row->measured <= *row->high) ++covered;
  }
  if (with_interval > 0) score.covered = static_cast<double>(covered) / with_interval;
  if (sizes.empty()) return score;
  score.bias = median(errors);
  score.median = median(sizes);
  for (const double size : sizes) score.mean += size / static_cast<double>(sizes.size());
  std::ranges::sort(sizes);
  score.p90 = quantile(sizes, 0.9);
  score.worst = sizes.back();
  return score;
}

/// GPUs of a row in factors of eight.
std::string scale_of(const ScoredRow& row) {
  std::int64_t most = 8;
  while (row.gpus > most) most *= 8;
  return most == 8 ? "up to 8" : fmt::format("{} to {}", most / 8 + 1, most);
}

/// Columns that rows are grouped by; an empty value makes no group.
struct Grouping {
  std::string_view by;
  std::string (*value)(const ScoredRow&);
};
constexpr Grouping kGroupings[] = {
    {"all", [](const ScoredRow&) { return std::string("all"); }},
    {"quality", [](const ScoredRow& row) { return row.quality; }},
    {"source", [](const ScoredRow& row) { return row.source; }},
    {"gpu", [](const ScoredRow& row) { return row.gpu; }},
    {"scale", scale_of},
    {"method", [](const ScoredRow& row) { return row.method; }},
};

bool is_graded(const std::vector<ScoredRow>& rows) {
  return std::ranges::any_of(rows, [](const ScoredRow& r) { return r.quality == "exact"; });
}

/// With rows of several qualities, the groups hold the exact ones; the rest is a group of its own.
std::vector<Score> scores_of(const std::vector<ScoredRow>& rows) {
  const bool graded = is_graded(rows);
  std::vector<Score> scores;
  for (const Grouping& grouping : kGroupings) {
    std::map<std::string, std::vector<const ScoredRow*>> groups;
    for (const ScoredRow& row : rows) {
      const bool counts = !graded || row.quality == "exact" || grouping.by == "quality";
      const std::string name = grouping.value(row);
      if (counts && !name.empty()) groups[name].push_back(&row);
    }
    if (grouping.by != "all" && groups.size() < 2) continue;  // the same as all
    for (const auto& [name, list] : groups)
      scores.push_back(score_of(std::string(grouping.by), name, list));
  }
  return scores;
}

// [M423] Errors that two rows share cancel in their ratio.
StrongScaling scaling_of(const std::vector<ScoredRow>& rows) {
  const bool graded = is_graded(rows);
  const auto counts = [&](const ScoredRow& row) {
    return row.predicted.has_value() && (!graded || row.quality == "exact");
  };
  std::vector<double> errors;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const ScoredRow &a = rows[i], &b = rows[j];
      if (!counts(a) || !counts(b) || a.gpus == b.gpus || a.job != b.job) continue;
      errors.push_back(std::abs((*a.predicted / *b.predicted) / (a.measured / b.measured) - 1));
    }
  if (errors.empty()) return {};
  std::ranges::sort(errors);
  return {.pairs = static_cast<int>(errors.size()),
          .median = median(errors),
          .p90 = quantile(errors, 0.9)};
}

/// A statistic a budget may bound from above (rows: from below).
struct Statistic {
  std::string_view name;
  double (*value)(const Score&);
};
constexpr Statistic kStatistics[] = {
    {"mean", [](const Score& s) { return s.mean; }},
    {"median", [](const Score& s) { return s.median; }},
    {"p90", [](const Score& s) { return s.p90; }},
    {"worst", [](const Score& s) { return s.worst; }},
    {"bias", [](const Score& s) { return std::abs(s.bias); }},
    {"infeasible", [](const Score& s) { return static_cast<double>(s.infeasible) / s.rows; }},
};

std::string group_name(const Score& score) {
  return score.by == "all" ? "all" : score.by + "=" + score.name;
}

std::vector<ValidationCheck> checks_of(const std::vector<Score>& scores, const fs::path& file) {
  constexpr std::string_view kColumns[] = {"group", "statistic", "limit", "why"};
  const Csv csv = parse_csv(read_file(file, "error budget"), file.string(), kColumns);
  std::vector<std::string> groups;
  for (const Score& score : scores) groups.push_back(group_name(score));
  const std::vector<std::string_view> known(groups.begin(), groups.end());
  std::vector<std::string_view> statistics;
  for (const Statistic& statistic : kStatistics) statistics.push_back(statistic.name);
  Problems problems;
  std::vector<ValidationCheck> checks;
  for (const CsvRow& row : csv.rows) {
    const auto score = std::ranges::find(scores, row.cells[0].text, group_name);
    const auto statistic = std::ranges::find(kStatistics, row.cells[1].text, &Statistic::name);
    if (score == scores.end())
      problems.add(place_of(csv, row.cells[0]), "group", "no rows of this group",
                   did_you_mean(row.cells[0].text, known));
    if (statistic == std::end(kStatistics))
      problems.add(place_of(csv, row.cells[1]), "statistic",
                   fmt::format("\"{}\" is not a statistic", row.cells[1].text),
                   did_you_mean(row.cells[1].text, statistics));
    const double limit = positive_number(csv, row.cells[2], "limit", problems);
    if (score == scores.end() || statistic == std::end(kStatistics)) continue;
    const double value = statistic->value(*score);
    const bool any = score->rows > score->infeasible || statistic->name == "infeasible";
    checks.push_back(
        {.name = row.cells[0].text + " " + row.cells[1].text,
         .help = fmt::format("{}, {} of {} rows", group_name(*score), statistic->name, score->rows),
         .value = any ? std::optional(value) : std::nullopt,
         .limit = limit,
         .passed = any && value <= limit});
  }
  problems.raise();
  return checks;
}

}  // namespace

std::optional<double> error_of(const ScoredRow& row) {
  if (!row.predicted) return std::nullopt;
  return *row.predicted / row.measured - 1;
}

std::span<const TableSuite> table_suites() {
  static constexpr TableSuite kSuites[] = {
      {"training", "published training steps, A100 to B200 and GH200",
       "calib/data/training-runs.csv", "calib/data/training-budget.csv"},
      {"vtrain", "vTrain's public step times on A100", "calib/data/vtrain-runs.csv",
       "calib/data/vtrain-budget.csv"},
      {"gpu-hours", "GPU-hours of whole published trainings", "calib/data/gpu-hours.csv",
       "calib/data/gpu-hours-budget.csv"},
  };
  return kSuites;
}

Scores score_rows(const fs::path& table, const RowsOptions& options) {
  const PredictOptions how{.driver = engine::Driver::standalone,
                           .interval_draws = options.interval_draws};
  Scores result{.name = table.stem().string(), .rows = {}, .scores = {}, .checks = {}};
  for (const Case& one : read_cases(table)) result.rows.push_back(scored(one, how));
  result.scores = scores_of(result.rows);
  result.scaling = scaling_of(result.rows);
  if (options.budget) result.checks = checks_of(result.scores, *options.budget);
  result.passed = std::ranges::all_of(result.checks, &ValidationCheck::passed);
  return result;
}

}  // namespace scapesim::study
