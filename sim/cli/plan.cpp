// SPDX-License-Identifier: Apache-2.0
// scapesim plan: so many tokens by a deadline: how many GPUs, where, at what cost.
#include "reports/plan.hpp"

#include <cmath>
#include <fmt/format.h>
#include <memory>

#include "sim/base/count_text.hpp"
#include "sim/base/error.hpp"
#include "sim/base/unit_text.hpp"
#include "sim/cli/command.hpp"
#include "sim/cli/options.hpp"
#include "sim/cli/progress.hpp"
#include "sim/scenario/alter.hpp"
#include "sim/study/plan_search.hpp"
#include "sim/study/workers.hpp"

namespace scapesim::cli {
namespace {

struct Options {
  ScenarioOptions scenario;
  FormatOptions format;
  std::string tokens, deadline, budget, max_gpus, objective, clusters, utilisation, critical_batch;
  std::string gpus, effective_time;
  std::vector<std::string> vary, keep;
  bool search = false;
  int jobs = study::usable_processors();
};

/// Options of a study file, which says all by itself; a scenario leaves those of the call.
Options with_study(Options options) {
  using enum scenario::StudyKey::Type;
  static constexpr scenario::StudyKey kKeys[] = {
      {"scenario", text},       {"set", texts},           {"series", text}, {"interval", text},
      {"tokens", text},         {"deadline", text},       {"budget", text}, {"max_gpus", text},
      {"clusters", text},       {"objective", text},      {"vary", texts},  {"utilisation", text},
      {"effective_time", text}, {"critical_batch", text}, {"search", flag}, {"gpus", text},
      {"keep", texts}};
  const auto study = scenario::read_study(options.scenario.file, "plan", kKeys);
  if (!study) return options;
  std::pair<const char*, std::string*> texts_of[] = {{"tokens", &options.tokens},
                                                     {"deadline", &options.deadline},
                                                     {"budget", &options.budget},
                                                     {"max_gpus", &options.max_gpus},
                                                     {"clusters", &options.clusters},
                                                     {"objective", &options.objective},
                                                     {"utilisation", &options.utilisation},
                                                     {"effective_time", &options.effective_time},
                                                     {"critical_batch", &options.critical_batch},
                                                     {"gpus", &options.gpus}};
  for (const auto& [name, option] : texts_of) {
    if (!option->empty() || !options.vary.empty() || !options.keep.empty() || options.search)
      refuse("", fmt::format("{} is a study: it says its goal itself", options.scenario.file),
             "edit it, or give a scenario");
    *option = study->text(name);
  }
  options.vary = study->texts("vary");
  options.keep = study->texts("keep");
  options.search = study->flag("search");
  take_scenario(*study, options.scenario);
  return options;
}

double count_of(std::string_view text, const std::string& option) {
  const auto count = parse_count(text);
  if (!count)
    refuse(option, fmt::format("\"{}\" is not a count", text), "such as 300B, 1.5T or 2e12");
  return *count;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    words.emplace_back(text.substr(0, comma));
    if (comma == text.size()) return words;
    text.remove_prefix(comma + 1);
  }
}

study::Choice choice_of(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    refuse("--vary", fmt::format("\"{}\" is not KEY=V1,V2,...", text),
           "such as --vary parallelism.tp=1,2,4,8");
  return {text.substr(0, equals), words_of(std::string_view(text).substr(equals + 1))};
}

/// A cluster and the profile that describes it.
struct Place {
  std::string cluster;
  std::string profile;
};

Place place_of(const std::string& word, const study::Series& own) {
  const std::size_t colon = word.rfind(':');
  if (colon != std::string::npos) return {word.substr(0, colon), word.substr(colon + 1)};
  const spec::Cluster cluster = scenario::load_cluster(word);
  if (word == own.scenario.cluster.name) return {word, own.scenario.calibration.profile};
  if (const std::string usual = scenario::usual_profile(word); !usual.empty()) return {word, usual};
  if (cluster.gpu.name == own.scenario.cluster.gpu.name)
    return {word, own.scenario.calibration.profile};
  refuse("--clusters", fmt::format("no profile is known for {}", word),
         fmt::format("name one: {}:PROFILE; scapesim list calibrations", word));
}

std::vector<study::Series> series_of(const Options& options) {
  const std::vector<study::Series> own =
      load_series(options.scenario, scenario::GpuCount::told_later);
  if (options.clusters.empty()) return own;
  std::vector<study::Series> list;
  for (const std::string& word : words_of(options.clusters)) {
    const Place place = place_of(word, own.front());
    ScenarioOptions there = options.scenario;
    // The scenario's own cluster keeps what the file says of it beside its preset.
    if (place.cluster != own.front().scenario.cluster.name ||
        place.profile != own.front().scenario.calibration.profile)
      there.set.insert(there.set.begin(),
                       {"cluster.preset=" + place.cluster, "calibration.profile=" + place.profile});
    for (study::Series& series : load_series(there, scenario::GpuCount::told_later))
      list.push_back(std::move(series));
  }
  return list;
}

template <class Q, class Parse>
std::optional<Q> quantity_of(const std::string& text, const std::string& option, Parse parse) {
  if (text.empty()) return std::nullopt;
  const Parsed<Q> parsed = parse(text);
  if (const auto* problem = std::get_if<UnitProblem>(&parsed))
    refuse(option, problem->what, problem->hint);
  if (!(std::get<Q>(parsed) > Q(0))) refuse(option, "is not above 0", "");
  return std::get<Q>(parsed);
}

/// By cost where every place has a price; by GPU-hours, which are known, else.
study::PlanObjective objective_of(const Options& options,
                                  const std::vector<study::Series>& series) {
  const bool priced = std::ranges::all_of(
      series, [](const study::Series& s) { return s.scenario.cluster.gpu_price.has_value(); });
  if (options.objective.empty())
    return priced ? study::PlanObjective::cost : study::PlanObjective::gpu_hours;
  const auto found = find_named<study::PlanObjective>(options.objective);
  if (!found)
    refuse("--objective", fmt::format("\"{}\" is unknown", options.objective),
           did_you_mean(options.objective, all_names<study::PlanObjective>()));
  if (*found == study::PlanObjective::cost && !priced)
    refuse("--objective", "not every cluster states a price",
           "--set cluster.gpu_price=2.5USD/h, or rank by gpu-hours");
  return *found;
}

study::Goal goal_of(const Options& options, const std::vector<study::Series>& series) {
  study::Goal goal{.tokens = Tokens(count_of(options.tokens, "--tokens")),
                   .deadline = quantity_of<Seconds>(options.deadline, "--deadline", parse_seconds),
                   .objective = objective_of(options, series)};
  if (!options.budget.empty()) {
    std::string_view text = options.budget;
    if (text.ends_with("USD")) text.remove_suffix(3);
    goal.budget = Dollars(count_of(text, "--budget"));
    for (const study::Series& s : series)
      if (!s.scenario.cluster.gpu_price)
        refuse("--budget", fmt::format("{} states no price", s.scenario.cluster.name),
               "--set cluster.gpu_price=2.5USD/h");
  }
  if (!options.max_gpus.empty()) goal.most_gpus = parse_counts(options.max_gpus, "--max-gpus")[0];
  if (!options.critical_batch.empty())
    goal.critical_batch = Tokens(count_of(options.critical_batch, "--critical-batch"));
  const spec::Training& training = series.front().scenario.training;
  goal.base_batch = Tokens(static_cast<double>(training.global_batch * training.sequence));
  if (!options.utilisation.empty())
    goal.utilisation = share_of(options.utilisation, "--utilisation");
  goal.effective_time = options.effective_time.empty()
                            ? study::kEffectiveTime
                            : share_of(options.effective_time, "--effective-time");
  return goal;
}

/// What is planned over.
struct Field {
  std::vector<study::Series> series;
  std::vector<study::RunPlan> unfit = {};
  std::vector<std::string> notes = {};
  std::optional<study::SplitCounts> splits = {};
};

Field searched_field(const Options& options, const std::vector<study::Series>& series,
                     const std::vector<study::Choice>& choices, const study::Goal& goal) {
  study::PlanSearch how{.held = held_keys(options.keep), .jobs = options.jobs};
  if (!options.gpus.empty()) how.gpus = parse_counts(options.gpus, "--gpus");
  const std::vector<study::Series> list = study::to_search(series, choices, goal, how);
  Progress progress(0, list.size(), "searches");
  progress.show();
  how.searched = [&] { progress.finished_one(), progress.show(); };
  study::SearchedPlans plans = study::search_plans(list, choices, how);
  return {.series = std::move(plans.best),
          .unfit = std::move(plans.unfit),
          .notes = std::move(plans.notes),
          .splits = plans.counts};
}

Field field_of(const Options& options, const std::vector<study::Series>& series,
               const study::Goal& goal) {
  std::vector<study::Choice> choices;
  for (const std::string& text : options.vary) choices.push_back(choice_of(text));
  if (options.search) return searched_field(options, series, choices, goal);
  if (!options.gpus.empty() || !options.keep.empty())
    refuse(options.keep.empty() ? "--gpus" : "--keep", "goes with --search",
           "without it the split is the file's, and every size that divides the batch is planned");
  Field field;
  field.series = study::configurations(series, choices, goal, field.notes);
  return field;
}

Output plan(const Options& given) {
  const Options options = with_study(given);
  if (options.tokens.empty())
    refuse("--tokens", "missing", "the tokens to train on, such as --tokens 1.5T");
  const std::vector<study::Series> series = series_of(options);
  const study::Goal goal = goal_of(options, series);
  Field field = field_of(options, series, goal);
  study::Capacity result = study::capacity(
      field.series, goal, predict_options(options.scenario, engine::Driver::standalone),
      std::move(field.unfit));
  result.notes = std::move(field.notes);
  result.splits = field.splits;
  result.own = study::split_of(series.front().scenario);
  const Format format = options.format.format();
  Output output{.text = format == Format::json  ? reports::plan_json(result)
                        : format == Format::csv ? reports::plan_csv(result)
                                                : reports::plan_text(result)};
  if (!result.plans.front().infeasible.empty())
    output.code = kInfeasible;
  else if (!result.plans.front().meets)
    output.code = kFinding;
  return output;
}

}  // namespace

Action declare_plan(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_scenario(app, options->scenario);
  app.add_option("--tokens", options->tokens, "Tokens to train on: 300B, 1.5T, 2e12")
      ->type_name("N");
  app.add_option("--deadline", options->deadline, "Time from start to end, e.g. 30d")
      ->type_name("TIME");
  app.add_option("--budget", options->budget, "Most that the GPUs may cost, e.g. 2M USD")
      ->type_name("USD");
  app.add_option("--max-gpus", options->max_gpus, "Most GPUs (default: all of the cluster)")
      ->type_name("N");
  app.add_option("--clusters", options->clusters,
                 "Clusters to compare instead of the scenario's: presets or files, each with its "
                 "profile if it is not the usual one (dgx-h100,aws-p5:h100-sxm-efa)")
      ->type_name("A,B,...");
  app.add_option("--vary", options->vary,
                 "Values of a key to try, all combinations, e.g. --vary parallelism.tp=1,2,4,8 "
                 "--vary training.micro_batch=1,2,4 (default: the split of the file)")
      ->type_name("KEY=V1,V2")
      ->allow_extra_args(false);
  app.add_flag("--search", options->search,
               "At each number of GPUs the fastest legal split, as scapesim search finds it, "
               "instead of the file's; keys of --vary and --keep stay");
  app.add_option("--gpus", options->gpus,
                 "With --search: numbers of GPUs to choose from (default: powers of two and "
                 "--max-gpus)")
      ->type_name("N,N,...");
  app.add_option("--keep", options->keep,
                 "With --search: a key that keeps the file's value, e.g. --keep strategy.sharding")
      ->type_name("KEY")
      ->allow_extra_args(false);
  app.add_option("--jobs", options->jobs,
                 "With --search: threads to work on (default: all processors); the result does not "
                 "depend on them")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.add_option("--objective", options->objective,
                 "Rank by time, cost, energy or gpu-hours (default: cost where all prices are "
                 "known, else gpu-hours)")
      ->type_name("WORD");
  app.add_option("--utilisation", options->utilisation,
                 "Share of the calendar in which the job runs (default: 100%)")
      ->type_name("SHARE");
  app.add_option("--effective-time", options->effective_time,
                 "Share of the hours held in which training goes on, at most; failures that the "
                 "cluster states count in what is lost (default: 90%, as Llama 3 and MegaScale "
                 "report)")
      ->type_name("SHARE");
  app.add_option("--critical-batch", options->critical_batch,
                 "Critical batch in tokens: a varied training.global_batch then needs more tokens "
                 "the larger it is (McCandlish et al. 2018)")
      ->type_name("N");
  add_json_and_csv(app, options->format);
  app.footer(
      "Example: scapesim plan scenarios/llama2-13b-fsdp.toml --tokens 1T --deadline 30d "
      "--clusters dgx-h100,aws-p5\n"
      "Exit codes: 1 no plan meets the goal (the nearest is named), 3 nothing fits in memory.");
  return [options] { return plan(*options); };
}

}  // namespace scapesim::cli
