// SPDX-License-Identifier: Apache-2.0
// The suite `collectives`: published nccl-tests tables against the shipped profiles.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>

#include "calib/sweeps.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/file.hpp"
#include "sim/base/unit_text.hpp"
#include "sim/predict/predict.hpp"
#include "sim/study/validate.hpp"

namespace scapesim::study {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kSmallest{1024.0 * 1024};

struct Budget {
  double calibrated = 0;
  double other = 0;
};

Budget load_budget(const fs::path& file) {
  constexpr std::string_view kColumns[] = {"check", "limit", "why"};
  const Csv csv = parse_csv(read_file(file, "error budget"), file.string(), kColumns);
  Problems problems;
  Budget budget;
  for (const CsvRow& row : csv.rows) {
    const std::string& name = row.cells[0].text;
    const double limit = positive_number(csv, row.cells[1], "limit", problems);
    if (name == "calibrated_median")
      budget.calibrated = limit;
    else if (name == "other_median")
      budget.other = limit;
    else
      problems.add(place_of(csv, row.cells[0]), "check", fmt::format("\"{}\" is not a check", name),
                   "calibrated_median or other_median");
  }
  if (problems.empty() && (budget.calibrated == 0 || budget.other == 0))
    problems.add({.file = csv.file}, "check", "calibrated_median and other_median need a limit");
  problems.raise();
  return budget;
}

/// Errors of one table.
struct Scored {
  std::string name;
  bool exact = true;
  bool calibrated = false;
  std::vector<double> errors;
};

std::optional<double> median(std::vector<double> list) {
  if (list.empty()) return std::nullopt;
  std::ranges::sort(list);
  return list[list.size() / 2];
}

std::optional<double> median_of(const std::vector<Scored>& tables, std::string_view relation) {
  std::vector<double> list;
  for (const Scored& table : tables)
    if (table.exact && table.calibrated == (relation == "calibrated"))
      list.insert(list.end(), table.errors.begin(), table.errors.end());
  return median(list);
}

/// The machine of a table: full nodes with its line rates on one switch; latencies are the
/// profile's.
spec::Cluster cluster_of(const calib::TimedCall& call) {
  spec::Cluster cluster;
  cluster.nodes = call.layout.nodes;
  cluster.gpus = call.layout.ranks;
  cluster.gpus_per_node = call.layout.ranks / call.layout.nodes;
  cluster.nics_per_node = std::max(1, call.layout.nics_per_node);
  // A table of one node states no NIC, one of single GPUs no node link: neither carries anything.
  constexpr BytesPerSecond kUnused(1e9);
  cluster.nic_bandwidth = call.rates.nic.si() > 0 ? call.rates.nic : kUnused;
  cluster.node_link_bandwidth = call.rates.node_link.si() > 0 ? call.rates.node_link : kUnused;
  cluster.fabric.kind = spec::FabricKind::switch_;
  return cluster;
}

/// As the simulator times it. An algorithm that the profile does not know is left to its choice.
Seconds simulated(const cost::Profile& profile, const calib::TimedCall& call) {
  const std::vector<cost::Mode> modes = cost::modes_of(&profile, call.kind, call.size, call.layout);
  const bool known = call.algorithm && std::ranges::any_of(modes, [&](const cost::Mode& mode) {
                       return mode.algorithm == call.algorithm;
                     });
  CollectiveOptions options;
  if (known) options.algorithm = call.algorithm;
  return predict_collective(call.kind, call.size, cluster_of(call), &profile, options).time;
}

/// Predicts the calls of a table; rows and errors of its large ones.
Scored score(const calib::Sweep& sweep, const cost::Profile& profile, const std::string& relation,
             std::vector<ValidationRow>& rows) {
  Scored table{.name = sweep.name,
               .exact = sweep.exact,
               .calibrated = relation == "calibrated",
               .errors = {}};
  for (const calib::TimedCall& call : sweep.calls) {
    if (call.size < kSmallest) continue;
    const Seconds predicted = simulated(profile, call);
    rows.push_back({.model = sweep.name,
                    .series = fmt::format("{} {}", relation, text_of(call.size)),
                    .gpus = call.layout.ranks,
                    .metric = "time_s",
                    .measured = call.time.si(),
                    .predicted = predicted.si()});
    table.errors.push_back(std::abs(predicted / call.time - 1));
  }
  return table;
}

ValidationGroup group_of(const Scored& table) {
  double sum = 0;
  for (const double error : table.errors) sum += error;
  return {.method = table.name + (table.calibrated ? " (calibrated)" : " (other)"),
          .metric = "time_s",
          .rows = static_cast<int>(table.errors.size()),
          .mean_error = sum / static_cast<double>(table.errors.size()),
          .worst_error = std::ranges::max(table.errors)};
}

ValidationCheck check_of(const std::vector<Scored>& tables, const char* relation, const char* help,
                         double limit) {
  const std::optional<double> value = median_of(tables, relation);
  return {.name = fmt::format("{}_median", relation),
          .help = help,
          .value = value,
          .limit = limit,
          .passed = value && *value <= limit};
}

}  // namespace

Validation validate_collectives(const fs::path& data) {
  const fs::path folder = data / "calib" / "data";
  const Budget budget = load_budget(folder / "collectives-budget.csv");
  constexpr std::string_view kColumns[] = {"profile", "sweep", "relation"};
  const fs::path file = folder / "collectives-validation.csv";
  const Csv csv = parse_csv(read_file(file, "suite"), file.string(), kColumns);
  const std::vector<calib::Sweep> sweeps = calib::collective_sweeps(data);
  Problems problems;
  Validation validation;
  validation.suite = "collectives";
  validation.calibration = "the shipped profile of each machine";
  std::map<std::string, cost::Profile> profiles;
  std::vector<Scored> tables;
  for (const CsvRow& row : csv.rows) {
    const auto sweep = std::ranges::find(sweeps, row.cells[1].text, &calib::Sweep::name);
    const std::string& relation = row.cells[2].text;
    if (sweep == sweeps.end())
      problems.add(place_of(csv, row.cells[1]), "sweep", "not in collectives-sweeps.csv");
    if (relation != "calibrated" && relation != "other")
      problems.add(place_of(csv, row.cells[2]), "relation", "must be calibrated or other");
    if (!problems.empty()) continue;
    const std::string& id = row.cells[0].text;
    if (!profiles.contains(id)) profiles[id] = cost::load_profile(id, {});
    Scored table = score(*sweep, profiles.at(id), relation, validation.rows);
    if (table.errors.empty()) continue;
    validation.groups.push_back(group_of(table));
    tables.push_back(std::move(table));
  }
  problems.raise();
  validation.checks = {
      check_of(tables, "calibrated", "collectives of calibrated tables, median", budget.calibrated),
      check_of(tables, "other", "collectives of tables not seen, median", budget.other)};
  validation.passed = std::ranges::all_of(validation.checks, &ValidationCheck::passed);
  return validation;
}

}  // namespace scapesim::study
