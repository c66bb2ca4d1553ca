// SPDX-License-Identifier: Apache-2.0
// Studies for people: scale, collective, validate, list.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>

#include "reports/table.hpp"
#include "reports/text.hpp"
#include "reports/text_parts.hpp"

namespace scapesim::reports {
namespace {

using Rows = std::vector<std::vector<std::string>>;
using study::Comparison;

constexpr std::string_view kStepTime = "step_time_s";

bool belongs(const Comparison& c, const study::Point& point) {
  const std::string& series = c.measured.series;
  return c.measured.gpus == point.gpus &&
         (series == point.series || (point.series.empty() && series == point.scenario));
}

/// Measured step time and error of a point, or blanks.
std::array<std::string, 2> measured_cells(const study::Point& point, TimeUnit unit,
                                          std::span<const Comparison> against) {
  for (const Comparison& c : against)
    if (c.measured.metric == kStepTime && belongs(c, point)) {
      const std::optional<double> error = study::error_of(c);
      return {in_unit(Seconds(c.measured.value), unit), error ? signed_percent(*error) : "-"};
    }
  return {"", ""};
}

/// Columns that only clusters with a price or a power have.
struct Extras {
  bool cost = false;
  bool energy = false;
};

Extras extras_of(std::span<const study::Point> points) {
  Extras extras;
  for (const study::Point& point : points)
    if (const result::Run* run = study::run_of(point)) {
      extras.cost = extras.cost || run->cost;
      extras.energy = extras.energy || run->energy;
    }
  return extras;
}

std::vector<std::string> scale_row(const study::Point& point, TimeUnit unit, Extras extras) {
  std::vector<std::string> row = {point.series.empty() ? point.scenario : point.series,
                                  fmt::format("{}", point.gpus)};
  const result::Run* run = study::run_of(point);
  if (run == nullptr) {
    row.insert(row.end(), {"infeasible", "", "", "", "", ""});
    row.resize(row.size() + (extras.cost ? 1 : 0) + (extras.energy ? 1 : 0));
    return row;
  }
  row.push_back(in_unit(run->step_time, unit));
  row.push_back(run->has_interval
                    ? in_unit(run->step_time_low, unit) + " - " + in_unit(run->step_time_high, unit)
                    : "");
  row.push_back(run->efficiency ? percent(*run->efficiency) : "");
  row.push_back(percent(run->breakdown.exposed_communication / run->step_time));
  row.push_back(fmt::format("{:.0f}", run->tokens_per_second.si()));
  row.push_back(gib(run->memory.total + run->memory.context));
  if (extras.cost) row.push_back(run->cost ? usd(*run->cost) : "");
  if (extras.energy) row.push_back(run->energy ? kwh(*run->energy) : "");
  return row;
}

TimeUnit unit_of(std::span<const study::Point> points) {
  Seconds longest(0);
  for (const study::Point& point : points)
    if (const result::Run* run = study::run_of(point)) longest = std::max(longest, run->step_time);
  return longest > Seconds(0) ? unit_for(longest) : TimeUnit{"s", 1};
}

/// "AdamS on 8, 16; SCAPE on 8 GPUs": the points of values that nothing was predicted for.
std::string unmatched_text(std::span<const Comparison> against) {
  std::map<std::string, std::set<int>> counts;
  for (const Comparison& c : against)
    if (!c.predicted) counts[c.measured.series].insert(c.measured.gpus);
  std::vector<std::string> parts;
  for (const auto& [series, gpus] : counts)
    parts.push_back(fmt::format("{} on {}", series, fmt::join(gpus, ", ")));
  return fmt::format("{} GPUs", fmt::join(parts, "; "));
}

std::string errors_text(std::span<const Comparison> against) {
  double sum = 0, worst = 0;
  int rows = 0;
  for (const Comparison& c : against)
    if (const std::optional<double> error = study::error_of(c)) {
      sum += std::abs(*error), worst = std::max(worst, std::abs(*error)), ++rows;
    }
  const std::size_t unmatched = against.size() - static_cast<std::size_t>(rows);
  std::string out;
  if (rows > 0)
    out = fmt::format("\nmeasured values compared: {}, mean error {}, worst {}\n", rows,
                      percent(sum / rows), percent(worst));
  if (unmatched > 0)
    out += fmt::format("measured values without a predicted point: {} ({})\n", unmatched,
                       unmatched_text(against));
  return out;
}

std::string other_metrics_text(std::span<const Comparison> against) {
  Rows rows;
  for (const Comparison& c : against) {
    if (c.measured.metric == kStepTime) continue;
    const std::optional<double> error = study::error_of(c);
    rows.push_back({c.measured.series, fmt::format("{}", c.measured.gpus), c.measured.metric,
                    c.predicted ? metric_text(c.measured.metric, *c.predicted) : "-",
                    metric_text(c.measured.metric, c.measured.value),
                    error ? signed_percent(*error) : "-"});
  }
  if (rows.empty()) return "";
  return "\n" + table({{"series", Align::left},
                       {"GPUs"},
                       {"metric", Align::left},
                       {"predicted"},
                       {"measured"},
                       {"error"}},
                      rows);
}

std::string validation_rows_text(const std::vector<study::ValidationRow>& list) {
  if (list.empty()) return "";
  Rows rows;
  for (const study::ValidationRow& r : list) {
    const std::optional<double> error = study::error_of(r);
    rows.push_back({r.model, r.series, fmt::format("{}", r.gpus), r.metric,
                    r.predicted ? metric_text(r.metric, *r.predicted) : "infeasible",
                    metric_text(r.metric, r.measured), error ? signed_percent(*error) : "-"});
  }
  return table({{"model", Align::left},
                {"series", Align::left},
                {"GPUs"},
                {"metric", Align::left},
                {"predicted"},
                {"measured"},
                {"error"}},
               rows) +
         "\n";
}

std::string size_text(Bytes size) { return fmt::format("{:.0f}", size.si()); }

}  // namespace

std::string scale_text(const study::Scale& scale, std::span<const Comparison> against) {
  const TimeUnit unit = unit_of(scale.points);
  const std::string in(unit.name);
  std::vector<Column> columns = {
      {"series", Align::left}, {"GPUs"},          {"step " + in}, {"90 % interval"},
      {"efficiency"},          {"exposed comm."}, {"tokens/s"},   {"memory GiB"}};
  const Extras extras = extras_of(scale.points);
  if (extras.cost) columns.push_back({"USD/step"});
  if (extras.energy) columns.push_back({"kWh/step"});
  const bool measured = std::ranges::any_of(
      against, [](const Comparison& c) { return c.measured.metric == kStepTime; });
  if (measured) columns.insert(columns.end(), {{"measured " + in}, {"error"}});
  Rows rows;
  for (const study::Point& point : scale.points) {
    if (!rows.empty() && point.series != (&point)[-1].series)
      rows.push_back(std::vector<std::string>(columns.size()));
    std::vector<std::string> row = scale_row(point, unit, extras);
    if (measured)
      for (std::string& cell : measured_cells(point, unit, against)) row.push_back(std::move(cell));
    rows.push_back(std::move(row));
  }
  std::string out = fmt::format("{}: {} scaling\n\n{}", scale.points.front().scenario,
                                scale.scaling == study::Scaling::strong ? "strong" : "weak",
                                table(columns, rows));
  for (const study::Point& point : scale.points)
    if (study::run_of(point) == nullptr) {
      const auto& why = std::get<result::Infeasible>(point.outcome);
      out += fmt::format("\n{}: {}\n", title(point.scenario, point.series, point.gpus), why.reason);
      if (!why.hint.empty()) out += fmt::format("  {}\n", why.hint);
    }
  return out + other_metrics_text(against) + errors_text(against) + rests_on(scale.points);
}

std::string collective_text(std::string_view heading, std::span<const CollectiveTime> rows) {
  Rows cells;
  for (const CollectiveTime& row : rows)
    cells.push_back({size_text(row.size), fmt::format("{:.2f}", row.time.si() * 1e6),
                     gbps(row.algbw), gbps(row.busbw), row.algorithm, row.protocol});
  return fmt::format("# {}\n{}", heading,
                     table({{"# size (B)"},
                            {"time (us)"},
                            {"algbw (GB/s)"},
                            {"busbw (GB/s)"},
                            {"algorithm", Align::left},
                            {"protocol", Align::left}},
                           cells));
}

std::string validation_text(const study::Validation& validation) {
  Rows groups, checks;
  for (const study::ValidationGroup& g : validation.groups)
    groups.push_back({g.method, g.metric, fmt::format("{}", g.rows), percent(g.mean_error),
                      percent(g.worst_error)});
  for (const study::ValidationCheck& c : validation.checks)
    checks.push_back({c.help, c.value ? fmt::format("{:.2f} %", 100 * *c.value) : "none",
                      fmt::format("{:.2f} %", 100 * c.limit), c.passed ? "ok" : "ABOVE"});
  return fmt::format("suite {}, calibration {}\n\n", validation.suite, validation.calibration) +
         validation_rows_text(validation.rows) +
         table({{"method", Align::left},
                {"metric", Align::left},
                {"rows"},
                {"mean error"},
                {"worst error"}},
               groups) +
         (checks.empty()
              ? "no error budget\n"
              : "\n" + table({{"error budget", Align::left}, {"value"}, {"limit"}, {""}}, checks) +
                    (validation.passed ? "within the budget\n" : "above the budget\n"));
}

std::string listing_text(const Listing& listing) {
  std::vector<Column> columns;
  for (const std::string& name : listing.columns) columns.push_back({name, Align::left});
  return table(columns, listing.rows);
}

}  // namespace scapesim::reports
