// SPDX-License-Identifier: Apache-2.0
// scapesim breakeven: where each series stops paying against a baseline.
#include "reports/breakeven.hpp"

#include <fmt/format.h>
#include <memory>

#include "reports/text.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/cli/progress.hpp"
#include "sim/study/workers.hpp"

namespace scapesim::cli {
namespace {

struct Options {
  ScenarioOptions scenario;
  FormatOptions format;
  std::string against;
  bool weak = false;
  int most_gpus = 0;
  int jobs = study::usable_processors();
  std::string tokens;
};

std::vector<study::Point> points_of(const study::BreakEvenStudy& study) {
  std::vector<study::Point> points;
  for (const study::BreakEven& row : study.rows)
    points.push_back({study.scenario, row.series, study.gpus, row.outcome});
  return points;
}

Output breakeven(const Options& options) {
  std::vector<study::Series> list = load_series(options.scenario);
  if (list.size() < 2)
    refuse("SCENARIO", "has one series, there is nothing to hold it against",
           "give it [[variant]] tables, the baseline first, and leave --series out");
  std::vector<study::Convergence> convergence;
  if (!options.tokens.empty()) convergence = study::load_convergence(options.tokens);
  study::apply(convergence, list);
  const std::string baseline =
      options.against.empty() ? list.front().scenario.series : options.against;
  study::BreakEvenOptions study_options;
  study_options.scaling = options.weak ? study::Scaling::weak : study::Scaling::strong;
  study_options.most_gpus = options.most_gpus;
  study_options.predict = {.driver = engine::Driver::standalone, .interval_draws = 0};
  study_options.jobs = options.jobs;
  Progress progress(0, study::samples_of(list), "places");
  study_options.sampled = [&] { progress.finished_one(), progress.show(); };
  const study::BreakEvenStudy study = study::break_even(list, baseline, study_options);
  const std::vector<study::Point> points = points_of(study);

  Output output;
  output.text =
      options.format.json ? reports::breakeven_json(study) : reports::breakeven_text(study);
  for (const study::Convergence& row : convergence)
    output.notes.push_back(fmt::format("note: {} needs {:.3g} times the tokens: {} ({})",
                                       name_of(row.method), row.tokens_to_loss, row.setting,
                                       row.source));
  if (!options.format.json) output.notes = reports::warning_notes(points);
  if (study::all_infeasible(points)) output.code = kInfeasible;
  return output;
}

}  // namespace

Action declare_breakeven(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_scenario(app, options->scenario);
  app.add_option("--against", options->against,
                 "Name of the variant that the others are held against (default: the first)")
      ->type_name("SERIES");
  app.add_flag("--weak", options->weak,
               "Over GPUs the global batch grows with them (default: it stays)");
  app.add_option("--max-gpus", options->most_gpus,
                 "Largest number of GPUs to try (default: 64 times the scenario's, the cluster's "
                 "at most)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--jobs", options->jobs,
                 "Threads to work on (default: all processors); the result does not depend on them")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  add_file(app, "--tokens-to-loss", options->tokens,
           "CSV with columns method,tokens_to_loss,setting,source for series that do not set "
           "strategy.tokens_to_loss; the word published takes what the methods' papers report")
      ->type_name("FILE.csv");
  add_json(app, options->format);
  app.footer(
      "For every [[variant]] against the baseline: how many times the baseline's tokens it may "
      "need "
      "before its speed is eaten, and up to which network speed and number of GPUs it pays, found "
      "by bisection. Links between nodes and the profile's transport are varied from 1/64 to 64 "
      "times their speed, latencies stay; within 0.1 % everywhere is level; at most 4 of "
      "jitter.steps are drawn at each place. strategy.tokens_to_loss = 1.05 says that a series "
      "needs "
      "5 "
      "% more tokens to the same loss; series are ranked by time to loss.\n"
      "Example: scapesim breakeven scenarios/methods-comparison.toml");
  return [options] { return breakeven(*options); };
}

}  // namespace scapesim::cli
