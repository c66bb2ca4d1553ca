// SPDX-License-Identifier: Apache-2.0
// scapesim sensitivity: what a step time depends on, and how short it could be.
#include "reports/sensitivity.hpp"

#include <charconv>
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

/// 0.1 of "10%" or "0.1".
double change_of(std::string_view text) {
  const std::string_view whole = text;
  double scale = 1;
  if (text.ends_with('%')) {
    text.remove_suffix(1);
    scale = 100;
  }
  while (text.ends_with(' ')) text.remove_suffix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || !(value / scale > 0) ||
      !(value / scale < 1))
    refuse("--change", fmt::format("\"{}\" is not a share between 0 and 100 %", whole),
           "for example 10%");
  return value / scale;
}

Output sensitivity(const Options& options) {
  const double change = change_of(options.change);
  std::vector<study::Sensitivity> results;
  std::vector<study::Point> points;
  for (const study::Series& series : load_series(options.scenario)) {
    results.push_back(study::sensitivity(
        series, change, {.driver = engine::Driver::standalone, .interval_draws = 0}));
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
  add_scenario(app, options->scenario, Intervals::none);
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
