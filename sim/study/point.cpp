// SPDX-License-Identifier: Apache-2.0
#include "sim/study/point.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "calib/calibrate.hpp"
#include "calib/import.hpp"
#include "sim/base/csv.hpp"
#include "sim/base/error.hpp"
#include "sim/base/file.hpp"

namespace scapesim::study {
namespace {

double communication_time(const result::Run& run) {
  Seconds total(0);
  for (const result::Communication& row : run.communication) total += row.time;
  return total.si();
}

constexpr Metric kMetrics[] = {
    {"step_time_s", "time of one training step",
     [](const result::Run& run) { return run.step_time.si(); }},
    {"computation_s", "step less all communication, hidden or not",
     [](const result::Run& run) { return run.step_time.si() - communication_time(run); }},
    {"communication_s", "all communication of a step, hidden or not", communication_time},
    {"tokens_per_s", "tokens of the whole cluster per second",
     [](const result::Run& run) { return run.tokens_per_second.si(); }},
    {"tokens_per_s_per_gpu", "tokens per second and GPU",
     [](const result::Run& run) { return run.tokens_per_second.si() / run.gpus; }},
    {"mfu", "model FLOPs utilisation, 0 to 1", [](const result::Run& run) { return run.mfu; }},
    {"memory_B", "allocator's peak on the fullest rank",
     [](const result::Run& run) { return run.memory.total.si(); }},
};

Measured measured_of(const CsvRow& row, const Csv& csv, Problems& problems) {
  Measured measured{.series = row.cells[0].text, .metric = row.cells[2].text};
  const auto known = [&](const Metric& metric) { return metric.name == measured.metric; };
  if (std::ranges::none_of(metrics(), known)) {
    std::vector<std::string_view> names;
    for (const Metric& metric : metrics()) names.push_back(metric.name);
    problems.add(place_of(csv, row.cells[2]), "metric",
                 "\"" + measured.metric + "\" is not a metric",
                 did_you_mean(measured.metric, names));
  }
  measured.gpus = positive_integer(csv, row.cells[1], "gpus", problems);
  measured.value = positive_number(csv, row.cells[3], "value", problems);
  return measured;
}

}  // namespace

const result::Run* run_of(const Point& point) { return std::get_if<result::Run>(&point.outcome); }

bool all_infeasible(std::span<const Point> points) {
  return std::ranges::none_of(points, [](const Point& p) { return run_of(p) != nullptr; });
}

std::span<const Metric> metrics() { return kMetrics; }

std::vector<Measured> parse_measured(std::string_view text, const std::string& file) {
  constexpr std::string_view kColumns[] = {"series", "gpus", "metric", "value"};
  const Csv csv = parse_csv(text, file, kColumns);
  Problems problems;
  std::vector<Measured> list;
  if (csv.rows.empty()) problems.add({file, 1, 1}, "", "no measured values, the header alone");
  for (const CsvRow& row : csv.rows) {
    const Measured measured = measured_of(row, csv, problems);
    const auto same = [&](const Measured& other) {
      return measured.gpus > 0 && other.series == measured.series && other.gpus == measured.gpus &&
             other.metric == measured.metric;
    };
    if (const auto first = std::ranges::find_if(list, same); first != list.end())
      problems.add(
          place_of(csv, row.cells[0]), "series",
          fmt::format("second {} of \"{}\" on {} GPUs", measured.metric, measured.series,
                      measured.gpus),
          fmt::format("the first is in line {}",
                      csv.rows[static_cast<std::size_t>(first - list.begin())].cells[0].line));
    list.push_back(measured);
  }
  problems.raise();
  return list;
}

std::vector<Measured> measured_of_log(const std::filesystem::path& file, std::optional<int> gpus,
                                      const std::string& series) {
  const calib::Observations log = calib::import_file(file);
  for (const calib::StepSample& step : log.steps)
    if (!gpus) gpus = step.gpus;
  const std::optional<Seconds> step = calib::steady_step_time(log);
  Problems problems;
  if (!step) problems.add({.file = file.string()}, "--against", "holds no step times");
  if (!gpus)
    problems.add({.file = file.string()}, "--against", "does not say how many GPUs it ran on",
                 fmt::format("write {}@64", file.string()));
  problems.raise();
  std::vector<Measured> rows = {{series, *gpus, "step_time_s", step->si()}};
  if (const auto communication = calib::communication_time(log);
      communication && *communication < *step) {
    rows.push_back({series, *gpus, "communication_s", communication->si()});
    rows.push_back({series, *gpus, "computation_s", (*step - *communication).si()});
  }
  return rows;
}

std::vector<Measured> load_measured(const std::filesystem::path& file) {
  return parse_measured(read_file(file, "measured points"), file.string());
}

bool belongs(const Measured& measured, const Point& point) {
  return point.series == measured.series ||
         (point.series.empty() && measured.series == point.scenario);
}

std::vector<Comparison> compare(std::span<const Point> points, std::span<const Measured> measured) {
  std::vector<Comparison> list;
  for (const Measured& row : measured) {
    Comparison comparison{row, std::nullopt};
    const auto metric = std::ranges::find(metrics(), row.metric, &Metric::name);
    for (const Point& point : points) {
      const result::Run* run = run_of(point);
      if (belongs(row, point) && point.gpus == row.gpus && run != nullptr &&
          metric != metrics().end())
        comparison.predicted = metric->predicted(*run);
    }
    list.push_back(comparison);
  }
  return list;
}

std::optional<double> error_of(const Comparison& comparison) {
  if (!comparison.predicted) return std::nullopt;
  return *comparison.predicted / comparison.measured.value - 1;
}

}  // namespace scapesim::study
