// SPDX-License-Identifier: Apache-2.0
// scapesim sensitivity: what a step time depends on, and how short it could be.
#include "reports/sensitivity.hpp"

#include <fmt/format.h>
#include <memory>

#include "reports/text.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/study/sensitivity.hpp"

namespace scapesim::cli {
namespace {

struct Options {
  ScenarioOptions scenario;
  FormatOptions format;
  std::string change = "10%";
};

/// Options of a study file, which says all by itself; a scenario leaves those of the call.
Options with_study(Options options) {
  using enum scenario::StudyKey::Type;
  static constexpr scenario::StudyKey kKeys[] = {
      {"scenario", text}, {"set", texts}, {"series", text}, {"interval", text}, {"change", text}};
  const auto study = scenario::read_study(options.scenario.file, "sensitivity", kKeys);
  if (!study) return options;
  take_scenario(*study, options.scenario);
  if (!study->text("change").empty()) options.change = study->text("change");
  return options;
}

Output sensitivity(const Options& given) {
  const Options options = with_study(given);
  const double change = share_of(options.change, "--change");
  if (change >= 1) refuse("--change", "100 % less is nothing", "for example 10%");
  std::vector<study::Sensitivity> results;
  std::vector<study::Point> points;
  for (const study::Series& series : load_series(options.scenario)) {
    results.push_back(study::sensitivity(
        series, change, predict_options(options.scenario, engine::Driver::standalone)));
    points.push_back(results.back().point);
  }
  Output output;
  const Format format = options.format.format();
  if (format == Format::json) output.text = reports::sensitivity_json(results);
  if (format == Format::csv) output.text = reports::sensitivity_csv(results);
  if (format == Format::text) {
    for (const study::Sensitivity& result : results)
      output.text += (output.text.empty() ? "" : "\n") + reports::sensitivity_text(result);
    output.notes = reports::warning_notes(points);
  }
  if (study::all_infeasible(points)) output.code = kInfeasible;
  return output;
}

}  // namespace

Action declare_sensitivity(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_scenario(app, options->scenario);
  app.add_option("--change", options->change,
                 "By how much every parameter is made larger and smaller (default: 10%)")
      ->type_name("SHARE");
  add_json_and_csv(app, options->format);
  app.footer(
      "Example: scapesim sensitivity scenarios/vista-llama-1.8b-ndr.toml --series AdamS\n"
      "Elasticity: relative change of the step over that of the parameter, a central difference of "
      "simulated steps 0.1 % to both sides.");
  return [options] { return sensitivity(*options); };
}

}  // namespace scapesim::cli
