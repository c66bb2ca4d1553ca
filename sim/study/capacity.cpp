// SPDX-License-Identifier: Apache-2.0
#include "sim/study/capacity.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <set>

#include "sim/base/error.hpp"
#include "sim/base/unit_text.hpp"
#include "sim/predict/ramp.hpp"
#include "sim/scenario/alter.hpp"
#include "sim/workload/documents.hpp"
#include "sim/workload/workload.hpp"

namespace scapesim::study {
namespace {

/// Plans whose interval is worth its time.
constexpr std::size_t kWithInterval = 12;

int nodes_of(const spec::Scenario& scenario) {
  const spec::Cluster& cluster = scenario.cluster;
  return (cluster.gpus + cluster.gpus_per_node - 1) / cluster.gpus_per_node;
}

double batch_tokens(const spec::Scenario& scenario) {
  return static_cast<double>(scenario.training.global_batch * scenario.training.sequence) *
         workload::useful_share(scenario.training);
}

// [M374] Failures come at nodes / mtbf of one; a checkpoint takes its size over the storage's rate.
std::optional<Failures> failures_of(const spec::Scenario& scenario) {
  const spec::Cluster& cluster = scenario.cluster;
  if (!cluster.node_mtbf || !cluster.restart_time || !cluster.storage_bandwidth)
    return std::nullopt;
  const workload::Workload workload =
      workload::workload_of(scenario.model, scenario.training, scenario.parallelism);
  Failures failures;
  failures.job_mtbf = *cluster.node_mtbf / nodes_of(scenario);
  failures.checkpoint = checkpoint_size(workload.trainable_parameters, scenario.training);
  failures.write = failures.checkpoint / *cluster.storage_bandwidth;
  failures.interval = best_interval(
      {.mtbf = failures.job_mtbf, .restart = *cluster.restart_time, .checkpoint = failures.write});
  return failures;
}

Seconds busy_time(const spec::Scenario& scenario, Seconds training,
                  const std::optional<Failures>& failures) {
  if (!failures) return training;
  return expected_makespan(training, failures->interval,
                           {.mtbf = failures->job_mtbf,
                            .restart = *scenario.cluster.restart_time,
                            .checkpoint = failures->write});
}

// [M434] Steps of the ramp first, as many as the tokens last; [M436] evaluations behind every
// interval's last step.
void add_steps(RunPlan& plan, const result::Run& run) {
  const spec::Training& training = plan.scenario.training;
  const double sequence_tokens =
      batch_tokens(plan.scenario) / static_cast<double>(training.global_batch);
  double left = plan.tokens.si();
  const auto add = [&](double most, double batch, Seconds step) {
    const double steps = std::min(most, std::ceil(left / (batch * sequence_tokens)));
    plan.steps += steps;
    plan.training += steps * step;
    left = std::max(left - steps * batch * sequence_tokens, 0.0);
  };
  for (const result::RampRow& row : run.ramp)
    add(static_cast<double>(row.steps), static_cast<double>(row.batch), row.step_time);
  plan.ramp = plan.training;
  add(INFINITY, static_cast<double>(training.global_batch), run.step_time);
  if (run.evaluation)
    plan.evaluation = std::floor(plan.steps / run.evaluation->interval) * run.evaluation->all();
  plan.training += plan.evaluation;
}

/// Whole nodes where their power is known, boards alone else; the building's overhead on either.
void add_energy(RunPlan& plan, const result::Run& run) {
  const spec::Cluster& cluster = plan.scenario.cluster;
  if (cluster.node_power) {
    plan.energy = *cluster.node_power * plan.busy * nodes_of(plan.scenario);
    plan.energy_scope = EnergyScope::nodes;
  } else if (run.energy) {
    plan.energy = *run.energy * (plan.busy / run.step_time);
  }
  if (!plan.energy) return;
  *plan.energy *= cluster.power_usage_effectiveness.value_or(1);
  if (cluster.carbon_intensity) plan.carbon = *plan.energy * *cluster.carbon_intensity;
}

std::string money(Dollars amount) {
  const double usd = amount.si();
  if (usd >= 1e6) return fmt::format("USD {:.2f} M", usd / 1e6);
  if (usd >= 1e4) return fmt::format("USD {:.0f} k", usd / 1e3);
  return fmt::format("USD {:.0f}", usd);
}

/// By how much a plan exceeds its goal, the worse of deadline and budget; 1 or less meets it.
double excess(const RunPlan& plan, const Goal& goal) {
  double most = 0;
  if (goal.deadline) most = std::max<double>(most, plan.time / *goal.deadline);
  if (goal.budget && plan.cost) most = std::max<double>(most, *plan.cost / *goal.budget);
  return most;
}

void judge(RunPlan& plan, const Goal& goal) {
  if (!plan.infeasible.empty()) return;
  if (goal.deadline && plan.time > *goal.deadline)
    plan.misses.push_back(
        fmt::format("{} after the deadline", text_of(plan.time - *goal.deadline)));
  if (goal.budget && plan.cost && *plan.cost > *goal.budget)
    plan.misses.push_back(fmt::format("{} above the budget", money(*plan.cost - *goal.budget)));
  plan.meets = plan.misses.empty();
}

/// Smaller is better; what is not known is worst.
double value_of(const RunPlan& plan, PlanObjective objective) {
  switch (objective) {
    case PlanObjective::time:
      return plan.time.si();
    case PlanObjective::cost:
      return plan.cost ? plan.cost->si() : INFINITY;
    case PlanObjective::energy:
      return plan.energy ? plan.energy->si() : INFINITY;
    case PlanObjective::gpu_hours:
      return plan.gpu_hours;
  }
  throw InternalError("unknown objective");
}

bool ranks_before(const RunPlan& a, const RunPlan& b, const Goal& goal) {
  const auto group = [](const RunPlan& p) { return p.meets ? 0 : p.infeasible.empty() ? 1 : 2; };
  if (group(a) != group(b)) return group(a) < group(b);
  if (group(a) == 2) return a.scenario.cluster.gpus < b.scenario.cluster.gpus;
  if (group(a) == 1) return excess(a, goal) < excess(b, goal);
  const double va = value_of(a, goal.objective), vb = value_of(b, goal.objective);
  return va != vb ? va < vb : a.time < b.time;
}

/// Time against cost; against GPU-hours where not every plan has a price.
void mark_pareto(std::vector<RunPlan>& plans) {
  const bool priced = std::ranges::all_of(
      plans, [](const RunPlan& p) { return !p.infeasible.empty() || p.cost.has_value(); });
  const auto price = [&](const RunPlan& p) { return priced ? p.cost->si() : p.gpu_hours; };
  for (RunPlan& plan : plans) {
    if (!plan.infeasible.empty()) continue;
    plan.pareto = std::ranges::none_of(plans, [&](const RunPlan& other) {
      if (!other.infeasible.empty()) return false;
      const bool as_good = other.time <= plan.time && price(other) <= price(plan);
      return as_good && (other.time < plan.time || price(other) < price(plan));
    });
  }
}

/// Draws of the profile move the step and all that is proportional to it.
void add_interval(RunPlan& plan, const Series& series, const Goal& goal,
                  const PredictOptions& options) {
  const result::Outcome outcome = predict(series.scenario, series.profile, options).outcome;
  const auto& run = std::get<result::Run>(outcome);
  if (run.drawn.empty()) return;
  plan.low = run.step_time_low / run.step_time;
  plan.high = run.step_time_high / run.step_time;
  const double room = excess(plan, goal);
  if (room <= 0) return;
  const auto meet = std::ranges::count_if(
      run.drawn, [&](Seconds drawn) { return drawn / run.step_time * room <= 1; });
  plan.chance = static_cast<double>(meet) / static_cast<double>(run.drawn.size());
}

/// Data-parallel sizes that divide the batch, as configurations that break no rule.
void add_counts(const Series& series, const Goal& goal, std::vector<Series>& list) {
  const spec::Parallelism& p = series.scenario.parallelism;
  const spec::Cluster& cluster = series.scenario.cluster;
  const std::int64_t model_parallel = std::int64_t{p.tp} * p.pp * p.cp;
  std::int64_t most = std::int64_t{cluster.nodes} * cluster.gpus_per_node;
  if (goal.most_gpus) most = std::min<std::int64_t>(most, *goal.most_gpus);
  const std::int64_t samples =
      series.scenario.training.global_batch / series.scenario.training.micro_batch;
  for (std::int64_t dp = 1; dp <= samples && dp * model_parallel <= most; ++dp) {
    if (samples % dp != 0) continue;
    auto altered =
        scenario::altered(series.scenario, "cluster.gpus", scenario::Value(dp * model_parallel));
    if (auto* sound = std::get_if<spec::Scenario>(&altered))
      list.push_back({std::move(*sound), series.profile});
  }
}

/// Where the batch exceeds what is estimated to be useful.
std::optional<std::string> batch_note(const spec::Scenario& scenario, Tokens tokens) {
  const workload::Workload workload =
      workload::workload_of(scenario.model, scenario.training, scenario.parallelism);
  const Tokens critical = critical_batch_estimate(workload.active_parameters, tokens);
  const double batch = batch_tokens(scenario);
  if (batch <= critical.si()) return std::nullopt;
  return fmt::format(
      "{}: a step of {:.3g} tokens is {:.1f} times the critical batch estimated for the end of the "
      "training, {:.2g} tokens: beyond it a larger batch costs tokens (--critical-batch)",
      scenario.name, batch, batch / critical.si(), critical.si());
}

std::string limit_note(const Series& series) {
  const spec::Scenario& s = series.scenario;
  const std::int64_t samples = s.training.global_batch / s.training.micro_batch;
  return fmt::format(
      "{}: a batch of {} in micro-batches of {} goes to at most {} data-parallel ranks, {} GPUs",
      s.cluster.name, s.training.global_batch, s.training.micro_batch, samples,
      samples * s.parallelism.tp * s.parallelism.pp * s.parallelism.cp);
}

}  // namespace

std::optional<double> goodput(const RunPlan& plan) {
  if (!plan.failures) return std::nullopt;
  return plan.training / plan.busy;
}

// [M374] steps = tokens / batch, training = steps x step, busy with checkpoints and failures,
// calendar = busy / utilisation; GPU-hours, cost and energy count while the job holds its GPUs.
RunPlan plan_of(const spec::Scenario& scenario, const std::string& calibration,
                const result::Run& run, const Goal& goal) {
  RunPlan plan{
      .scenario = scenario, .calibration = calibration, .low = {}, .high = {}, .chance = {}};
  const double gpus = scenario.cluster.gpus;
  plan.step_time = run.step_time;
  plan.mfu = run.mfu;
  plan.tokens = goal.tokens;
  if (goal.critical_batch && goal.base_batch)
    plan.tokens *=
        tokens_factor(batch_tokens(scenario), goal.base_batch->si(), goal.critical_batch->si());
  add_steps(plan, run);
  plan.failures = failures_of(scenario);
  // [M407] Failures are a part of what is lost.
  plan.busy = std::max(busy_time(scenario, plan.training, plan.failures),
                       plan.training / goal.effective_time);
  if (plan.failures) plan.failures->expected = plan.busy / plan.failures->job_mtbf;
  plan.time = plan.busy / goal.utilisation;
  plan.gpu_hours = plan.busy.si() / 3600 * gpus;
  if (scenario.cluster.gpu_price) plan.cost = *scenario.cluster.gpu_price * plan.busy * gpus;
  add_energy(plan, run);
  return plan;
}

RunPlan plan_run(const Series& series, const Goal& goal, const PredictOptions& options) {
  const result::Outcome outcome = predict(series.scenario, series.profile, options).outcome;
  if (const auto* run = std::get_if<result::Run>(&outcome)) {
    result::Run whole = *run;
    whole.ramp = ramp_of(series.scenario, series.profile, *run);
    return plan_of(series.scenario, series.profile.id, whole, goal);
  }
  return {.scenario = series.scenario,
          .calibration = series.profile.id,
          .infeasible = std::get<result::Infeasible>(outcome).reason,
          .low = {},
          .high = {},
          .chance = {}};
}

std::vector<Series> combined(const Series& series, std::span<const Choice> choices) {
  std::vector<Series> list = {series};
  for (const Choice& choice : choices) {
    std::vector<Series> next;
    for (const Series& one : list)
      for (const std::string& value : choice.values) {
        Series other = one;
        scenario::assign(other.scenario, choice.key, value);
        next.push_back(std::move(other));
      }
    list = std::move(next);
  }
  return list;
}

std::vector<Series> configurations(std::span<const Series> series, std::span<const Choice> choices,
                                   const Goal& goal, std::vector<std::string>& notes) {
  std::vector<Series> list;
  for (const Series& one : series) {
    for (const Series& chosen : combined(one, choices)) add_counts(chosen, goal, list);
    if (choices.empty()) notes.push_back(limit_note(one));
    if (!goal.critical_batch && &one == &series.front())
      if (auto note = batch_note(one.scenario, goal.tokens)) notes.push_back(std::move(*note));
  }
  std::set<std::string> seen;
  std::erase_if(list, [&](const Series& s) {
    return !seen.insert(s.scenario.cluster.name + s.profile.id + s.scenario.hash).second;
  });
  if (list.empty())
    throw InputError(Problem{{},
                             "--max-gpus",
                             "no number of GPUs fits the batch, the split and the cluster's rules",
                             "allow more GPUs, or vary the split: --vary parallelism.tp=1,2,4,8"});
  return list;
}

Capacity capacity(std::span<const Series> configurations, const Goal& goal,
                  const PredictOptions& options, std::vector<RunPlan> unfit) {
  Capacity result{.goal = goal, .plans = {}, .nearest = {}, .next_better = {}, .notes = {}};
  std::vector<std::pair<RunPlan, const Series*>> judged;
  PredictOptions fast = options;
  fast.interval_draws = 0;
  for (const Series& series : configurations) {
    RunPlan plan = plan_run(series, goal, fast);
    judge(plan, goal);
    judged.emplace_back(std::move(plan), &series);
  }
  std::ranges::stable_sort(
      judged, [&](const auto& a, const auto& b) { return ranks_before(a.first, b.first, goal); });
  for (std::size_t i = 0; i < judged.size(); ++i) {
    auto& [plan, series] = judged[i];
    if (i < kWithInterval && options.interval_draws > 0 && plan.infeasible.empty())
      add_interval(plan, *series, goal, options);
    result.plans.push_back(std::move(plan));
  }
  for (RunPlan& plan : unfit) result.plans.push_back(std::move(plan));
  mark_pareto(result.plans);
  for (std::size_t i = 0; i < result.plans.size(); ++i) {
    const RunPlan& plan = result.plans[i];
    if (plan.meets || !plan.infeasible.empty()) continue;
    if (!result.nearest && !result.plans.front().meets) result.nearest = i;
    if (!result.next_better || value_of(plan, goal.objective) >
                                   value_of(result.plans[*result.next_better], goal.objective))
      if (result.plans.front().meets &&
          value_of(plan, goal.objective) < value_of(result.plans.front(), goal.objective))
        result.next_better = i;
  }
  return result;
}

}  // namespace scapesim::study
