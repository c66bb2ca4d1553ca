// SPDX-License-Identifier: Apache-2.0
#include "reports/json.hpp"

#include "reports/json_parts.hpp"
#include "sim/base/version.hpp"

namespace scapesim::reports {
namespace {

using parts::Json;
using parts::number;
using parts::or_null;
using parts::text_of;

Json breakdown_json(const result::Breakdown& b) {
  return {{"compute", number(b.compute)},
          {"optimizer", number(b.optimizer)},
          {"exposed_communication", number(b.exposed_communication)},
          {"copy", number(b.copy)},
          {"host", number(b.host)},
          {"bubble", number(b.bubble)}};
}

/// Whole numbers as such: below one call per step only where steps are local.
Json count_json(double count) {
  const auto whole = static_cast<std::int64_t>(count);
  return static_cast<double>(whole) == count ? Json(whole) : Json(count);
}

Json communication_json(const std::vector<result::Communication>& rows) {
  Json list = Json::array();
  for (const result::Communication& row : rows)
    list.push_back({{"name", row.name},
                    {"collective", row.collective},
                    {"group_size", row.group_size},
                    {"count", count_json(row.count)},
                    {"bytes_B", number(row.bytes)},
                    {"busbw_Bps", number(row.busbw)},
                    {"time_s", number(row.time)},
                    {"exposed_s", number(row.exposed)},
                    {"algorithm", row.algorithm},
                    {"protocol", row.protocol}});
  return list;
}

Json fleet_json(const result::Fleet& fleet) {
  return {{"slowest_over_mean", number(fleet.slowest)},
          {"overlap_slowdown", number(fleet.overlap_slowdown)},
          {"beside_collectives_s", number(fleet.beside)}};
}

Json uneven_json(const result::Uneven& u) {
  return {{"even_step_time_s", number(u.even)},
          {"slowdown", number(u.mean / u.even)},
          {"steps", u.steps},
          {"deviation_s", number(u.deviation)},
          {"shortest_s", number(u.shortest)},
          {"longest_s", number(u.longest)},
          {"pipelines", u.pipelines}};
}

Json evaluation_json(const result::Evaluation& e) {
  return {{"interval", e.interval},
          {"iterations", e.iterations},
          {"iteration_time_s", number(e.iteration)},
          {"time_s", number(e.all())}};
}

Json ramp_json(const std::vector<result::RampRow>& rows) {
  Json list = Json::array();
  for (const result::RampRow& row : rows)
    list.push_back({{"global_batch", row.batch},
                    {"steps", row.steps},
                    {"step_time_s", number(row.step_time)}});
  return list;
}

/// What is trained on what, where that is not all of the model on whole sequences.
void add_data(Json& json, const result::Run& run) {
  if (run.trained)
    json["trained"] = {{"parameters", run.trained->parameters}, {"of", run.trained->all}};
  if (run.documents)
    json["documents"] = {{"useful_share", number(run.documents->useful)},
                         {"reach_tokens", number(run.documents->reach)},
                         {"slowest_over_mean", number(run.documents->slowest)}};
  if (run.evaluation) json["evaluation"] = evaluation_json(*run.evaluation);
  if (!run.ramp.empty()) json["batch_ramp"] = ramp_json(run.ramp);
}

Json memory_json(const result::Memory& m) {
  return {{"parameters", number(m.parameters)},
          {"gradients", number(m.gradients)},
          {"optimizer", number(m.optimizer)},
          {"strategy", number(m.strategy)},
          {"activations", number(m.activations)},
          {"temporary", number(m.temporary)},
          {"total", number(m.total)},
          {"context", number(m.context)},
          {"capacity", number(m.capacity)}};
}

Json warnings_json(std::span<const result::Warning> warnings) {
  Json list = Json::array();
  for (const result::Warning& w : warnings)
    list.push_back({{"code", w.code}, {"message", w.message}});
  return list;
}

Json run_json(const result::Run& run) {
  const auto bound = [&](Seconds t) { return run.has_interval ? number(t) : Json(nullptr); };
  Json json = {{"schema", "scapesim.run/1"},
               {"scenario", {{"name", run.scenario}, {"hash", run.hash}}}};
  if (!run.series.empty()) json["series"] = run.series;
  json["calibration"] = {{"id", run.calibration}, {"weakest_provenance", run.weakest_provenance}};
  json["version"] = run.version;
  json["gpus"] = run.gpus;
  json["step_time_s"] = number(run.step_time);
  json["step_time_low_s"] = bound(run.step_time_low);
  json["step_time_high_s"] = bound(run.step_time_high);
  json["interval_level"] = number(run.interval_level);
  json["tokens_per_s"] = number(run.tokens_per_second);
  json["mfu"] = number(run.mfu);
  json["efficiency"] = or_null(run.efficiency);
  json["breakdown_s"] = breakdown_json(run.breakdown);
  json["communication"] = communication_json(run.communication);
  json["overlap_fraction"] = or_null(run.overlap_fraction);
  if (run.fleet.slowest > 1 || run.fleet.overlap_slowdown > 0)
    json["fleet"] = fleet_json(run.fleet);
  if (run.uneven) json["uneven"] = uneven_json(*run.uneven);
  add_data(json, run);
  json["memory_B"] = memory_json(run.memory);
  json["energy_J"] = or_null(run.energy);
  json["cost_usd"] = or_null(run.cost);
  json["warnings"] = warnings_json(run.warnings);
  return json;
}

Json infeasible_json(const result::Infeasible& infeasible) {
  const auto bytes = [](Bytes b) { return b > Bytes(0) ? number(b) : Json(nullptr); };
  return {{"reason", infeasible.reason},
          {"need", bytes(infeasible.need)},
          {"have", bytes(infeasible.have)},
          {"hint", infeasible.hint}};
}

/// A point of several: an infeasible one says which it is.
Json point_json(const study::Point& point) {
  if (const result::Run* run = study::run_of(point)) return run_json(*run);
  Json json = {{"schema", "scapesim.run/1"}, {"scenario", {{"name", point.scenario}}}};
  if (!point.series.empty()) json["series"] = point.series;
  json["gpus"] = point.gpus;
  json["infeasible"] = infeasible_json(std::get<result::Infeasible>(point.outcome));
  return json;
}

Json calibration_row_json(const CalibrationRow& r) {
  return {{"key", r.key},         {"kind", r.kind},         {"value", number(r.value)},
          {"low", number(r.low)}, {"high", number(r.high)}, {"provenance", r.provenance},
          {"source", r.source}};
}

Json explanation_json(const Explanation& explanation) {
  Json terms = Json::array(), rows = Json::array();
  for (const result::Term& t : explanation.terms)
    terms.push_back({{"name", t.name},
                     {"time_s", number(t.time)},
                     {"formula", t.formula},
                     {"calibration", patterns_in(t.calibration)}});
  for (const CalibrationRow& r : explanation.calibration) rows.push_back(calibration_row_json(r));
  return {{"metric", "step_time"}, {"terms", terms}, {"calibration", rows}};
}

Json sources_json(const Sources& sources) {
  Json rows = Json::array();
  for (const cost::Profile& profile : sources.calibrations)
    for (const CalibrationRow& row : calibration_rows(profile, all_keys(profile))) {
      Json json = {{"calibration", profile.id}};
      json.update(calibration_row_json(row));
      rows.push_back(std::move(json));
    }
  return {{"scenario", {{"file", sources.file}, {"text", sources.text}, {"set", sources.set}}},
          {"calibration", rows}};
}

Json against_json(const study::Scale& scale, std::span<const study::Comparison> against) {
  const auto efficiencies = study::measured_efficiencies(scale, against);
  Json list = Json::array();
  for (std::size_t i = 0; i < against.size(); ++i) {
    const study::Comparison& c = against[i];
    list.push_back({{"series", c.measured.series},
                    {"gpus", c.measured.gpus},
                    {"metric", c.measured.metric},
                    {"measured", number(c.measured.value)},
                    {"predicted", or_null(c.predicted)},
                    {"error", or_null(study::error_of(c))}});
    if (efficiencies[i]) list.back()["measured_efficiency"] = number(*efficiencies[i]);
  }
  return list;
}

}  // namespace

std::string runs_json(std::span<const study::Point> points,
                      std::span<const Explanation> explanations) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < points.size(); ++i) {
    Json run = point_json(points[i]);
    if (i < explanations.size() && study::run_of(points[i]) != nullptr)
      run["explain"] = explanation_json(explanations[i]);
    runs.push_back(std::move(run));
  }
  if (points.size() != 1) return text_of({{"schema", "scapesim.run-set/1"}, {"runs", runs}});
  if (const auto* infeasible = std::get_if<result::Infeasible>(&points[0].outcome))
    return text_of({{"schema", "scapesim.run/1"}, {"infeasible", infeasible_json(*infeasible)}});
  return text_of(runs[0]);
}

std::string run_result_json(std::span<const study::Point> points,
                            std::span<const StepDetails> details, const Sources& sources) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < points.size(); ++i) {
    Json run = point_json(points[i]);
    if (study::run_of(points[i]) != nullptr) run.update(step_details_json(details[i]));
    runs.push_back(std::move(run));
  }
  if (runs.size() == 1) {
    runs[0]["sources"] = sources_json(sources);
    return text_of(runs[0]);
  }
  return text_of(
      {{"schema", "scapesim.run-set/1"}, {"runs", runs}, {"sources", sources_json(sources)}});
}

std::string scale_json(const study::Scale& scale, std::span<const study::Comparison> against,
                       const Sources* sources) {
  Json points = Json::array();
  for (const study::Point& point : scale.points) points.push_back(point_json(point));
  Json json = {{"schema", "scapesim.scale/1"}, {"points", points}};
  if (scale.scaling == study::Scaling::weak) json["scaling"] = "weak";
  if (!against.empty()) json["against"] = against_json(scale, against);
  if (sources != nullptr) json["sources"] = sources_json(*sources);
  return text_of(json);
}

namespace {

Json collective_rows_json(std::span<const CollectiveTime> rows) {
  Json list = Json::array();
  for (const CollectiveTime& row : rows)
    list.push_back({{"size_B", number(row.size)},
                    {"time_s", number(row.time)},
                    {"algbw_Bps", number(row.algbw)},
                    {"busbw_Bps", number(row.busbw)},
                    {"algorithm", row.algorithm},
                    {"protocol", row.protocol.empty() ? Json(nullptr) : Json(row.protocol)}});
  return list;
}

}  // namespace

std::string collective_json(std::span<const CollectiveTime> rows,
                            std::span<const result::Warning> warnings) {
  return text_of({{"schema", "scapesim.collective/1"},
                  {"rows", collective_rows_json(rows)},
                  {"warnings", warnings_json(warnings)}});
}

std::string collective_result_json(const study::CollectiveStudy& study) {
  Json measured = Json::array();
  for (const study::MeasuredCollective& row : study.measured)
    measured.push_back({{"size_B", number(row.size)},
                        {"time_s", number(row.time)},
                        {"busbw_Bps", number(row.busbw)},
                        {"predicted_s", number(row.predicted)},
                        {"predicted_busbw_Bps", number(row.predicted_busbw)},
                        {"error", number(row.predicted / row.time - 1)},
                        {"source", row.source}});
  Json json = {{"schema", "scapesim.collective/1"},
               {"collective", name_of(study.kind)},
               {"cluster", study.cluster},
               {"gpus", study.gpus}};
  json["calibration"] =
      study.calibration.empty()
          ? Json(nullptr)
          : Json({{"id", study.calibration}, {"weakest_provenance", study.weakest_provenance}});
  json["version"] = version();
  json["rows"] = collective_rows_json(study.table.rows);
  json["measured"] = measured;
  json["warnings"] = warnings_json(study.table.warnings);
  return text_of(json);
}

std::string validation_json(const study::Validation& validation) {
  Json rows = Json::array(), groups = Json::array(), checks = Json::array();
  for (const study::ValidationRow& r : validation.rows)
    rows.push_back({{"model", r.model},
                    {"series", r.series},
                    {"gpus", r.gpus},
                    {"metric", r.metric},
                    {"measured", number(r.measured)},
                    {"predicted", or_null(r.predicted)},
                    {"error", or_null(study::error_of(r))}});
  for (const study::ValidationGroup& g : validation.groups)
    groups.push_back({{"method", g.method},
                      {"metric", g.metric},
                      {"rows", g.rows},
                      {"mean_error", number(g.mean_error)},
                      {"worst_error", number(g.worst_error)}});
  for (const study::ValidationCheck& c : validation.checks)
    checks.push_back({{"name", c.name},
                      {"help", c.help},
                      {"value", or_null(c.value)},
                      {"limit", number(c.limit)},
                      {"passed", c.passed}});
  return text_of({{"schema", "scapesim.validation/1"},
                  {"suite", validation.suite},
                  {"calibration", validation.calibration},
                  {"passed", validation.passed},
                  {"checks", checks},
                  {"groups", groups},
                  {"rows", rows}});
}

std::string listing_json(std::string_view what, const Listing& listing) {
  Json rows = Json::array();
  for (const auto& row : listing.rows) {
    Json object = Json::object();
    for (std::size_t i = 0; i < listing.columns.size(); ++i) object[listing.columns[i]] = row[i];
    rows.push_back(std::move(object));
  }
  return text_of({{"schema", "scapesim.list/1"}, {"what", what}, {"rows", rows}});
}

}  // namespace scapesim::reports
