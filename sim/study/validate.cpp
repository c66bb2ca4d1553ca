// SPDX-License-Identifier: Apache-2.0
#include "sim/study/validate.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "calib/rows.hpp"
#include "sim/base/check.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/file.hpp"
#include "sim/scenario/load.hpp"
#include "sim/study/scale.hpp"

namespace scapesim::study {
namespace {

namespace fs = std::filesystem;

using Measurement = calib::VistaRow;

std::string series_of(const Measurement& m) {
  std::string series = m.strategy;
  if (m.strategy != "dense") series += fmt::format(" d={}", m.density);
  if (m.distributed_optimizer) series += " zero1";
  if (m.residual_offload) series += " residual-offload";
  if (m.replica_offload) series += " replica-offload";
  return series;
}

/// The shipped scenario with the flags of a run; what no flag names stays as it was run (unfused
/// kernels, blocking wait for the mask, whole-tensor owners). Throws InputError.
spec::Scenario with_flags(spec::Scenario scenario, const Measurement& m) {
  const std::optional<spec::Method> method = find_named<spec::Method>(m.strategy);
  if (!method)
    throw InputError(Problem{{},
                             "strategy",
                             fmt::format("\"{}\" is not a strategy", m.strategy),
                             did_you_mean(m.strategy, all_names<spec::Method>())});
  scenario.series = series_of(m);
  scenario.training.micro_batch = m.micro_batch;
  scenario.strategy.method = *method;
  scenario.strategy.sharding =
      m.distributed_optimizer ? spec::Sharding::zero1 : spec::Sharding::none;
  scenario.strategy.density = m.density;
  scenario.strategy.offload = {.residual = m.residual_offload, .replica = m.replica_offload};
  return scenario::with_gpus(scenario, m.gpus, false);
}

/// scenarios/vista-llama-1.8b.toml for llama-1.8B.
fs::path scenario_file(const fs::path& data, std::string model) {
  std::ranges::transform(model, model.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return data / "scenarios" / ("vista-" + model + ".toml");
}

/// Predictions of all runs, each distinct run once.
class Predictions {
 public:
  explicit Predictions(fs::path data) : data_(std::move(data)) {}

  const result::Outcome& of(const Measurement& m) {
    const std::string key = fmt::format("{} {} {}", m.model, series_of(m), m.gpus);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    const fs::path file = scenario_file(data_, m.model);
    const spec::Scenario scenario = with_flags(scenario::load_scenarios(file).front(), m);
    const std::vector<Series> series = with_profiles({scenario}, file.parent_path());
    calibration_ = series[0].profile.id;
    const PredictOptions options{.driver = engine::Driver::standalone, .interval_draws = 0};
    return known_.emplace(key, predict(series[0].scenario, series[0].profile, options).outcome)
        .first->second;
  }
  const std::string& calibration() const { return calibration_; }

 private:
  fs::path data_;
  std::map<std::string, result::Outcome> known_;
  std::string calibration_;
};

std::optional<double> predicted(const Measurement& m, const result::Outcome& outcome) {
  const auto* run = std::get_if<result::Run>(&outcome);
  const auto metric = std::ranges::find(metrics(), m.metric, &Metric::name);
  if (run == nullptr || metric == metrics().end()) return std::nullopt;
  return metric->predicted(*run);
}

std::string method_of(const ValidationRow& row) {
  return row.series.substr(0, row.series.find(' '));
}

using Rows = std::vector<ValidationRow>;

std::vector<double> errors(const Rows& rows, std::string_view method, std::string_view metric) {
  std::vector<double> list;
  for (const ValidationRow& row : rows)
    if ((method.empty() || method_of(row) == method) && row.metric == metric)
      list.push_back(std::abs(error_of(row).value_or(1)));  // no prediction: all of it is missing
  return list;
}

std::optional<double> mean(const std::vector<double>& list) {
  if (list.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : list) sum += value;
  return sum / static_cast<double>(list.size());
}

std::optional<double> worst(const std::vector<double>& list) {
  if (list.empty()) return std::nullopt;
  return std::ranges::max(list);
}

const ValidationRow* row_of(const Rows& rows, std::string_view model, std::string_view series,
                            std::string_view metric, int gpus) {
  const auto same = [&](const ValidationRow& row) {
    return row.model == model && row.series == series && row.metric == metric && row.gpus == gpus;
  };
  const auto found = std::ranges::find_if(rows, same);
  return found == rows.end() || !found->predicted ? nullptr : &*found;
}

/// Largest error of (memory without residual offload - with), with and without sharding.
std::optional<double> residual_offload_saving(const Rows& rows) {
  std::vector<double> list;
  for (const std::string series : {"scape d=0.1", "scape d=0.1 zero1"}) {
    const ValidationRow* kept = row_of(rows, "llama-1.8B", series, "memory_B", 8);
    const ValidationRow* moved =
        row_of(rows, "llama-1.8B", series + " residual-offload", "memory_B", 8);
    if (kept == nullptr || moved == nullptr) return std::nullopt;
    const double saved = *kept->predicted - *moved->predicted;
    list.push_back(std::abs(saved / (kept->measured - moved->measured) - 1));
  }
  return worst(list);
}

/// |predicted - measured| strong-scaling efficiency of dense AdamS at 64 GPUs against 4.
std::optional<double> dense_efficiency_64(const Rows& rows) {
  const ValidationRow* few = row_of(rows, "llama-1.8B", "dense", "step_time_s", 4);
  const ValidationRow* many = row_of(rows, "llama-1.8B", "dense", "step_time_s", 64);
  if (few == nullptr || many == nullptr) return std::nullopt;
  const double measured = few->measured * 4 / (many->measured * 64);
  return std::abs(*few->predicted * 4 / (*many->predicted * 64) - measured);
}

struct CheckRow {
  const char* name;
  const char* help;
  std::optional<double> (*value)(const Rows&);
};
constexpr CheckRow kChecks[] = {
    {"dense_step_mean", "dense step time, mean",
     [](const Rows& r) { return mean(errors(r, "dense", "step_time_s")); }},
    {"dense_step_worst", "dense step time, worst",
     [](const Rows& r) { return worst(errors(r, "dense", "step_time_s")); }},
    {"scape_step_mean", "SCAPE step time, mean",
     [](const Rows& r) { return mean(errors(r, "scape", "step_time_s")); }},
    {"scape_step_worst", "SCAPE step time, worst",
     [](const Rows& r) { return worst(errors(r, "scape", "step_time_s")); }},
    {"memory_worst", "memory, worst",
     [](const Rows& r) { return worst(errors(r, "", "memory_B")); }},
    {"residual_offload_saving", "memory that residual offload saves", residual_offload_saving},
    {"dense_efficiency_64", "efficiency of dense AdamS, 64 against 4 GPUs (points)",
     dense_efficiency_64},
};

/// Limits by check; every check has one, and nothing else has.
std::map<std::string, double> load_budget(const fs::path& file) {
  constexpr std::string_view kColumns[] = {"check", "limit", "why"};
  const Csv csv = parse_csv(read_file(file, "error budget"), file.string(), kColumns);
  std::vector<std::string_view> names;
  for (const CheckRow& check : kChecks) names.emplace_back(check.name);
  Problems problems;
  std::map<std::string, double> limits;
  for (const CsvRow& row : csv.rows) {
    const std::string& name = row.cells[0].text;
    if (std::ranges::find(names, name) == names.end())
      problems.add(place_of(csv, row.cells[0]), "check", fmt::format("\"{}\" is not a check", name),
                   did_you_mean(name, names));
    limits[name] = positive_number(csv, row.cells[1], "limit", problems);
  }
  for (const std::string_view name : names)
    if (!limits.contains(std::string(name)))
      problems.add({.file = csv.file}, "check", fmt::format("no limit for {}", name));
  problems.raise();
  return limits;
}

std::vector<ValidationGroup> groups_of(const Rows& rows) {
  std::vector<ValidationGroup> groups;
  for (const ValidationRow& row : rows) {
    const std::string method = method_of(row);
    const auto same = [&](const ValidationGroup& g) {
      return g.method == method && g.metric == row.metric;
    };
    if (std::ranges::any_of(groups, same)) continue;
    const std::vector<double> list = errors(rows, method, row.metric);
    groups.push_back(
        {method, row.metric, static_cast<int>(list.size()), *mean(list), *worst(list)});
  }
  return groups;
}

}  // namespace

std::optional<double> error_of(const ValidationRow& row) {
  if (!row.predicted) return std::nullopt;
  return *row.predicted / row.measured - 1;
}

Validation validate_vista(const fs::path& data) {
  const std::map<std::string, double> limits =
      load_budget(data / "calib" / "data" / "vista-budget.csv");
  Predictions predictions(data);
  Validation validation;
  validation.suite = "vista";
  for (const Measurement& m : calib::vista_rows(data / "calib" / "data" / "vista_scape.csv"))
    validation.rows.push_back({.model = m.model,
                               .series = series_of(m),
                               .gpus = m.gpus,
                               .metric = m.metric,
                               .measured = m.value,
                               .predicted = predicted(m, predictions.of(m))});
  validation.calibration = predictions.calibration();
  validation.groups = groups_of(validation.rows);
  for (const CheckRow& check : kChecks) {
    const std::optional<double> value = check.value(validation.rows);
    const double limit = limits.at(check.name);
    validation.checks.push_back({check.name, check.help, value, limit, value && *value <= limit});
  }
  validation.passed = std::ranges::all_of(validation.checks, &ValidationCheck::passed);
  return validation;
}

Validation validate_jupiter(const fs::path& data) {
  constexpr std::string_view kColumns[] = {"scenario", "metric", "value", "source"};
  const fs::path file = data / "calib" / "data" / "jupiter-single-node.csv";
  const Csv csv = parse_csv(read_file(file, "measurements"), file.string(), kColumns);
  Problems problems;
  Validation validation;
  validation.suite = "jupiter";
  for (const CsvRow& row : csv.rows) {
    const fs::path scenario = data / "scenarios" / (row.cells[0].text + ".toml");
    const std::vector<Series> series =
        with_profiles(scenario::load_scenarios(scenario), scenario.parent_path());
    const PredictOptions options{.driver = engine::Driver::standalone, .interval_draws = 0};
    const Measurement m{.model = series[0].scenario.name,
                        .gpus = series[0].scenario.cluster.gpus,
                        .metric = row.cells[1].text,
                        .value = positive_number(csv, row.cells[2], "value", problems)};
    validation.calibration = series[0].profile.id;
    validation.rows.push_back(
        {.model = m.model,
         .series = "dense",
         .gpus = m.gpus,
         .metric = m.metric,
         .measured = m.value,
         .predicted =
             predicted(m, predict(series[0].scenario, series[0].profile, options).outcome)});
  }
  problems.raise();
  validation.groups = groups_of(validation.rows);
  validation.passed = true;
  return validation;
}

std::span<const Suite> suites() {
  static constexpr std::array<Suite, 3> kSuites = {{
      {"vista", "the runs of calib/data/vista_scape.csv, within calib/data/vista-budget.csv",
       validate_vista},
      {"jupiter", "the Vista curves on another GH200 machine, for information", validate_jupiter},
      {"collectives", "published nccl-tests tables by the shipped profiles", validate_collectives},
  }};
  return kSuites;
}

}  // namespace scapesim::study
