// SPDX-License-Identifier: Apache-2.0
#include "sim/study/sensitivity.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "sim/scenario/alter.hpp"
#include "sim/study/choices.hpp"
#include "sim/study/parallel.hpp"
#include "sim/study/workers.hpp"

namespace scapesim::study {
namespace {

constexpr PredictOptions kFast{.driver = engine::Driver::standalone, .interval_draws = 0};

result::Outcome outcome_of(const Inputs& inputs) {
  return predict(inputs.scenario, inputs.profile, kFast).outcome;
}

std::optional<Seconds> step_of(const Inputs& base, const Parameter& parameter, double factor) {
  const std::optional<Inputs> inputs = multiplied(base, parameter, factor);
  if (!inputs) return std::nullopt;
  const result::Outcome outcome = outcome_of(*inputs);
  const auto* run = std::get_if<result::Run>(&outcome);
  return run != nullptr ? std::optional(run->step_time) : std::nullopt;
}

// [M367] d ln T / d ln p by central differences, one-sided where a rule allows one side only.
double elasticity_of(const Inputs& base, const Parameter& parameter, Seconds step_time) {
  const double h = kDifferenceStep;
  const std::optional<Seconds> less = step_of(base, parameter, 1 - h);
  const std::optional<Seconds> more = step_of(base, parameter, 1 + h);
  if (!less && !more) return 0;
  const Seconds rise = more.value_or(step_time) - less.value_or(step_time);
  const double width = (more ? h : 0) + (less ? h : 0);
  return rise / step_time / width;
}

/// Steps that differ by less than a replay resolves are the same.
bool same(const std::optional<Seconds>& a, Seconds b) {
  constexpr double kResolved = 1e-8;
  return !a || std::abs(a->si() - b.si()) <= kResolved * b.si();
}

double reach(const Effect& effect, Seconds base) {
  const auto far = [&](const std::optional<Seconds>& t) {
    return t ? std::abs(t->si() - base.si()) : 0;
  };
  return std::max(far(effect.less), far(effect.more));
}

Effect effect_of(const Inputs& base, Parameter parameter, double change, Seconds step_time) {
  Effect effect{.parameter = std::move(parameter)};
  effect.less = step_of(base, effect.parameter, 1 - change);
  effect.more = step_of(base, effect.parameter, 1 + change);
  if (same(effect.less, step_time) && same(effect.more, step_time)) return effect;
  effect.elasticity = elasticity_of(base, effect.parameter, step_time);
  if (effect.parameter.value)
    effect.derivative = effect.elasticity * step_time.si() / *effect.parameter.value;
  return effect;
}

void add_effects(Sensitivity& result, const Inputs& base, Seconds step_time) {
  const std::vector<Parameter> parameters = parameters_of(base);
  for (Effect& effect : parallel(parameters.size(), usable_processors(), [&](std::size_t i) {
         return effect_of(base, parameters[i], result.change, step_time);
       })) {
    if (same(effect.less, step_time) && same(effect.more, step_time))
      result.without_effect.push_back(effect.parameter.name);
    else
      result.effects.push_back(std::move(effect));
  }
  std::ranges::stable_sort(result.effects, std::greater{},
                           [&](const Effect& effect) { return reach(effect, step_time); });
}

/// The term's time in another run.
Seconds term_in(const result::Run& run, const result::Term& term) {
  Seconds sum;
  for (const result::Term& other : run.terms)
    if (other.name == term.name && other.formula == term.formula) sum += other.time;
  return sum;
}

/// Terms of one name and formula as one, whatever they were calibrated by.
std::vector<PartBound> distinct_terms(const result::Run& run) {
  std::vector<PartBound> parts;
  for (const result::Term& term : run.terms) {
    const auto known = std::ranges::find_if(parts, [&](const PartBound& part) {
      return part.name == term.name && part.formula == term.formula;
    });
    if (known == parts.end())
      parts.push_back({term.name, term.formula, term_in(run, term), "", {}});
  }
  std::ranges::stable_sort(parts, std::greater{}, &PartBound::time);
  return parts;
}

// [M368] How much of the step, and of each term, would go if a resource took no time: minus its
// elasticity. By homogeneity the shares of all resources sum to one.
void add_bounds(Sensitivity& result, const Inputs& base, const result::Run& run) {
  constexpr double kWorthNaming = 0.05;
  const double h = kDifferenceStep;
  result.parts = distinct_terms(run);
  for (const Machine& machine : machines()) {
    Inputs faster = base, slower = base;
    machine.faster(faster, 1 + h);
    machine.faster(slower, 1 - h);
    const result::Outcome fast = outcome_of(faster), slow = outcome_of(slower);
    const auto& fast_run = std::get<result::Run>(fast);
    const auto& slow_run = std::get<result::Run>(slow);
    result.resource_shares.push_back((slow_run.step_time - fast_run.step_time) / run.step_time /
                                     (2 * h));
    for (PartBound& part : result.parts) {
      const result::Term term{part.name, part.time, part.formula, ""};
      part.shares.push_back((term_in(slow_run, term) - term_in(fast_run, term)) / part.time /
                            (2 * h));
    }
  }
  for (PartBound& part : result.parts) {
    const auto most = std::ranges::max_element(part.shares);
    if (*most > kWorthNaming)
      part.bound = machines()[static_cast<std::size_t>(most - part.shares.begin())].name;
  }
}

/// Other values of a key worth a look: all words, the other flag, half and double.
std::vector<scenario::Value> other_values(const scenario::KeyValue& key) {
  std::vector<scenario::Value> values;
  if (key.type == "flag") values.emplace_back(key.text != "true");
  if (key.type == "one of") {
    std::string_view words = key.range;
    while (!words.empty()) {
      const std::size_t end = std::min(words.find(", "), words.size());
      const std::string word(words.substr(0, end));
      if (key.text != "\"" + word + "\"") values.emplace_back(word);
      words.remove_prefix(std::min(end + 2, words.size()));
    }
  }
  static constexpr std::string_view kHalvedAndDoubled[] = {"training.global_batch",
                                                           "training.micro_batch",
                                                           "parallelism.tp",
                                                           "parallelism.pp",
                                                           "parallelism.cp",
                                                           "parallelism.ep",
                                                           "parallelism.virtual_stages"};
  if (std::ranges::find(kHalvedAndDoubled, key.key) != std::end(kHalvedAndDoubled)) {
    const auto now = std::get<scenario::NumberText>(scenario::number_of(key.text)).number;
    const auto count = static_cast<std::int64_t>(now);
    if (count % 2 == 0) values.emplace_back(count / 2);
    values.emplace_back(2 * count);
  }
  return values;
}

std::string text_of(const scenario::KeyValue& key, const spec::Scenario& scenario) {
  for (const scenario::KeyValue& other : scenario::key_values(scenario))
    if (other.key == key.key) return other.text;
  return {};
}

/// A key and another value of it.
struct Choice {
  scenario::KeyValue key;
  scenario::Value value;
};

/// None where the other value breaks a rule.
std::optional<Alternative> alternative_of(const Inputs& base, const Choice& choice) {
  const scenario::KeyValue& key = choice.key;
  auto altered = scenario::altered(base.scenario, key.key, choice.value);
  auto* scenario = std::get_if<spec::Scenario>(&altered);
  if (scenario == nullptr) return std::nullopt;
  Alternative row{.key = key.key,
                  .from = key.text,
                  .to = text_of(key, *scenario),
                  .trains_otherwise = trains_otherwise(key.key).value_or(true)};
  row.tokens_ratio = static_cast<double>(scenario->training.global_batch) /
                     static_cast<double>(base.scenario.training.global_batch);
  const result::Outcome outcome = outcome_of({*scenario, base.profile});
  if (const auto* run = std::get_if<result::Run>(&outcome)) {
    row.step_time = run->step_time;
    row.memory = run->memory.total + run->memory.context;
  } else {
    const auto& why = std::get<result::Infeasible>(outcome);
    row.infeasible = why.reason;
    if (why.memory.total > Bytes(0)) row.memory = why.memory.total + why.memory.context;
  }
  return row;
}

void add_alternatives(Sensitivity& result, const Inputs& base, const result::Run& run) {
  std::vector<Choice> choices;
  for (const scenario::KeyValue& key : scenario::key_values(base.scenario)) {
    const std::string_view name = key.key;
    if (!name.starts_with("training.") && !name.starts_with("parallelism.") &&
        !name.starts_with("strategy."))
      continue;
    for (scenario::Value& value : other_values(key)) choices.push_back({key, std::move(value)});
  }
  for (auto& row : parallel(choices.size(), usable_processors(),
                            [&](std::size_t i) { return alternative_of(base, choices[i]); }))
    if (row) result.alternatives.push_back(std::move(*row));
  const Bytes memory = run.memory.total + run.memory.context;
  std::erase_if(result.alternatives, [&](const Alternative& row) {
    return row.step_time && row.tokens_ratio == 1 && same(row.step_time, run.step_time) &&
           row.memory == memory;
  });
  std::ranges::stable_sort(result.alternatives, std::less{}, [](const Alternative& row) {
    return row.step_time ? row.step_time->si() / row.tokens_ratio : INFINITY;
  });
}

}  // namespace

Sensitivity sensitivity(const Series& series, double change, const PredictOptions& options) {
  const Inputs base{series.scenario, series.profile};
  const Prediction prediction = predict(series.scenario, series.profile, options);
  Sensitivity result{.point = {series.scenario.name, series.scenario.series,
                               series.scenario.cluster.gpus, prediction.outcome},
                     .change = change};
  const result::Run* run = run_of(result.point);
  if (run == nullptr) return result;
  const result::Run base_run = *run;
  add_effects(result, base, base_run.step_time);
  add_bounds(result, base, base_run);
  add_alternatives(result, base, base_run);
  result.roofs = roofs_of(prediction);
  result.disturbances = disturbances(series, base_run, options);
  return result;
}

}  // namespace scapesim::study
