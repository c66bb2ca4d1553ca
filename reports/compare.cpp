// SPDX-License-Identifier: Apache-2.0
#include "reports/compare.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "reports/csv.hpp"
#include "reports/json_parts.hpp"
#include "reports/table.hpp"
#include "reports/text_parts.hpp"
#include "sim/base/unit_text.hpp"

namespace scapesim::reports {
namespace {

using parts::Json;
using study::ComparedTerm;
using study::SideBySide;
using Cells = std::vector<std::string>;
using Values = std::vector<std::optional<double>>;

/// What a value is more than that of the first column.
std::optional<double> difference(const Values& values, std::size_t column) {
  if (!values[column] || !values.front()) return std::nullopt;
  return *values[column] - *values.front();
}

/// Writes a value of one table.
using Write = std::string (*)(double value, TimeUnit unit);

std::string time_text(double value, TimeUnit unit) { return in_unit(Seconds(value), unit); }
std::string memory_text(double value, TimeUnit) {
  return fmt::format("{:.2f}", value / (1024.0 * 1024 * 1024));
}

std::string signed_text(double value, TimeUnit unit, Write write) {
  const std::string text = write(std::abs(value), unit);
  const bool zero = text.find_first_of("123456789") == std::string::npos;
  return zero ? "0" : (value < 0 ? "-" : "+") + text;
}

/// One row: the first column, then value and difference of every other.
Cells row_of(const std::string& name, const Values& values, TimeUnit unit, Write write) {
  Cells row = {name};
  for (std::size_t i = 0; i < values.size(); ++i) {
    row.push_back(values[i] ? write(*values[i], unit) : "-");
    if (i == 0) continue;
    const std::optional<double> more = difference(values, i);
    row.push_back(more ? signed_text(*more, unit, write) : "-");
  }
  return row;
}

/// The parameter `table` hides the function of that name here.
std::string table_of(const std::vector<Column>& columns, const std::vector<Cells>& rows) {
  return table(columns, rows);
}

bool says_something(const ComparedTerm& term) {
  return std::ranges::any_of(term.values,
                             [](const std::optional<double>& v) { return v && *v != 0; });
}

std::vector<Column> columns_of(const SideBySide& table, const std::string& head) {
  std::vector<Column> columns = {{head, Align::left}};
  for (std::size_t i = 0; i < table.labels.size(); ++i) {
    columns.push_back({table.labels[i]});
    if (i > 0) columns.push_back({"difference"});
  }
  return columns;
}

std::string terms_text(const SideBySide& table, const std::string& head,
                       const std::vector<ComparedTerm>& terms, const std::string& whole,
                       const Values& sums, TimeUnit unit, Write write) {
  std::vector<Cells> rows;
  for (const ComparedTerm& term : terms)
    if (says_something(term)) rows.push_back(row_of(term.name, term.values, unit, write));
  rows.push_back(row_of(whole, sums, unit, write));
  return table_of(columns_of(table, head), rows);
}

/// "B against A: -1.0535 s (-1.1 s to -0.9 s, 90 % interval of the difference), 1.27x as fast".
std::string verdicts(const SideBySide& table, TimeUnit unit) {
  std::string out;
  for (std::size_t i = 1; i < table.points.size(); ++i) {
    const study::StepDifference& d = table.differences[i];
    if (!d.difference) continue;
    const std::string_view in = unit.name;
    out += fmt::format("{} against {}: {} {}", table.labels[i], table.labels[0],
                       signed_text(d.difference->si(), unit, time_text), in);
    if (d.low)
      out += fmt::format(" ({} to {} {}, 90 % interval of the difference)",
                         signed_text(d.low->si(), unit, time_text),
                         signed_text(d.high->si(), unit, time_text), in);
    out += fmt::format(", {:.3f}x the speed\n", *table.time[0] / *table.time[i]);
  }
  return out;
}

/// "50 GB/s" for "50000000000B/s"; other values without their quotes.
std::string pretty(const std::string& toml) {
  const auto read = scenario::number_of(toml);
  if (const auto* found = std::get_if<scenario::NumberText>(&read)) {
    const auto& [number, unit] = *found;
    if (unit == "B/s") return text_of(BytesPerSecond(number));
    if (unit == "B") return text_of(Bytes(number));
    if (unit == "s") return text_of(Seconds(number));
    if (unit == "GFLOP/s") return text_of(FlopsPerSecond(number * 1e9));
  }
  return toml.starts_with('"') ? toml.substr(1, toml.size() - 2) : toml;
}

std::string changed_text(const SideBySide& table) {
  if (table.changed.empty()) return "no key differs\n";
  std::vector<Column> columns = {{"key that differs", Align::left}};
  for (const std::string& label : table.labels) columns.push_back({label, Align::left});
  std::vector<Cells> rows;
  for (const scenario::Difference& d : table.changed) {
    Cells row = {d.key};
    for (const std::string& text : d.texts) row.push_back(pretty(text));
    rows.push_back(std::move(row));
  }
  return table_of(columns, rows);
}

template <class Get>
Values values_of(const SideBySide& table, Get get) {
  Values values;
  for (const study::Point& point : table.points) {
    const result::Run* run = study::run_of(point);
    values.push_back(run != nullptr ? get(*run) : std::optional<double>());
  }
  return values;
}

/// A quantity beside the step that people compare.
struct Quantity {
  const char* name;
  const char* key;
  std::optional<double> (*of)(const result::Run&);
  std::string (*text)(double);
};
const Quantity kQuantities[] = {
    {"tokens/s", "tokens_per_s",
     [](const result::Run& r) { return std::optional(r.tokens_per_second.si()); },
     [](double v) { return fmt::format("{:.0f}", v); }},
    {"tokens/s per GPU", "tokens_per_s_per_gpu",
     [](const result::Run& r) { return std::optional(r.tokens_per_second.si() / r.gpus); },
     [](double v) { return fmt::format("{:.0f}", v); }},
    {"MFU", "mfu", [](const result::Run& r) { return std::optional(r.mfu); }, percent},
    {"communication hidden", "overlap_fraction",
     [](const result::Run& r) { return r.overlap_fraction; }, percent},
    {"USD per step", "cost_usd",
     [](const result::Run& r) { return r.cost ? std::optional(r.cost->si()) : std::nullopt; },
     [](double v) { return usd(Dollars(v)); }},
    {"kWh per step", "energy_J",
     [](const result::Run& r) { return r.energy ? std::optional(r.energy->si()) : std::nullopt; },
     [](double v) { return kwh(Joules(v)); }},
};

std::string quantities_text(const SideBySide& table) {
  std::vector<Column> columns = {{"", Align::left}};
  for (const std::string& label : table.labels) columns.push_back({label});
  std::vector<Cells> rows;
  Cells gpus = {"GPUs"};
  for (const study::Point& point : table.points) gpus.push_back(fmt::format("{}", point.gpus));
  rows.push_back(std::move(gpus));
  for (const Quantity& quantity : kQuantities) {
    const Values values = values_of(table, quantity.of);
    Cells row = {quantity.name};
    for (const auto& value : values) row.push_back(value ? quantity.text(*value) : "-");
    if (std::ranges::any_of(values, [](const auto& v) { return v.has_value(); }))
      rows.push_back(std::move(row));
  }
  return table_of(columns, rows);
}

TimeUnit unit_of(const Values& times) {
  double longest = 0;
  for (const auto& time : times) longest = std::max(longest, time.value_or(0));
  return longest > 0 ? unit_for(Seconds(longest)) : TimeUnit{"s", 1};
}

Json values_json(const Values& values) {
  Json list = Json::array();
  for (const auto& value : values) list.push_back(parts::or_null(value));
  return list;
}

Json differences_json(const Values& values) {
  Json list = Json::array();
  for (std::size_t i = 0; i < values.size(); ++i)
    list.push_back(parts::or_null(difference(values, i)));
  return list;
}

Json terms_json(const std::vector<ComparedTerm>& terms, const char* values,
                const char* differences) {
  Json list = Json::array();
  for (const ComparedTerm& term : terms)
    list.push_back({{"name", term.name},
                    {"kind", term.kind},
                    {values, values_json(term.values)},
                    {differences, differences_json(term.values)}});
  return list;
}

Json column_json(const SideBySide& table, std::size_t i) {
  const study::Point& point = table.points[i];
  const result::Run* run = study::run_of(point);
  Json json = {{"label", table.labels[i]}, {"scenario", point.scenario}};
  json["series"] = parts::or_null(point.series);
  json["hash"] = run != nullptr ? Json(run->hash) : Json(nullptr);
  json["calibration"] = run != nullptr ? Json(run->calibration) : Json(nullptr);
  json["gpus"] = point.gpus;
  for (const Quantity& quantity : kQuantities)
    json[quantity.key] = run != nullptr ? parts::or_null(quantity.of(*run)) : Json(nullptr);
  json["infeasible"] =
      run != nullptr ? Json(nullptr) : Json(std::get<result::Infeasible>(point.outcome).reason);
  return json;
}

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

std::string csv_row(const std::string& part, const std::string& name, const std::string& kind,
                    const Values& values) {
  std::string row = fmt::format("{},{},{}", part, csv_cell(name), csv_cell(kind));
  for (std::size_t i = 0; i < values.size(); ++i) {
    row += "," + csv_number(values[i]);
    if (i > 0) row += "," + csv_number(difference(values, i));
  }
  return row + "\n";
}

}  // namespace

std::string compare_text(const SideBySide& table) {
  const TimeUnit unit = unit_of(table.time);
  const std::string per = table.per == study::Per::step ? "step" : "million tokens";
  std::string out = quantities_text(table) + "\n" +
                    terms_text(table, fmt::format("where a {} goes, {}", per, unit.name),
                               table.terms, per, table.time, unit, time_text) +
                    "\n" + verdicts(table, unit) + "\n" +
                    terms_text(table, "memory of the fullest GPU, GiB", table.memory_terms,
                               "needed", table.memory, unit, memory_text) +
                    "\n" + changed_text(table);
  for (const study::Point& point : table.points)
    if (study::run_of(point) == nullptr) out += "\n" + infeasible_text(point);
  return out + rests_on(table.points);
}

std::string compare_json(const SideBySide& table) {
  Json columns = Json::array(), low = Json::array(), high = Json::array(), keys = Json::array();
  for (std::size_t i = 0; i < table.points.size(); ++i) {
    columns.push_back(column_json(table, i));
    low.push_back(parts::or_null(table.differences[i].low));
    high.push_back(parts::or_null(table.differences[i].high));
  }
  for (const scenario::Difference& d : table.changed)
    keys.push_back({{"key", d.key}, {"values", d.texts}});
  return parts::text_of({{"schema", "scapesim.compare/1"},
                         {"per", std::string(name_of(table.per))},
                         {"columns", columns},
                         {"time_s", values_json(table.time)},
                         {"difference_s", differences_json(table.time)},
                         {"difference_low_s", low},
                         {"difference_high_s", high},
                         {"terms", terms_json(table.terms, "time_s", "difference_s")},
                         {"memory_B", values_json(table.memory)},
                         {"memory_difference_B", differences_json(table.memory)},
                         {"memory", terms_json(table.memory_terms, "size_B", "difference_B")},
                         {"changed", keys}});
}

std::string compare_csv(const SideBySide& table) {
  std::string out = "part,term,kind";
  for (std::size_t i = 0; i < table.labels.size(); ++i) {
    out += "," + csv_cell(table.labels[i]);
    if (i > 0) out += "," + csv_cell("difference of " + table.labels[i]);
  }
  out += "\n";
  for (const ComparedTerm& term : table.terms)
    out += csv_row("time_s", term.name, term.kind, term.values);
  out += csv_row("time_s", "whole", "sum", table.time);
  for (const ComparedTerm& term : table.memory_terms)
    out += csv_row("memory_B", term.name, term.kind, term.values);
  return out + csv_row("memory_B", "whole", "sum", table.memory);
}

}  // namespace scapesim::reports
