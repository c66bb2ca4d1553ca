// SPDX-License-Identifier: Apache-2.0
#include "reports/sensitivity.hpp"

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
using study::Effect;
using study::Sensitivity;
using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t kMostParameters = 16;
constexpr std::size_t kMostParts = 12;
constexpr std::size_t kMostAlternatives = 12;

const result::Run& run_of(const Sensitivity& s) { return *study::run_of(s.point); }

std::string value_text(const study::Parameter& parameter) {
  if (!parameter.value) return "";
  const double value = *parameter.value;
  if (parameter.unit == "B/s" || parameter.name.ends_with("_Bps"))
    return text_of(BytesPerSecond(value));
  if (parameter.unit == "s" || parameter.name.ends_with("_s")) return text_of(Seconds(value));
  if (parameter.unit == "GFLOP/s") return text_of(FlopsPerSecond(value * 1e9));
  return fmt::format("{:.4g}{}", value, parameter.unit);
}

std::string change_text(const std::optional<Seconds>& time, Seconds base) {
  return time ? signed_percent(*time / base - 1) : "-";
}

std::string tornado_text(const Sensitivity& s) {
  const Seconds base = run_of(s).step_time;
  Rows rows;
  for (const Effect& e : s.effects) {
    if (rows.size() == kMostParameters) break;
    rows.push_back({e.parameter.name, std::string(name_of(e.parameter.kind)),
                    value_text(e.parameter), change_text(e.less, base), change_text(e.more, base),
                    fmt::format("{:+.3f}", e.elasticity)});
  }
  const std::string by = fmt::format("{:.3g} %", 100 * s.change);
  std::string out = table({{"step time when", Align::left},
                           {"", Align::left},
                           {"is"},
                           {by + " less"},
                           {by + " more"},
                           {"elasticity"}},
                          rows);
  if (s.effects.size() > kMostParameters)
    out += fmt::format("{} more with a smaller effect (--csv, --json)\n",
                       s.effects.size() - kMostParameters);
  return out;
}

/// "adapters 98 %, network latency 2 %": resources that hold 1 % or more of a time.
std::string shares_text(std::span<const double> shares) {
  constexpr double kWorthNaming = 0.01;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < shares.size(); ++i)
    if (shares[i] >= kWorthNaming) order.push_back(i);
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return shares[i]; });
  std::string out;
  for (const std::size_t i : order)
    out += fmt::format("{}{} {:.0f} %", out.empty() ? "" : ", ", study::machines()[i].name,
                       100 * shares[i]);
  return out.empty() ? "other GPUs" : out;
}

std::string bounds_text(const Sensitivity& s) {
  const Seconds step = run_of(s).step_time;
  const TimeUnit unit = unit_for(step);
  Rows rows;
  for (const study::PartBound& part : s.parts) {
    if (rows.size() == kMostParts) break;
    rows.push_back(
        {part.name, in_unit(part.time, unit), percent(part.time / step), shares_text(part.shares)});
  }
  rows.push_back({"step", in_unit(step, unit), percent(1), shares_text(s.resource_shares)});
  return table({{"part of the step", Align::left},
                {std::string(unit.name)},
                {"share"},
                {"bound by", Align::left}},
               rows);
}

std::string roofs_text(const Sensitivity& s) {
  const Seconds step = run_of(s).step_time;
  const TimeUnit unit = unit_for(step);
  Rows rows;
  for (const study::Roof& roof : s.roofs)
    rows.push_back(
        {roof.name, in_unit(roof.step_time, unit),
         roof.step_time > Seconds(0) ? fmt::format("{:.2f}x", step / roof.step_time) : "-",
         roof.help});
  return table(
      {{"roof", Align::left}, {"step " + std::string(unit.name)}, {"at most"}, {"", Align::left}},
      rows);
}

std::string disturbances_text(const Sensitivity& s) {
  Rows rows;
  for (const study::Disturbance& row : s.disturbances)
    rows.push_back({row.name, signed_percent(row.slowdown - 1),
                    row.low ? fmt::format("{} to {}", signed_percent(*row.low - 1),
                                          signed_percent(*row.high - 1))
                            : "",
                    fmt::format("{} = {}", row.key, row.value)});
  if (rows.empty()) return "";
  return "\n" + table({{"what goes wrong", Align::left},
                       {"step time"},
                       {"90 % interval"},
                       {"", Align::left}},
                      rows);
}

std::string alternative_text(const study::Alternative& row, Seconds base) {
  if (!row.step_time) return "does not fit";
  return signed_percent(*row.step_time / base / row.tokens_ratio - 1);
}

std::string alternatives_text(const Sensitivity& s) {
  const Seconds base = run_of(s).step_time;
  Rows rows;
  for (const study::Alternative& row : s.alternatives) {
    if (rows.size() == kMostAlternatives) break;
    rows.push_back({row.key, row.from, row.to, alternative_text(row, base),
                    row.memory ? gib(*row.memory) : "-",
                    row.trains_otherwise ? "trains otherwise" : ""});
  }
  if (rows.empty()) return "";
  std::string out = "\n" + table({{"one choice changed", Align::left},
                                  {"from", Align::left},
                                  {"to", Align::left},
                                  {"time per token"},
                                  {"memory GiB"},
                                  {"", Align::left}},
                                 rows);
  if (s.alternatives.size() > kMostAlternatives)
    out += fmt::format("{} more that are slower or do not fit (--json)\n",
                       s.alternatives.size() - kMostAlternatives);
  return out;
}

Json effect_json(const Effect& e) {
  return {{"name", e.parameter.name},
          {"kind", std::string(name_of(e.parameter.kind))},
          {"value", parts::or_null(e.parameter.value)},
          {"unit", parts::or_null(e.parameter.unit)},
          {"step_time_less_s", parts::or_null(e.less)},
          {"step_time_more_s", parts::or_null(e.more)},
          {"elasticity", parts::number(e.elasticity)},
          {"derivative", parts::or_null(e.derivative)}};
}

Json shares_json(std::span<const double> shares) {
  Json json = Json::object();
  for (std::size_t i = 0; i < shares.size(); ++i)
    json[std::string(study::machines()[i].name)] = parts::number(shares[i]);
  return json;
}

Json parts_json(const Sensitivity& s) {
  Json list = Json::array();
  for (const study::PartBound& part : s.parts)
    list.push_back({{"name", part.name},
                    {"formula", part.formula},
                    {"time_s", parts::number(part.time)},
                    {"bound", parts::or_null(part.bound)},
                    {"shares", shares_json(part.shares)}});
  return list;
}

Json alternatives_json(const Sensitivity& s) {
  Json list = Json::array();
  for (const study::Alternative& row : s.alternatives)
    list.push_back({{"key", row.key},
                    {"from", row.from},
                    {"to", row.to},
                    {"trains_otherwise", row.trains_otherwise},
                    {"step_time_s", parts::or_null(row.step_time)},
                    {"tokens_ratio", parts::number(row.tokens_ratio)},
                    {"memory_B", parts::or_null(row.memory)},
                    {"infeasible", parts::or_null(row.infeasible)}});
  return list;
}

Json disturbances_json(const Sensitivity& s) {
  Json list = Json::array();
  for (const study::Disturbance& row : s.disturbances)
    list.push_back({{"name", row.name},
                    {"key", row.key},
                    {"value", row.value},
                    {"step_time_s", parts::number(row.step_time)},
                    {"slowdown", parts::number(row.slowdown)},
                    {"slowdown_low", parts::or_null(row.low)},
                    {"slowdown_high", parts::or_null(row.high)},
                    {"slowdown_deviation", parts::or_null(row.deviation)}});
  return list;
}

Json roofs_json(const Sensitivity& s) {
  Json list = Json::array();
  for (const study::Roof& roof : s.roofs)
    list.push_back({{"name", roof.name}, {"step_time_s", parts::number(roof.step_time)}});
  return list;
}

Json series_json(const Sensitivity& s) {
  Json json = {{"schema", "scapesim.sensitivity/1"}, {"scenario", s.point.scenario}};
  json["series"] = parts::or_null(s.point.series);
  json["gpus"] = s.point.gpus;
  if (const auto* why = std::get_if<result::Infeasible>(&s.point.outcome)) {
    json["infeasible"] = why->reason;
    return json;
  }
  const result::Run& run = run_of(s);
  json["hash"] = run.hash;
  json["calibration"] = run.calibration;
  json["step_time_s"] = parts::number(run.step_time);
  json["change"] = parts::number(s.change);
  Json effects = Json::array();
  for (const Effect& effect : s.effects) effects.push_back(effect_json(effect));
  json["parameters"] = effects;
  json["without_effect"] = s.without_effect;
  json["resource_shares"] = shares_json(s.resource_shares);
  json["parts"] = parts_json(s);
  json["alternatives"] = alternatives_json(s);
  json["roofs"] = roofs_json(s);
  json["disturbances"] = disturbances_json(s);
  return json;
}

std::string csv_number(const std::optional<Seconds>& value) {
  return value ? fmt::format("{}", value->si()) : "";
}

}  // namespace

std::string sensitivity_text(const Sensitivity& s) {
  if (study::run_of(s.point) == nullptr) return infeasible_text(s.point);
  const result::Run& run = run_of(s);
  return fmt::format("{}\nstep time   {}\n\n",
                     title(s.point.scenario, s.point.series, s.point.gpus),
                     text_of(run.step_time)) +
         tornado_text(s) + "\n" + bounds_text(s) + "\n" + roofs_text(s) + disturbances_text(s) +
         alternatives_text(s) + rests_on({&s.point, 1});
}

std::string sensitivity_json(std::span<const Sensitivity> series) {
  if (series.size() == 1) return parts::text_of(series_json(series.front()));
  Json list = Json::array();
  for (const Sensitivity& s : series) list.push_back(series_json(s));
  return parts::text_of({{"schema", "scapesim.sensitivity-set/1"}, {"series", list}});
}

std::string sensitivity_csv(std::span<const Sensitivity> series) {
  std::string out =
      "scenario,series,gpus,parameter,kind,value,unit,change,step_time_s,step_time_less_s,"
      "step_time_more_s,elasticity,derivative\n";
  for (const Sensitivity& s : series)
    for (const Effect& e : s.effects)
      out += fmt::format(
          "{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_cell(s.point.scenario),
          csv_cell(s.point.series), s.point.gpus, csv_cell(e.parameter.name),
          name_of(e.parameter.kind), e.parameter.value ? fmt::format("{}", *e.parameter.value) : "",
          e.parameter.unit, s.change, run_of(s).step_time.si(), csv_number(e.less),
          csv_number(e.more), e.elasticity, e.derivative ? fmt::format("{}", *e.derivative) : "");
  return out;
}

}  // namespace scapesim::reports
