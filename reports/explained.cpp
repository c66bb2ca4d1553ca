// SPDX-License-Identifier: Apache-2.0
#include "reports/explained.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "reports/table.hpp"

namespace scapesim::reports {
namespace {

using Json = nlohmann::ordered_json;

std::string difference(Seconds measured, Seconds predicted) {
  return predicted > Seconds(0) ? signed_percent(measured / predicted - 1) : "";
}

Json or_null(const std::optional<Seconds>& time) { return time ? Json(time->si()) : Json(nullptr); }

}  // namespace

std::string explained_text(const study::Explained& explained) {
  const TimeUnit unit = unit_for(std::max(explained.measured, explained.predicted));
  std::vector<std::vector<std::string>> rows;
  for (const study::ExplainedTerm& term : explained.terms)
    rows.push_back(
        {term.name, term.predicted ? in_unit(*term.predicted, unit) : "",
         term.measured ? in_unit(*term.measured, unit) : "",
         term.predicted && term.measured ? in_unit(*term.measured - *term.predicted, unit) : "",
         term.cause});
  const bool inside = explained.low <= explained.measured && explained.measured <= explained.high;
  const std::string interval =
      explained.low == explained.high
          ? ""
          : fmt::format(" (90 % interval {} - {}, measured {})", in_unit(explained.low, unit),
                        in_unit(explained.high, unit), inside ? "inside" : "outside");
  std::string out = fmt::format(
      "{} on {} GPUs, calibration {}, against {} ({})\n\n"
      "step: predicted {} {}{}, measured {} {}, {}\n\n",
      explained.scenario, explained.gpus, explained.calibration, explained.file, explained.format,
      in_unit(explained.predicted, unit), unit.name, interval, in_unit(explained.measured, unit),
      unit.name, difference(explained.measured, explained.predicted));
  const std::string in(unit.name);
  out += table({{"part", Align::left},
                {"predicted " + in},
                {"measured " + in},
                {"difference"},
                {"usual cause", Align::left}},
               rows);
  for (const std::string& note : explained.notes) out += "\n" + note + "\n";
  return out;
}

std::string explained_json(const study::Explained& explained) {
  Json terms = Json::array();
  for (const study::ExplainedTerm& term : explained.terms)
    terms.push_back({{"name", term.name},
                     {"predicted_s", or_null(term.predicted)},
                     {"measured_s", or_null(term.measured)},
                     {"cause", term.cause}});
  const Json document = {{"schema", "scapesim.explain/1"},
                         {"scenario", explained.scenario},
                         {"calibration", explained.calibration},
                         {"file", explained.file},
                         {"format", explained.format},
                         {"gpus", explained.gpus},
                         {"predicted_s", explained.predicted.si()},
                         {"predicted_low_s", explained.low.si()},
                         {"predicted_high_s", explained.high.si()},
                         {"measured_s", explained.measured.si()},
                         {"terms", terms},
                         {"notes", explained.notes}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace scapesim::reports
