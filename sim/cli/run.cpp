// SPDX-License-Identifier: Apache-2.0
// scapesim run: one training step of every series.
#include <fmt/format.h>
#include <memory>

#include "reports/csv.hpp"
#include "reports/json.hpp"
#include "reports/text.hpp"
#include "reports/trace.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/predict/ramp.hpp"

namespace scapesim::cli {
namespace {

struct Options {
  ScenarioOptions scenario;
  FormatOptions format;
  std::string trace;
  std::string result;
  std::string explain;
  bool dry_run = false;
};

/// What would be predicted, after all checks of the input.
std::string dry_run(const std::vector<study::Series>& list, Format format) {
  reports::Listing listing{.columns = {"scenario", "series", "hash", "gpus", "data_parallel",
                                       "micro_batches", "calibration"},
                           .rows = {}};
  for (const study::Series& s : list)
    listing.rows.push_back({s.scenario.name, s.scenario.series, s.scenario.hash,
                            fmt::format("{}", s.scenario.cluster.gpus),
                            fmt::format("{}", spec::data_parallel_size(s.scenario)),
                            fmt::format("{}", spec::micro_batches(s.scenario)), s.profile.id});
  return format == Format::json ? reports::listing_json("dry-run", listing)
                                : reports::listing_text(listing);
}

std::string report(const Options& options, const std::vector<study::Point>& points,
                   const std::vector<reports::Explanation>& explanations) {
  switch (options.format.format()) {
    case Format::json:
      return reports::runs_json(points, explanations);
    case Format::csv:
      return reports::points_csv(points);
    case Format::text:
      break;
  }
  if (explanations.empty()) return reports::runs_text(points);
  std::string text;
  for (std::size_t i = 0; i < points.size(); ++i)
    text += (i == 0 ? "" : "\n") + reports::explanation_text(points[i], explanations[i]);
  return text;
}

Output run(const Options& options) {
  if (!options.explain.empty() && options.explain != "step_time")
    refuse("--explain", fmt::format("\"{}\" cannot be explained", options.explain),
           "known: step_time");
  if (!options.explain.empty() && options.format.csv)
    refuse("--explain", "the rows of --csv hold no terms", "take --json or the text");
  check_output("--trace", options.trace, {options.scenario.file});
  check_output("--result", options.result, {options.scenario.file});
  const std::vector<study::Series> list = load_series(options.scenario);
  if (options.dry_run) return {.text = dry_run(list, options.format.format())};
  const PredictOptions how = predict_options(options.scenario, engine::Driver::simgrid);
  std::vector<study::Point> points;
  std::vector<Prediction> predictions;
  std::vector<reports::Explanation> explanations;
  std::vector<reports::StepDetails> details;
  for (const study::Series& s : list) {
    Prediction prediction = predict(s.scenario, s.profile, how);
    if (auto* run = std::get_if<result::Run>(&prediction.outcome))
      run->ramp = ramp_of(s.scenario, s.profile, *run);
    points.push_back(
        {s.scenario.name, s.scenario.series, s.scenario.cluster.gpus, prediction.outcome});
    if (!options.explain.empty())
      explanations.push_back(reports::explain_step_time(prediction.outcome, s.profile));
    if (!options.result.empty())
      details.push_back(reports::step_details(prediction, s.scenario, s.profile));
    if (!options.trace.empty()) predictions.push_back(std::move(prediction));
  }
  Output output{.text = report(options, points, explanations)};
  if (options.format.format() == Format::text) output.notes = reports::warning_notes(points);
  if (!options.result.empty())
    output.files.push_back(
        {options.result,
         reports::run_result_json(points, details, sources_of(options.scenario, list))});
  if (study::all_infeasible(points))
    output.code = kInfeasible;
  else if (!options.trace.empty())
    output.files.push_back({options.trace, reports::chrome_trace(predictions)});
  return output;
}

}  // namespace

Action declare_run(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_scenario(app, options->scenario);
  add_json_and_csv(app, options->format);
  add_file(app, "--trace", options->trace,
           "Write all simulated steps in Chrome trace format (opens in ui.perfetto.dev), "
           "e.g. --trace step.json")
      ->type_name("FILE");
  add_file(
      app, "--result", options->result,
      "Write the result for `scapesim report`: as --json, with the scenario's text, the numbers "
      "behind it, and operations and kernels of one step")
      ->type_name("FILE");
  app.add_option("--explain", options->explain,
                 "Show the terms that sum to a metric, their formulas (MODEL.md) and calibration "
                 "rows; METRIC: step_time")
      ->type_name("METRIC");
  app.add_flag("--dry-run", options->dry_run, "Only check the input and say what would run");
  app.footer("Example: scapesim run scenarios/vista-llama-1.8b.toml --set cluster.gpus=32");
  return [options] { return run(*options); };
}

}  // namespace scapesim::cli
