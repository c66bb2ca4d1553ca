// SPDX-License-Identifier: Apache-2.0
#include "sim/study/plan_search.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "sim/base/error.hpp"

namespace scapesim::study {
namespace {

std::int64_t most_gpus(const Series& series, const Goal& goal) {
  const spec::Cluster& cluster = series.scenario.cluster;
  const std::int64_t machine = std::int64_t{cluster.nodes} * cluster.gpus_per_node;
  return goal.most_gpus ? std::min<std::int64_t>(machine, *goal.most_gpus) : machine;
}

/// Powers of two and, where it is told, the most.
std::vector<int> usual_counts(const Series& series, const Goal& goal) {
  const std::int64_t most = most_gpus(series, goal);
  std::vector<int> counts;
  for (std::int64_t count = 1; count <= most; count *= 2) counts.push_back(static_cast<int>(count));
  if (goal.most_gpus && most == *goal.most_gpus && counts.back() != most)
    counts.push_back(static_cast<int>(most));
  return counts;
}

std::vector<int> counts_for(const Series& series, const Goal& goal, const PlanSearch& how) {
  std::vector<int> counts = how.gpus.empty() ? usual_counts(series, goal) : how.gpus;
  std::ranges::sort(counts);
  counts.erase(std::ranges::unique(counts).begin(), counts.end());
  std::erase_if(counts, [&](int count) {
    spec::Cluster cluster = series.scenario.cluster;
    cluster.gpus = count;
    return count > most_gpus(series, goal) || !spec::violations(cluster).empty();
  });
  return counts;
}

Held held_of(std::span<const Choice> choices, const PlanSearch& how) {
  Held held = how.held;
  for (const Choice& choice : choices) held.insert(choice.key);
  return held;
}

/// The losers of a kind with the most splits.
const Losers* most_of(const SearchResult& found, Lost lost) {
  const auto first = std::ranges::find(found.losers, lost, &Losers::lost);
  return first == found.losers.end() ? nullptr : &*first;
}

std::string why_none_is_legal(const Series& series, const SearchResult& found) {
  const Losers* most = most_of(found, Lost::breaks_rule);
  return fmt::format("{}: none of {} splits over {} GPUs is legal{}", series.scenario.cluster.name,
                     found.considered, series.scenario.cluster.gpus,
                     most == nullptr ? "" : fmt::format(" (most against {})", most->reason));
}

RunPlan unfit_plan(const Series& series, const SearchResult& found) {
  const Losers* most = most_of(found, Lost::does_not_fit);
  RunPlan plan{.scenario = series.scenario,
               .calibration = series.profile.id,
               .low = {},
               .high = {},
               .chance = {}};
  plan.infeasible = fmt::format("none of {} legal splits fits in memory{}", found.legal,
                                most == nullptr ? "" : fmt::format(" (mostly {})", most->reason));
  plan.any_split = true;
  return plan;
}

}  // namespace

std::vector<Series> to_search(std::span<const Series> series, std::span<const Choice> choices,
                              const Goal& goal, const PlanSearch& how) {
  std::vector<Series> list;
  for (const Series& one : series)
    for (const Series& chosen : combined(one, choices))
      for (const int count : counts_for(chosen, goal, how)) {
        list.push_back(chosen);
        list.back().scenario.cluster.gpus = count;
      }
  if (list.empty())
    throw InputError(Problem{{},
                             how.gpus.empty() ? "--max-gpus" : "--gpus",
                             "no number of GPUs fits the cluster and the goal",
                             "scapesim topology show CLUSTER says how many there are"});
  return list;
}

SearchedPlans search_plans(std::span<const Series> list, std::span<const Choice> choices,
                           const PlanSearch& how) {
  SearchedPlans plans;
  const SearchOptions options{
      .gpus = {},
      .objective = Objective::time,
      .top = 1,
      .held = held_of(choices, how),
      .jobs = how.jobs,
      .predict = {.driver = engine::Driver::standalone, .interval_draws = 0}};
  for (const Series& series : list) {
    SearchResult found = search(series, options);
    how.searched();
    plans.counts.considered += found.considered;
    plans.counts.fitting += found.fitting;
    plans.counts.simulated += found.simulated;
    if (!found.best.empty())
      plans.best.push_back({std::move(found.best.front().scenario), series.profile});
    else if (found.legal > 0)
      plans.unfit.push_back(unfit_plan(series, found));
    else
      plans.notes.push_back(why_none_is_legal(series, found));
  }
  if (plans.best.empty() && plans.unfit.empty())
    throw InputError(Problem{{}, "--search", "no split is legal", plans.notes.front()});
  return plans;
}

}  // namespace scapesim::study
