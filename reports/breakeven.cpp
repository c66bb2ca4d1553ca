// SPDX-License-Identifier: Apache-2.0
#include "reports/breakeven.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "reports/table.hpp"
#include "sim/base/unit_text.hpp"
#include "sim/base/version.hpp"

namespace scapesim::reports {
namespace {

using study::BreakEven;
using Json = nlohmann::ordered_json;

/// "up to 12.3 GB/s", "from 8, up to 64", "always", "never", "level".
template <class Text>
std::string where_it_pays(const study::Curve& curve, Text text) {
  if (curve.samples.empty()) return "-";
  if (study::is_level(curve)) return "level";
  if (curve.crossings.empty()) return curve.samples.front().ratio < 1 ? "always" : "never";
  std::vector<std::string> parts;
  for (const study::Crossing& crossing : curve.crossings)
    parts.push_back((crossing.pays_below ? "up to " : "from ") + text(crossing.at));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string network_text(double bytes_per_second) {
  return fmt::format("{:.3g}", bytes_per_second / 1e9);
}

/// A crossing over GPUs is the first count on its other side.
std::string gpus_cell(const study::Curve& curve) {
  study::Curve shown = curve;
  std::vector<std::string> parts;
  if (curve.samples.empty() || curve.crossings.empty())
    return where_it_pays(curve, [](double) { return std::string(); });
  for (const study::Crossing& crossing : curve.crossings)
    parts.push_back(fmt::format("{} {:.0f}", crossing.pays_below ? "below" : "from", crossing.at));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::vector<std::string> row_of(const BreakEven& row, const std::string& baseline, TimeUnit unit) {
  const auto* run = std::get_if<result::Run>(&row.outcome);
  const bool is_base = row.series == baseline;
  std::vector<std::string> cells = {row.series};
  if (run == nullptr) {
    cells.insert(cells.end(), {"infeasible", "", "", "", "", ""});
    return cells;
  }
  cells.push_back(in_unit(run->step_time, unit));
  cells.push_back(fmt::format("{:.3g}", row.tokens_to_loss));
  cells.push_back(row.ratio ? fmt::format("{:.3f}", *row.ratio) : "-");
  cells.push_back(is_base || !row.tokens_allowed ? "" : fmt::format("{:.3f}", *row.tokens_allowed));
  cells.push_back(is_base ? "baseline" : where_it_pays(row.network, network_text));
  cells.push_back(is_base ? "" : gpus_cell(row.gpus));
  return cells;
}

TimeUnit unit_of(const study::BreakEvenStudy& study) {
  Seconds longest;
  for (const BreakEven& row : study.rows)
    if (const auto* run = std::get_if<result::Run>(&row.outcome))
      longest = std::max(longest, run->step_time);
  return unit_for(longest);
}

Json curve_json(const study::Curve& curve, std::string_view key) {
  Json samples = Json::array(), crossings = Json::array();
  for (const study::Ratio& sample : curve.samples)
    samples.push_back({{std::string(key), sample.at}, {"ratio", sample.ratio}});
  for (const study::Crossing& crossing : curve.crossings)
    crossings.push_back(
        {{std::string(key), crossing.at}, {"pays", crossing.pays_below ? "below" : "above"}});
  const char* verdict = curve.samples.empty()             ? "unknown"
                        : study::is_level(curve)          ? "level"
                        : !curve.crossings.empty()        ? "crosses"
                        : curve.samples.front().ratio < 1 ? "always"
                                                          : "never";
  return {{"verdict", verdict}, {"crossings", crossings}, {"samples", samples}};
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json row_json(const BreakEven& row) {
  const auto* run = std::get_if<result::Run>(&row.outcome);
  Json json = {{"series", row.series},
               {"step_time_s", run == nullptr ? Json(nullptr) : Json(run->step_time.si())},
               {"tokens_to_loss", row.tokens_to_loss},
               {"time_to_loss_ratio", or_null(row.ratio)},
               {"tokens_allowed", or_null(row.tokens_allowed)},
               {"network", curve_json(row.network, "network_Bps")},
               {"gpus", curve_json(row.gpus, "gpus")}};
  if (const auto* infeasible = std::get_if<result::Infeasible>(&row.outcome))
    json["infeasible"] = infeasible->reason;
  return json;
}

}  // namespace

std::string breakeven_text(const study::BreakEvenStudy& study) {
  const TimeUnit unit = unit_of(study);
  std::vector<std::vector<std::string>> rows;
  for (const BreakEven& row : study.rows) rows.push_back(row_of(row, study.baseline, unit));
  const std::vector<Column> columns = {{"series", Align::left},
                                       {fmt::format("step {}", unit.name)},
                                       {"tokens x"},
                                       {"time to loss x"},
                                       {"pays below tokens x"},
                                       {"pays on GB/s per NIC"},
                                       {"pays on GPUs"}};
  std::string text = fmt::format(
      "{}: break-even against {}, {} GPU{}, NICs carry {} GB/s of a large collective\n\n",
      study.scenario, study.baseline, study.gpus, study.gpus == 1 ? "" : "s",
      network_text(study.network.si()));
  text += table(columns, rows);
  text += fmt::format(
      "\ntime to loss: step time x tokens to the same loss, over the baseline's; {} "
      "scaling over GPUs\n",
      study.scaling == study::Scaling::weak ? "weak" : "strong");
  return text +
         fmt::format("\nRests on\n  calibration {}\n  scapesim {}\n", study.calibration, version());
}

std::string breakeven_json(const study::BreakEvenStudy& study) {
  Json rows = Json::array();
  for (const BreakEven& row : study.rows) rows.push_back(row_json(row));
  const Json json = {{"schema", "scapesim.breakeven/1"},
                     {"scenario", study.scenario},
                     {"baseline", study.baseline},
                     {"calibration", study.calibration},
                     {"version", version()},
                     {"gpus", study.gpus},
                     {"scaling", study.scaling == study::Scaling::weak ? "weak" : "strong"},
                     {"network_Bps", study.network.si()},
                     {"rows", rows}};
  return json.dump(2) + "\n";
}

}  // namespace scapesim::reports
