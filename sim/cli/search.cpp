// SPDX-License-Identifier: Apache-2.0
// scapesim search: the best legal split of a model over GPUs.
#include "reports/search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <optional>

#include "reports/text.hpp"
#include "sim/base/error.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/study/workers.hpp"

namespace scapesim::cli {
namespace {

struct Options {
  ScenarioOptions scenario;
  FormatOptions format;
  std::optional<std::string> gpus;
  std::string objective = "time";
  std::vector<std::string> keep;
  int top = 5;
  int jobs = study::usable_processors();
};

study::Objective objective_of(const std::string& word) {
  if (const auto found = find_named<study::Objective>(word)) return *found;
  std::vector<std::string_view> known;
  for (const auto& row : names<study::Objective>()) known.push_back(row.name);
  refuse("--objective", fmt::format("\"{}\" is not an objective", word), did_you_mean(word, known));
}

Output search(const Options& options) {
  study::SearchOptions how{.gpus = {},
                           .objective = objective_of(options.objective),
                           .top = static_cast<std::size_t>(options.top),
                           .held = held_keys(options.keep),
                           .jobs = options.jobs};
  if (options.gpus) how.gpus = parse_counts(*options.gpus, "--gpus");
  const std::vector<study::Series> list =
      load_series(options.scenario,
                  options.gpus ? scenario::GpuCount::told_later : scenario::GpuCount::of_file);
  if (list.size() != 1)
    refuse("--series", fmt::format("{} has {} series", options.scenario.file, list.size()),
           "choose one");
  how.predict = predict_options(options.scenario, engine::Driver::standalone);
  const study::SearchResult result = study::search(list.front(), how);
  Output output;
  const bool json = options.format.format() == Format::json;
  output.text =
      json ? reports::search_json(result) : reports::search_text(result, options.scenario.file);
  if (!json && !result.best.empty())
    output.notes = reports::warning_notes(result.best.front().run.warnings);
  if (result.best.empty()) output.code = kInfeasible;
  return output;
}

}  // namespace

Action declare_search(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_scenario(app, options->scenario);
  app.add_option("--gpus", options->gpus,
                 "Numbers of GPUs to choose from, e.g. --gpus 1024 (default: the file's)")
      ->type_name("N,N,...");
  app.add_option("--objective", options->objective,
                 "What the best split has least of: time of a step, memory of the fullest GPU, or "
                 "cost of a step (default: time)")
      ->type_name("time|memory|cost");
  app.add_option("--top", options->top, "How many of the best to show (default: 5)")
      ->check(CLI::Range(1, 1000))
      ->type_name("K");
  app.add_option("--keep", options->keep,
                 "A key that keeps the file's value, as often as needed, e.g. --keep "
                 "strategy.sharding. Varied otherwise: tp, pp, cp, ep, sequence_parallel, "
                 "tensor_overlap, schedule and virtual_stages of [parallelism], micro_batch, "
                 "recompute and recompute_layers of [training], strategy.sharding")
      ->type_name("KEY")
      ->allow_extra_args(false);
  app.add_option("--jobs", options->jobs,
                 "Threads to work on (default: all processors); the result does not depend on them")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  add_json(app, options->format);
  app.footer("Example: scapesim search scenarios/gpt3-175b-1024.toml --gpus 1024 --top 10");
  return [options] { return search(*options); };
}

}  // namespace scapesim::cli
