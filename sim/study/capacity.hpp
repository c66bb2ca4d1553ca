// SPDX-License-Identifier: Apache-2.0
// Capacity planning: so many tokens by a deadline within a budget. Every configuration gets its
// time to the end, failures included, its GPU-hours, cost, energy and carbon; those that meet the
// goal are ranked.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/named.hpp"
#include "sim/study/point.hpp"
#include "sim/study/reliability.hpp"
#include "sim/study/scale.hpp"
#include "sim/study/splits.hpp"

namespace scapesim::study {

enum class PlanObjective { time, cost, energy, gpu_hours };
inline std::span<const Named<PlanObjective>> names_of(PlanObjective*) {
  using enum PlanObjective;
  static constexpr Named<PlanObjective> kRows[] = {
      {time, "time"}, {cost, "cost"}, {energy, "energy"}, {gpu_hours, "gpu-hours"}};
  return kRows;
}

/// [M407] What large trainings reach of the hours they hold: "more than 90 %" of Llama 3 405B
/// (Llama team 2024, arXiv 2407.21783, sec. 3.3.4) and of MegaScale (Jiang et al. 2024, NSDI).
inline constexpr double kEffectiveTime = 0.9;

struct Goal {
  Tokens tokens = {};  ///< at the scenario's own global batch
  std::optional<Seconds> deadline = {};
  std::optional<Dollars> budget = {};
  std::optional<int> most_gpus = {};
  PlanObjective objective = PlanObjective::gpu_hours;
  double utilisation = 1;                     ///< share of the calendar in which the job runs
  double effective_time = 1;                  ///< [M407] share of its hours that train, at most
  std::optional<Tokens> critical_batch = {};  ///< none: tokens do not depend on the batch
  std::optional<Tokens> base_batch = {};      ///< that `tokens` counts for; none: any
};

/// What failures do to a run; none where the cluster does not state all it takes.
struct Failures {
  Seconds job_mtbf = {};
  Bytes checkpoint = {};
  Seconds write = {};
  Seconds interval = {};  ///< of training between two checkpoints
  double expected = 0;    ///< failures in the run
};

/// What an energy counts.
enum class EnergyScope { gpus, nodes };
inline std::span<const Named<EnergyScope>> names_of(EnergyScope*) {
  static constexpr Named<EnergyScope> kRows[] = {{EnergyScope::gpus, "GPUs"},
                                                 {EnergyScope::nodes, "nodes"}};
  return kRows;
}

/// One configuration over the whole training.
struct RunPlan {
  spec::Scenario scenario = {};
  std::string calibration = {};
  std::string infeasible = {};  ///< why it does not fit; nothing below is filled then
  Seconds step_time = {};
  double mfu = 0;
  Tokens tokens = {};
  double steps = 0;
  Seconds training = {};    ///< steps and evaluations alone
  Seconds ramp = {};        ///< of these, steps before the batch has grown
  Seconds evaluation = {};  ///< of these, evaluations
  std::optional<Failures> failures = {};
  Seconds busy = {};  ///< that the job holds its GPUs: failures, restarts, all that is lost
  Seconds time = {};  ///< of the calendar
  double gpu_hours = 0;
  std::optional<Dollars> cost = {};
  std::optional<Joules> energy = {};
  EnergyScope energy_scope = EnergyScope::gpus;
  std::optional<Kilograms> carbon = {};
  std::optional<double> low, high;  ///< 90 % interval of all times over their value
  std::optional<double> chance;     ///< share of the profile's draws that meet the goal
  std::vector<std::string> misses = {};
  bool meets = false;
  bool any_split = false;  ///< it stands for all splits: none fits
  bool pareto = false;     ///< no other is both faster and cheaper (fewer GPU-hours without prices)
};

/// Steps of the training over its whole time; none when failures are not known.
std::optional<double> goodput(const RunPlan& plan);

/// [M374] A prediction carried on over so many tokens.
RunPlan plan_of(const spec::Scenario& scenario, const std::string& calibration,
                const result::Run& run, const Goal& goal);

/// One configuration for so many tokens.
RunPlan plan_run(const Series& series, const Goal& goal, const PredictOptions& options);

/// Splits that searches looked at, for all numbers of GPUs together.
struct SplitCounts {
  std::int64_t considered = 0;
  std::int64_t fitting = 0;
  std::int64_t simulated = 0;
};

struct Capacity {
  Goal goal;
  std::vector<RunPlan> plans;  ///< those that meet the goal by objective, then those that miss it
                               ///< by how much, then those that do not fit
  std::optional<std::size_t> nearest;      ///< of those that miss, when none meets
  std::optional<std::size_t> next_better;  ///< the best by objective among those that miss
  std::vector<std::string> notes;          ///< limits that the enumeration met
  std::optional<SplitCounts> splits = {};  ///< where the splits were searched
  Split own = {};                          ///< the scenario's, where they were searched
};

/// A key and the values to try.
struct Choice {
  std::string key;
  std::vector<std::string> values;  ///< as after --set
};

/// All combinations of the choices over one series. Throws InputError for what is no value of a
/// key.
std::vector<Series> combined(const Series& series, std::span<const Choice> choices);

/// Every data-parallel size that divides the batch, on every series, under every combination of the
/// choices; what breaks a rule is left out. Throws InputError where nothing is left.
std::vector<Series> configurations(std::span<const Series> series, std::span<const Choice> choices,
                                   const Goal& goal, std::vector<std::string>& notes);

/// Predicts and ranks; `unfit` are known not to. `interval_draws` count for the first plans only.
Capacity capacity(std::span<const Series> configurations, const Goal& goal,
                  const PredictOptions& options, std::vector<RunPlan> unfit = {});

}  // namespace scapesim::study
