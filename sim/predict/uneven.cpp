// SPDX-License-Identifier: Apache-2.0
#include "sim/predict/uneven.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/check.hpp"
#include "sim/engine/longest_path.hpp"
#include "sim/result/metrics.hpp"

namespace scapesim {

namespace {

/// Up to so many operations are simulated without leaving pipelines out.
constexpr std::size_t kFew = 20'000;

std::size_t operations_of(const graph::StepGraph& graph) {
  std::size_t count = 0;
  for (const graph::RankClass& rank_class : graph.classes) count += rank_class.operations.size();
  return count;
}

/// The pipelines on the longest path.
std::vector<std::size_t> deciding(const graph::StepGraph& graph, const engine::Timeline& even,
                                  std::span<const std::vector<Seconds>> durations) {
  engine::Pipelines pipelines{
      .graph = graph, .timeline = even, .within = {}, .durations = durations};
  for (const graph::Collective& collective : graph.collectives)
    pipelines.within.push_back(plan::within_pipeline(collective.axis));
  const engine::LongestPath path = engine::longest_path(pipelines);
  return {path.copies.begin(), path.copies.end()};
}

bool is_kernel(std::string_view key) {
  return key.starts_with("gemm.") || key.starts_with("attention.") || key.starts_with("hbm.") ||
         key.starts_with("kernel.");
}

template <class Map>
void take_kernels(Map& to, const Map& from) {
  std::erase_if(to, [](const auto& entry) { return is_kernel(entry.first); });
  for (const auto& [key, value] : from)
    if (is_kernel(key)) to.emplace(key, value);
}

}  // namespace

UnevenStep uneven_step(std::span<const plan::StepPlan> plans, const engine::Timeline& even,
                       const std::vector<plan::Pace>& paces, engine::Driver driver,
                       Reduction reduction) {
  const graph::StepGraph& graph = plans.front().graph;
  const plan::Pipelines pipelines(plans.front().mesh);
  const std::vector<plan::PipelineClass> classes = pipelines.classes_of(
      paces, plans.size(),
      reduction == Reduction::none ? plan::Merge::nothing : plan::Merge::alike);
  std::vector<std::vector<Seconds>> durations;
  for (const plan::PipelineClass& one : classes)
    durations.push_back(plan::durations_of(one, plans));
  std::vector<std::size_t> kept(classes.size());
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = i;
  const bool few = classes.size() * operations_of(graph) <= kFew;
  if (classes.size() > 1 &&
      (reduction == Reduction::full || (reduction == Reduction::automatic && !few)))
    kept = deciding(graph, even, durations);
  std::vector<plan::Copy> copies;
  for (const std::size_t i : kept)
    copies.push_back({std::move(durations[i]), classes[i].pipelines});
  UnevenStep step;
  step.graph = plan::copied(graph, copies);
  step.timeline = engine::replay(step.graph, {.driver = driver});
  step.step_time = result::step_time(step.graph, step.timeline);
  step.pipelines = kept.size();
  return step;
}

spec::Scenario with_other_gpu(const spec::Scenario& scenario, std::size_t other) {
  spec::Scenario changed = scenario;
  changed.cluster.gpu = scenario.cluster.other_gpus[other].gpu;
  return changed;
}

cost::Profile with_other_gpu(const cost::Profile& profile, std::size_t other) {
  SCAPESIM_CHECK(other < profile.others.size(), "other GPU {} of {}", other, profile.others.size());
  cost::Profile changed = profile;
  take_kernels(changed.numbers, profile.others[other].numbers);
  take_kernels(changed.curves, profile.others[other].curves);
  return changed;
}

// [M404] Every drawn step is simulated as if it repeated; mean, standard deviation over n - 1.
UnevenRun uneven_run(const spec::Scenario& scenario, const workload::Workload& workload,
                     const cost::Profile& profile, const topology::Fabric& fabric,
                     const plan::StepPlan& even_plan, const engine::Timeline& even,
                     engine::Driver driver) {
  std::vector<plan::StepPlan> plans = {even_plan};
  for (std::size_t i = 0; i < scenario.cluster.other_gpus.size(); ++i)
    plans.push_back(
        plan::step_plan(with_other_gpu(scenario, i), workload, with_other_gpu(profile, i), fabric));
  const std::vector<plan::Pace> fixed = plan::paces_of(scenario);
  const int count = scenario.jitter.compute > 0 ? scenario.jitter.steps : 1;
  const auto drawn = [&](int step) {
    std::vector<plan::Pace> paces = fixed;
    plan::add_jitter(paces, scenario, step);
    return uneven_step(plans, even, paces, driver);
  };
  std::vector<double> times;
  for (int step = 0; step < count; ++step) times.push_back(drawn(step).step_time.si());
  const double mean = std::accumulate(times.begin(), times.end(), 0.0) / count;
  double squares = 0;
  for (const double time : times) squares += (time - mean) * (time - mean);
  const auto typical =
      std::ranges::min_element(times, {}, [&](double time) { return std::abs(time - mean); });
  UnevenRun run{.typical = drawn(static_cast<int>(typical - times.begin())), .spread = {}};
  run.spread = {.even = result::step_time(even_plan.graph, even),
                .steps = count,
                .mean = Seconds(mean),
                .deviation = Seconds(count > 1 ? std::sqrt(squares / (count - 1)) : 0),
                .shortest = Seconds(std::ranges::min(times)),
                .longest = Seconds(std::ranges::max(times)),
                .pipelines = run.typical.pipelines};
  return run;
}

}  // namespace scapesim
