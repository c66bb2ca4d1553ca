// SPDX-License-Identifier: Apache-2.0
#include "reports/plan.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "reports/csv.hpp"
#include "reports/json_parts.hpp"
#include "reports/table.hpp"
#include "sim/base/unit_text.hpp"
#include "sim/base/version.hpp"

namespace scapesim::reports {
namespace {

using parts::Json;
using study::Capacity;
using study::RunPlan;
using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t kMostRows = 16;
constexpr double kDay = 86'400, kKilowattHour = 3.6e6;

std::string count_text(double value) {
  if (value >= 1e12) return fmt::format("{:.4g} T", value / 1e12);
  if (value >= 1e9) return fmt::format("{:.4g} B", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.4g} M", value / 1e6);
  return fmt::format("{:.4g}", value);
}

std::string days(Seconds time) { return fmt::format("{:.2f}", time.si() / kDay); }

std::string money(const std::optional<Dollars>& cost) {
  return cost ? fmt::format("{:.0f}", cost->si()) : "";
}

int data_parallel(const RunPlan& plan) { return spec::data_parallel_size(plan.scenario); }

/// "tp8 pp4 dp16": tensor, pipeline, data; context and experts where they are split.
std::string split_text(const RunPlan& plan) {
  if (plan.any_split) return "any";
  const spec::Parallelism& p = plan.scenario.parallelism;
  std::string text = fmt::format("tp{} pp{} dp{}", p.tp, p.pp, data_parallel(plan));
  if (p.cp > 1) text += fmt::format(" cp{}", p.cp);
  if (p.ep > 1) text += fmt::format(" ep{}", p.ep);
  return text;
}

/// "1f1b", "interleaved x4", "-" without a pipeline.
std::string schedule_text(const RunPlan& plan) {
  const spec::Parallelism& p = plan.scenario.parallelism;
  if (p.pp == 1) return "-";
  const std::string name(name_of(p.schedule));
  return p.virtual_stages == 1 ? name : fmt::format("{} x{}", name, p.virtual_stages);
}

std::string verdict(const RunPlan& plan) {
  if (!plan.infeasible.empty()) return "does not fit";
  if (plan.meets)
    return plan.chance ? fmt::format("meets it in {:.0f} % of draws", 100 * *plan.chance)
                       : "meets it";
  std::string text;
  for (const std::string& miss : plan.misses) text += (text.empty() ? "" : ", ") + miss;
  return text;
}

/// Columns that something is known for.
struct Known {
  bool cost = false, energy = false, carbon = false, goodput = false, batch = false;
  bool searched = false;
};

Known known_in(const Capacity& capacity) {
  Known known{.searched = capacity.splits.has_value()};
  for (const RunPlan& plan : capacity.plans) {
    known.cost = known.cost || plan.cost.has_value();
    known.energy = known.energy || plan.energy.has_value();
    known.carbon = known.carbon || plan.carbon.has_value();
    known.goodput = known.goodput || plan.failures.has_value();
    known.batch = known.batch || plan.scenario.training.global_batch !=
                                     capacity.plans.front().scenario.training.global_batch;
  }
  return known;
}

std::vector<std::string> row_of(const RunPlan& plan, const Known& known) {
  const spec::Scenario& s = plan.scenario;
  const bool fits = plan.infeasible.empty();
  std::vector<std::string> row = {s.cluster.name, fmt::format("{}", s.cluster.gpus),
                                  split_text(plan)};
  const auto of_split = [&](std::string text) { row.push_back(plan.any_split ? "" : text); };
  if (known.searched) {
    of_split(schedule_text(plan));
    of_split(std::string(name_of(s.training.recompute)));
    of_split(std::string(name_of(s.strategy.sharding)));
  }
  of_split(fmt::format("{}", s.training.micro_batch));
  if (known.batch) row.push_back(fmt::format("{}", s.training.global_batch));
  row.push_back(fits ? fmt::format("{:.4g}", plan.step_time.si()) : "");
  row.push_back(fits ? percent(plan.mfu) : "");
  if (known.goodput) row.push_back(plan.failures ? percent(*study::goodput(plan)) : "");
  row.push_back(fits ? days(plan.time) : "");
  row.push_back(
      plan.low ? fmt::format("{} - {}", days(plan.time * *plan.low), days(plan.time * *plan.high))
               : "");
  row.push_back(fits ? fmt::format("{:.0f}", plan.gpu_hours) : "");
  if (known.cost) row.push_back(money(plan.cost));
  if (known.energy)
    row.push_back(plan.energy ? fmt::format("{:.1f}", plan.energy->si() / kKilowattHour / 1e3)
                              : "");
  if (known.carbon)
    row.push_back(plan.carbon ? fmt::format("{:.1f}", plan.carbon->si() / 1e3) : "");
  row.push_back(plan.pareto ? "*" : "");
  row.push_back(verdict(plan));
  return row;
}

std::string plans_table(const Capacity& capacity) {
  const Known known = known_in(capacity);
  std::vector<Column> columns = {{"cluster", Align::left}, {"GPUs"}, {"split", Align::left}};
  if (known.searched)
    columns.insert(
        columns.end(),
        {{"schedule", Align::left}, {"recompute", Align::left}, {"sharding", Align::left}});
  columns.push_back({"micro-batch"});
  if (known.batch) columns.push_back({"batch"});
  columns.insert(columns.end(), {{"step s"}, {"MFU"}});
  if (known.goodput) columns.push_back({"goodput"});
  columns.insert(columns.end(), {{"days"}, {"90 % interval"}, {"GPU-hours"}});
  if (known.cost) columns.push_back({"USD"});
  if (known.energy) columns.push_back({"MWh"});
  if (known.carbon) columns.push_back({"t CO2e"});
  columns.insert(columns.end(), {{""}, {"", Align::left}});
  Rows rows;
  for (std::size_t i = 0; i < std::min(kMostRows, capacity.plans.size()); ++i)
    rows.push_back(row_of(capacity.plans[i], known));
  std::string out = table(columns, rows);
  if (capacity.plans.size() > kMostRows)
    out += fmt::format("{} more (--csv, --json)\n", capacity.plans.size() - kMostRows);
  return out + "* no other is both faster and cheaper\n";
}

std::string goal_text(const study::Goal& goal) {
  std::string text = fmt::format("{} tokens", count_text(goal.tokens.si()));
  if (goal.deadline) text += fmt::format(" within {}", text_of(*goal.deadline));
  if (goal.budget) text += fmt::format(", for at most USD {:.0f}", goal.budget->si());
  if (goal.most_gpus) text += fmt::format(", on at most {} GPUs", *goal.most_gpus);
  if (goal.utilisation < 1)
    text += fmt::format(", running {} of the calendar", percent(goal.utilisation));
  return text + fmt::format(", by {}", name_of(goal.objective));
}

std::string configuration(const RunPlan& plan) {
  return fmt::format("{} GPUs of {} ({})", plan.scenario.cluster.gpus, plan.scenario.cluster.name,
                     split_text(plan));
}

/// What a search changed in the scenario, as it is said to a command.
std::string split_keys_text(const Capacity& capacity, const RunPlan& plan) {
  const auto own = study::keys_of(capacity.own);
  const auto keys = study::keys_of(study::split_of(plan.scenario));
  std::string out = "  its split:";
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (keys[i].second != own[i].second || keys[i].first == "cluster.gpus")
      out += fmt::format(" --set {}={}", keys[i].first, keys[i].second);
  return out + "\n";
}

std::string searched_text(const study::SplitCounts& splits) {
  return fmt::format(
      "the fastest split at each number of GPUs: of {} splits {} are legal and fit, {} were "
      "simulated; a lower bound of the step left the rest out\n",
      splits.considered, splits.fitting, splits.simulated);
}

std::string best_text(const Capacity& capacity) {
  const RunPlan& best = capacity.plans.front();
  std::string out;
  if (best.meets) {
    out = fmt::format("best: {}, {} days, {:.0f} GPU-hours\n", configuration(best), days(best.time),
                      best.gpu_hours);
    if (capacity.splits) out += split_keys_text(capacity, best);
    if (const auto& f = best.failures)
      out += fmt::format(
          "  about {:.0f} failure{}, one in {}; a checkpoint of {} takes {}, best every {} of "
          "training\n",
          f->expected, std::lround(f->expected) == 1 ? "" : "s", text_of(f->job_mtbf),
          text_of(f->checkpoint), text_of(f->write), text_of(f->interval));
    if (best.ramp > Seconds(0))
      out += fmt::format("  {} days of it while the batch grows\n", days(best.ramp));
    if (best.evaluation > Seconds(0))
      out += fmt::format("  {} days of it evaluations\n", days(best.evaluation));
    if (best.energy)
      out += fmt::format(
          "  energy is that of {}{}\n", name_of(best.energy_scope),
          best.scenario.cluster.power_usage_effectiveness ? " and the building" : " alone");
    if (capacity.next_better) {
      const RunPlan& next = capacity.plans[*capacity.next_better];
      out +=
          fmt::format("next better by {}: {}, {} days, but {}\n", name_of(capacity.goal.objective),
                      configuration(next), days(next.time), verdict(next));
    }
  } else if (capacity.nearest) {
    const RunPlan& nearest = capacity.plans[*capacity.nearest];
    out = fmt::format("no plan meets the goal; the nearest: {}, {} days, {}\n",
                      configuration(nearest), days(nearest.time), verdict(nearest));
    if (capacity.splits) out += split_keys_text(capacity, nearest);
  } else {
    out = "nothing fits: " + best.infeasible + "\n";
  }
  return out;
}

Json failures_json(const study::Failures& f) {
  return {{"job_mtbf_s", parts::number(f.job_mtbf)},
          {"checkpoint_B", parts::number(f.checkpoint)},
          {"checkpoint_time_s", parts::number(f.write)},
          {"checkpoint_interval_s", parts::number(f.interval)},
          {"expected_failures", parts::number(f.expected)}};
}

Json split_json(const RunPlan& plan) {
  if (plan.any_split) return nullptr;
  const spec::Scenario& s = plan.scenario;
  return {{"tp", s.parallelism.tp},
          {"pp", s.parallelism.pp},
          {"cp", s.parallelism.cp},
          {"ep", s.parallelism.ep},
          {"dp", data_parallel(plan)},
          {"schedule", std::string(name_of(s.parallelism.schedule))},
          {"virtual_stages", s.parallelism.virtual_stages},
          {"sequence_parallel", s.parallelism.sequence_parallel},
          {"micro_batch", s.training.micro_batch},
          {"global_batch", s.training.global_batch},
          {"recompute", std::string(name_of(s.training.recompute))},
          {"sharding", std::string(name_of(s.strategy.sharding))}};
}

Json splits_json(const Capacity& capacity) {
  if (!capacity.splits) return nullptr;
  return {{"considered", capacity.splits->considered},
          {"fitting", capacity.splits->fitting},
          {"simulated", capacity.splits->simulated}};
}

Json plan_row(const RunPlan& plan) {
  const bool fits = plan.infeasible.empty();
  const auto when_fits = [&](auto value) { return fits ? parts::number(value) : Json(nullptr); };
  Json json = {{"scenario", plan.scenario.name},        {"hash", plan.scenario.hash},
               {"cluster", plan.scenario.cluster.name}, {"calibration", plan.calibration},
               {"gpus", plan.scenario.cluster.gpus},    {"split", split_json(plan)}};
  json["meets"] = plan.meets;
  json["pareto"] = plan.pareto;
  json["misses"] = plan.misses;
  json["infeasible"] = parts::or_null(plan.infeasible);
  json["step_time_s"] = when_fits(plan.step_time);
  json["mfu"] = when_fits(plan.mfu);
  json["tokens"] = when_fits(plan.tokens);
  json["steps"] = when_fits(plan.steps);
  json["training_s"] = when_fits(plan.training);
  if (fits && plan.ramp > Seconds(0)) json["batch_ramp_s"] = parts::number(plan.ramp);
  if (fits && plan.evaluation > Seconds(0)) json["evaluation_s"] = parts::number(plan.evaluation);
  json["goodput"] = parts::or_null(fits ? study::goodput(plan) : std::nullopt);
  json["busy_s"] = when_fits(plan.busy);
  json["time_s"] = when_fits(plan.time);
  json["time_low_s"] = plan.low ? parts::number(plan.time * *plan.low) : Json(nullptr);
  json["time_high_s"] = plan.high ? parts::number(plan.time * *plan.high) : Json(nullptr);
  json["chance"] = parts::or_null(plan.chance);
  json["gpu_hours"] = when_fits(plan.gpu_hours);
  json["cost_usd"] = parts::or_null(plan.cost);
  json["energy_J"] = parts::or_null(plan.energy);
  json["energy_of"] = plan.energy ? Json(std::string(name_of(plan.energy_scope))) : Json(nullptr);
  json["carbon_kg"] = parts::or_null(plan.carbon);
  json["failures"] = plan.failures ? failures_json(*plan.failures) : Json(nullptr);
  return json;
}

/// The rest of a split: schedule, chunks, sequence parallelism, recomputation, sharding.
std::string split_cells(const RunPlan& plan) {
  if (plan.any_split) return ",,,,";
  const spec::Scenario& s = plan.scenario;
  return fmt::format("{},{},{},{},{}", name_of(s.parallelism.schedule),
                     s.parallelism.virtual_stages, s.parallelism.sequence_parallel ? 1 : 0,
                     name_of(s.training.recompute), name_of(s.strategy.sharding));
}

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

template <Dim D>
std::string csv_number(const std::optional<Quantity<D>>& value) {
  return value ? fmt::format("{}", value->si()) : "";
}

}  // namespace

std::string plan_text(const Capacity& capacity) {
  std::string out =
      fmt::format("{}: {}\n\n{}\n{}", capacity.plans.front().scenario.name,
                  goal_text(capacity.goal), plans_table(capacity), best_text(capacity));
  if (capacity.splits) out += searched_text(*capacity.splits);
  for (const std::string& note : capacity.notes) out += note + "\n";
  return out + fmt::format("\nRests on\n  scapesim {}, calibration {}, scenario {}\n", version(),
                           capacity.plans.front().calibration,
                           capacity.plans.front().scenario.hash);
}

std::string plan_json(const Capacity& capacity) {
  Json plans = Json::array();
  for (const RunPlan& plan : capacity.plans) plans.push_back(plan_row(plan));
  const study::Goal& goal = capacity.goal;
  const auto position = [](const std::optional<std::size_t>& at) {
    return at ? Json(*at) : Json(nullptr);
  };
  return parts::text_of({{"schema", "scapesim.plan/1"},
                         {"version", version()},
                         {"goal",
                          {{"tokens", parts::number(goal.tokens)},
                           {"deadline_s", parts::or_null(goal.deadline)},
                           {"budget_usd", parts::or_null(goal.budget)},
                           {"max_gpus", goal.most_gpus ? Json(*goal.most_gpus) : Json(nullptr)},
                           {"objective", std::string(name_of(goal.objective))},
                           {"utilisation", parts::number(goal.utilisation)},
                           {"critical_batch_tokens", parts::or_null(goal.critical_batch)}}},
                         {"met", capacity.plans.front().meets},
                         {"nearest", position(capacity.nearest)},
                         {"next_better", position(capacity.next_better)},
                         {"splits", splits_json(capacity)},
                         {"plans", plans},
                         {"notes", capacity.notes}});
}

std::string plan_csv(const Capacity& capacity) {
  std::string out =
      "rank,cluster,calibration,gpus,tp,pp,cp,ep,dp,micro_batch,global_batch,step_time_s,mfu,"
      "goodput,time_s,gpu_hours,cost_usd,energy_J,carbon_kg,pareto,meets,misses,infeasible,"
      "schedule,virtual_stages,sequence_parallel,recompute,sharding\n";
  int rank = 0;
  for (const RunPlan& plan : capacity.plans) {
    const spec::Scenario& s = plan.scenario;
    const spec::Parallelism& p = s.parallelism;
    const bool fits = plan.infeasible.empty();
    const auto number = [&](double value) { return fits ? fmt::format("{}", value) : ""; };
    const auto split = [&](std::int64_t value) {
      return plan.any_split ? "" : fmt::format("{}", value);
    };
    out += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", ++rank,
        csv_cell(s.cluster.name), csv_cell(plan.calibration), s.cluster.gpus, split(p.tp),
        split(p.pp), split(p.cp), split(p.ep), split(data_parallel(plan)),
        split(s.training.micro_batch), s.training.global_batch, number(plan.step_time.si()),
        number(plan.mfu), csv_number(fits ? study::goodput(plan) : std::nullopt),
        number(plan.time.si()), number(plan.gpu_hours), csv_number(plan.cost),
        csv_number(plan.energy), csv_number(plan.carbon), plan.pareto ? 1 : 0, plan.meets ? 1 : 0,
        csv_cell(fmt::format("{}", fmt::join(plan.misses, "; "))), csv_cell(plan.infeasible),
        split_cells(plan));
  }
  return out;
}

}  // namespace scapesim::reports
