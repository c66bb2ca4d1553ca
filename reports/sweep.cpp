// SPDX-License-Identifier: Apache-2.0
#include "reports/sweep.hpp"

#include <fmt/format.h>

#include "reports/csv.hpp"
#include "reports/json_parts.hpp"

namespace scapesim::reports {
namespace {

using parts::Json;
using parts::number;
using parts::or_null;

/// On one line.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json value_json(const scenario::Value& value) {
  struct Visitor {
    Json operator()(bool flag) const { return flag; }
    Json operator()(std::int64_t integer) const { return integer; }
    Json operator()(double real) const { return number(real); }
    Json operator()(const std::string& text) const { return text; }
    Json operator()(const std::vector<std::string>& list) const { return list; }
    Json operator()(const scenario::OtherValue& other) const { return std::string(other.what); }
  };
  return std::visit(Visitor{}, value);
}

void add_memory(const result::Memory& memory, Json& json) {
  json["memory_B"] = {{"total", number(memory.total)},
                      {"context", number(memory.context)},
                      {"capacity", number(memory.capacity)}};
}

void add_run(const result::Run& run, Json& json) {
  const auto bound = [&](Seconds t) { return run.has_interval ? number(t) : Json(nullptr); };
  json["status"] = "done";
  json["scenario"]["hash"] = run.hash;
  json["step_time_s"] = number(run.step_time);
  json["step_time_low_s"] = bound(run.step_time_low);
  json["step_time_high_s"] = bound(run.step_time_high);
  json["tokens_per_s"] = number(run.tokens_per_second);
  json["mfu"] = number(run.mfu);
  json["breakdown_s"] = {{"compute", number(run.breakdown.compute)},
                         {"optimizer", number(run.breakdown.optimizer)},
                         {"exposed_communication", number(run.breakdown.exposed_communication)},
                         {"copy", number(run.breakdown.copy)},
                         {"host", number(run.breakdown.host)},
                         {"bubble", number(run.breakdown.bubble)}};
  json["overlap_fraction"] = or_null(run.overlap_fraction);
  add_memory(run.memory, json);
  json["energy_J"] = or_null(run.energy);
  json["cost_usd"] = or_null(run.cost);
  for (const result::Warning& warning : run.warnings)
    if (json["warnings"].empty() || json["warnings"].back() != warning.code)
      json["warnings"].push_back(warning.code);
  json["calibration"] = run.calibration;
  json["weakest_provenance"] = run.weakest_provenance;
  json["version"] = run.version;
}

void add_reason(std::string_view status, const std::string& reason, const std::string& hint,
                Json& json) {
  json["status"] = status;
  json["reason"] = reason;
  json["hint"] = hint.empty() ? Json(nullptr) : Json(hint);
}

/// Every key, in order, with nothing known.
Json empty_line(const study::SweepPoint& point) {
  Json json = {{"schema", "scapesim.sweep/1"}, {"point", point.number}};
  if (!point.series.empty()) json["series"] = point.series;
  json["axes"] = Json::object();
  for (const auto& [key, value] : point.axes) json["axes"][key] = value_json(value);
  for (const char* key : {"status", "reason", "hint"}) json[key] = nullptr;
  json["scenario"] = {{"name", point.scenario}, {"hash", nullptr}};
  json["gpus"] = point.gpus;
  for (const char* key :
       {"step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_s", "mfu", "breakdown_s",
        "overlap_fraction", "memory_B", "energy_J", "cost_usd"})
    json[key] = nullptr;
  json["warnings"] = Json::array();
  for (const char* key : {"calibration", "weakest_provenance", "version"}) json[key] = nullptr;
  return json;
}

/// A column and where its value stands in the line.
struct Column {
  const char* name;
  const char* key;
  const char* part = nullptr;
};
constexpr Column kColumns[] = {
    {"status", "status"},
    {"gpus", "gpus"},
    {"step_time_s", "step_time_s"},
    {"step_time_low_s", "step_time_low_s"},
    {"step_time_high_s", "step_time_high_s"},
    {"tokens_per_s", "tokens_per_s"},
    {"mfu", "mfu"},
    {"compute_s", "breakdown_s", "compute"},
    {"optimizer_s", "breakdown_s", "optimizer"},
    {"exposed_communication_s", "breakdown_s", "exposed_communication"},
    {"copy_s", "breakdown_s", "copy"},
    {"host_s", "breakdown_s", "host"},
    {"bubble_s", "breakdown_s", "bubble"},
    {"overlap_fraction", "overlap_fraction"},
    {"memory_total_B", "memory_B", "total"},
    {"memory_context_B", "memory_B", "context"},
    {"memory_capacity_B", "memory_B", "capacity"},
    {"energy_J", "energy_J"},
    {"cost_usd", "cost_usd"},
    {"hash", "scenario", "hash"},
    {"calibration", "calibration"},
    {"weakest_provenance", "weakest_provenance"},
    {"version", "version"},
    {"reason", "reason"},
    {"hint", "hint"},
};

std::string cell(const Json& value) {
  if (value.is_null()) return "";
  return csv_cell(value.is_string() ? value.get<std::string>() : text_of(value));
}

std::string cell(const Json& line, const Column& column) {
  const Json& value = line.at(column.key);
  if (column.part == nullptr || value.is_null()) return cell(value);
  return cell(value.at(column.part));
}

std::string header_of(const std::string& text) {
  std::string header = "point,series";
  if (!text.empty()) {
    const Json line = Json::parse(text);
    for (const auto& [axis, value] : line.at("axes").items()) header += "," + csv_cell(axis);
  }
  for (const Column& column : kColumns) header += std::string(",") + column.name;
  return header;
}

std::string row_of(const Json& line) {
  std::string row = cell(line.at("point")) + "," + cell(line.value("series", Json(nullptr)));
  for (const auto& [key, value] : line.at("axes").items()) row += "," + cell(value);
  for (const Column& column : kColumns) row += "," + cell(line, column);
  return row;
}

SweepSummary::Best best_of(const Json& line, double value) {
  SweepSummary::Best best;
  best.point = line.at("point").get<std::uint64_t>();
  best.value = value;
  if (line.contains("series")) best.where = line.at("series").get<std::string>();
  for (const auto& [key, axis] : line.at("axes").items()) {
    if (!best.where.empty()) best.where += ", ";
    best.where += key + "=" + (axis.is_string() ? axis.get<std::string>() : text_of(axis));
  }
  return best;
}

void count(const Json& line, SweepSummary& summary) {
  const auto status = line.at("status").get<std::string>();
  if (status == "infeasible") ++summary.infeasible;
  if (status == "refused") {
    ++summary.refused;
    if (summary.first_refusal.empty()) summary.first_refusal = line.at("reason");
  }
  if (status != "done") return;
  ++summary.done;
  const double step = line.at("step_time_s"), tokens = line.at("tokens_per_s");
  if (!summary.shortest_step || step < summary.shortest_step->value)
    summary.shortest_step = best_of(line, step);
  if (!summary.most_tokens || tokens > summary.most_tokens->value)
    summary.most_tokens = best_of(line, tokens);
}

Json best_json(const std::optional<SweepSummary::Best>& best) {
  if (!best) return nullptr;
  return {{"point", best->point}, {"value", number(best->value)}, {"where", best->where}};
}

}  // namespace

std::string sweep_line(const study::SweepPoint& point) {
  Json json = empty_line(point);
  if (const auto* run = std::get_if<result::Run>(&point.outcome)) {
    add_run(*run, json);
  } else if (const auto* infeasible = std::get_if<result::Infeasible>(&point.outcome)) {
    add_reason("infeasible", infeasible->reason, infeasible->hint, json);
    add_memory(infeasible->memory, json);
  } else {
    const auto& refused = std::get<study::Refused>(point.outcome);
    add_reason("refused", refused.reason, refused.hint, json);
  }
  return text_of(json);
}

study::CsvForm sweep_csv(SweepSummary& summary) {
  return {header_of, [&summary](const std::string& text) {
            const Json line = Json::parse(text);
            count(line, summary);
            return row_of(line);
          }};
}

std::string sweep_text(const std::string& name, const SweepSummary& summary) {
  const std::uint64_t points = summary.done + summary.infeasible + summary.refused;
  std::string text = fmt::format("{}: {} points: {} done, {} infeasible, {} refused\n", name,
                                 points, summary.done, summary.infeasible, summary.refused);
  if (summary.shortest_step)
    text +=
        fmt::format("  shortest step  {:.4g} s at {} (point {})\n", summary.shortest_step->value,
                    summary.shortest_step->where, summary.shortest_step->point);
  if (summary.most_tokens)
    text += fmt::format("  most tokens/s  {:.0f} at {} (point {})\n", summary.most_tokens->value,
                        summary.most_tokens->where, summary.most_tokens->point);
  if (!summary.first_refusal.empty())
    text += fmt::format("  first refusal  {}\n", summary.first_refusal);
  return text;
}

std::string sweep_json(const std::string& name, const SweepSummary& summary) {
  const Json json = {{"schema", "scapesim.sweep-summary/1"},
                     {"name", name},
                     {"points", summary.done + summary.infeasible + summary.refused},
                     {"done", summary.done},
                     {"infeasible", summary.infeasible},
                     {"refused", summary.refused},
                     {"shortest_step_s", best_json(summary.shortest_step)},
                     {"most_tokens_per_s", best_json(summary.most_tokens)}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace scapesim::reports
