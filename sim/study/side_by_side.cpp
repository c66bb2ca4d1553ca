// SPDX-License-Identifier: Apache-2.0
#include "sim/study/side_by_side.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "sim/result/metrics.hpp"

namespace scapesim::study {
namespace {

using result::Run;

/// What rounding alone may leave between a whole and its parts.
constexpr double kRounding = 1e-12;

double tokens_of(const Run& run) { return run.tokens_per_second.si() * run.step_time.si(); }

double scale_of(const Run& run, Per per) {
  constexpr double kMillion = 1e6;
  return per == Per::step ? 1 : kMillion / tokens_of(run);
}

/// Puts a value into the row of that name and kind.
void put(std::vector<ComparedTerm>& rows, const std::string& name, const std::string& kind,
         std::size_t column, std::size_t columns, double value) {
  auto row = std::ranges::find_if(
      rows, [&](const ComparedTerm& r) { return r.name == name && r.kind == kind; });
  if (row == rows.end()) {
    rows.push_back({name, kind, std::vector<std::optional<double>>(columns)});
    row = rows.end() - 1;
  }
  row->values[column] = row->values[column].value_or(0) + value;
}

std::vector<StepPart> explained_parts(const Run& run) {
  std::vector<StepPart> parts;
  for (const result::Term& term : run.terms) parts.push_back({term.name, term.formula, term.time});
  return parts;
}

struct MemoryPart {
  const char* name;
  Bytes result::Memory::*size;
};
constexpr MemoryPart kMemoryParts[] = {
    {"parameters", &result::Memory::parameters},       {"gradients", &result::Memory::gradients},
    {"optimizer", &result::Memory::optimizer},         {"strategy", &result::Memory::strategy},
    {"activations", &result::Memory::activations},     {"temporary", &result::Memory::temporary},
    {"context (CUDA, NCCL)", &result::Memory::context}};

const result::Memory& memory_of(const Point& point) {
  if (const Run* run = run_of(point)) return run->memory;
  return std::get<result::Infeasible>(point.outcome).memory;
}

void add_memory(SideBySide& table, std::size_t column) {
  const result::Memory& memory = memory_of(table.points[column]);
  if (memory.total <= Bytes(0)) return;
  const std::size_t columns = table.points.size();
  const Bytes whole = memory.total + memory.context;
  table.memory[column] = whole.si();
  Bytes rest = whole;
  for (const MemoryPart& part : kMemoryParts) {
    put(table.memory_terms, part.name, "memory", column, columns, (memory.*part.size).si());
    rest -= memory.*part.size;
  }
  if (std::abs(rest.si()) > kRounding * whole.si())
    put(table.memory_terms, "held by the allocator beside these", "memory", column, columns,
        rest.si());
}

void add_time(SideBySide& table, std::size_t column, Detail detail) {
  const Run* run = run_of(table.points[column]);
  if (run == nullptr) return;
  const double scale = scale_of(*run, table.per);
  table.time[column] = run->step_time.si() * scale;
  for (const StepPart& part : detail == Detail::terms ? explained_parts(*run) : parts_of(*run))
    put(table.terms, part.name, part.kind, column, table.points.size(), part.time.si() * scale);
}

/// In the order of the breakdown, whichever column brought a row.
void sort_by_kind(std::vector<ComparedTerm>& terms) {
  static constexpr std::string_view kOrder[] = {"compute", "optimizer", "communication",
                                                "copy",    "host",      "bubble"};
  std::ranges::stable_sort(terms, std::less{}, [](const ComparedTerm& term) {
    return std::ranges::find(kOrder, term.kind) - std::begin(kOrder);
  });
}

/// A column that has a step has no term where nothing runs.
void fill_absent(std::vector<ComparedTerm>& terms,
                 const std::vector<std::optional<double>>& whole) {
  for (ComparedTerm& term : terms)
    for (std::size_t i = 0; i < whole.size(); ++i)
      if (whole[i] && !term.values[i]) term.values[i] = 0;
}

// [M366] Draws are the same for every call, so that what two predictions have in common cancels.
StepDifference difference_of(const Run& base, const Run& run, Per per) {
  const double base_scale = scale_of(base, per), scale = scale_of(run, per);
  StepDifference result{.difference = run.step_time * scale - base.step_time * base_scale};
  if (base.drawn.empty() || base.drawn.size() != run.drawn.size()) return result;
  std::vector<Seconds> drawn;
  for (std::size_t i = 0; i < run.drawn.size(); ++i)
    drawn.push_back(run.drawn[i] * scale - base.drawn[i] * base_scale);
  const result::Interval interval =
      result::interval_of(std::move(drawn), *result.difference, run.interval_level);
  result.low = interval.low;
  result.high = interval.high;
  return result;
}

/// The shortest of series, scenario and both that tells all columns apart; else numbered.
std::vector<std::string> labels_of(const std::vector<Point>& points) {
  const auto distinct = [&](auto name) {
    std::vector<std::string> names;
    for (const Point& point : points) names.push_back(name(point));
    const std::set<std::string> different(names.begin(), names.end());
    return different.size() == names.size() ? names : std::vector<std::string>();
  };
  const auto series = [](const Point& p) { return p.series.empty() ? p.scenario : p.series; };
  const auto both = [](const Point& p) {
    return p.series.empty() ? p.scenario : p.scenario + ", " + p.series;
  };
  if (auto names = distinct(series); !names.empty()) return names;
  if (auto names = distinct(both); !names.empty()) return names;
  std::vector<std::string> names;
  for (const Point& point : points)
    names.push_back(fmt::format("{} ({})", both(point), names.size() + 1));
  return names;
}

}  // namespace

// [M365] Exposed communication by collective; what the breakdown counts beside the collectives
// (none today) is kept, so that the parts sum to the step whatever they are.
std::vector<StepPart> parts_of(const Run& run) {
  const result::Breakdown& b = run.breakdown;
  std::vector<StepPart> parts = {{"compute", "compute", b.compute},
                                 {"optimizer", "optimizer", b.optimizer}};
  Seconds rest = b.exposed_communication;
  for (const result::Communication& row : run.communication) {
    const auto same = [&](const StepPart& part) {
      return part.kind == "communication" && part.name == row.name;
    };
    if (const auto found = std::ranges::find_if(parts, same); found != parts.end())
      found->time += row.exposed;
    else
      parts.push_back({row.name, "communication", row.exposed});
    rest -= row.exposed;
  }
  if (std::abs(rest.si()) > kRounding * run.step_time.si())
    parts.push_back({"other communication", "communication", rest});
  parts.push_back({"copy", "copy", b.copy});
  parts.push_back({"host", "host", b.host});
  parts.push_back({"bubble", "bubble", b.bubble});
  return parts;
}

SideBySide side_by_side(std::span<const Series> series, const SideBySideOptions& options,
                        const PredictOptions& how) {
  SideBySide table{.per = options.per};
  std::vector<const spec::Scenario*> scenarios;
  for (const Series& s : series) {
    scenarios.push_back(&s.scenario);
    table.points.push_back({s.scenario.name, s.scenario.series, s.scenario.cluster.gpus,
                            predict(s.scenario, s.profile, how).outcome});
  }
  table.labels = labels_of(table.points);
  table.changed = scenario::differences(scenarios);
  table.time.resize(series.size());
  table.memory.resize(series.size());
  const Run* base = run_of(table.points.front());
  for (std::size_t i = 0; i < series.size(); ++i) {
    add_time(table, i, options.detail);
    add_memory(table, i);
    const Run* run = run_of(table.points[i]);
    table.differences.push_back(base != nullptr && run != nullptr
                                    ? difference_of(*base, *run, options.per)
                                    : StepDifference{});
  }
  sort_by_kind(table.terms);
  fill_absent(table.terms, table.time);
  fill_absent(table.memory_terms, table.memory);
  return table;
}

}  // namespace scapesim::study
