// SPDX-License-Identifier: Apache-2.0
#include "sim/study/disturbances.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/plan/uneven.hpp"
#include "sim/result/metrics.hpp"
#include "sim/scenario/alter.hpp"
#include "sim/study/parallel.hpp"
#include "sim/study/workers.hpp"
#include "topologies/placement.hpp"

namespace scapesim::study {
namespace {

constexpr int kDrawnJitterSteps = 2;  // under each draw of the profile, where the scenario has more

/// One thing that goes wrong, as a key of the scenario.
struct Fault {
  std::string name;
  std::string key;
  std::string entry;  ///< joins those of a list; the value itself where the key is none
};

/// Faults of the job's first GPU and of what joins it to the others. A cluster that lacks a part
/// refuses its fault.
std::vector<Fault> faults_of(const spec::Scenario& scenario) {
  const spec::Cluster& cluster = scenario.cluster;
  const std::vector<topology::GpuId> gpus = topology::placement(cluster);
  const int gpu = static_cast<int>(gpus.front().value);
  const int node = gpu / cluster.gpus_per_node;
  const int nic = node * cluster.nics_per_node;
  std::vector<Fault> list = {
      {"one GPU 10 % slower", "cluster.stragglers", fmt::format("GPU {} = 1.1", gpu)}};
  if (scenario.parallelism.pp > 1)
    list.push_back({"one of the last stage 10 % slower", "cluster.stragglers",
                    fmt::format("GPU {} = 1.1", gpus.back().value)});
  if (cluster.gpus_per_node > 1)
    list.push_back(
        {"one node 10 % slower", "cluster.stragglers", fmt::format("node {} = 1.1", node)});
  list.push_back(
      {"one adapter at half its rate", "cluster.degraded", fmt::format("NIC {} = 0.5", nic)});
  list.push_back(
      {"one adapter at a tenth of its rate", "cluster.degraded", fmt::format("NIC {} = 0.1", nic)});
  const std::string inside =
      cluster.node_fabric == spec::NodeFabric::switch_
          ? fmt::format("GPU {} - node switch {}", gpu, node / cluster.nvlink_domain_nodes)
      : cluster.node_fabric == spec::NodeFabric::pcie
          ? fmt::format("GPU {}", gpu)
          : fmt::format("GPU {} - GPU {}", gpu, gpu + 1);
  if (cluster.gpus_per_node > 1)
    list.push_back(
        {"one GPU's link in its node at half its rate", "cluster.degraded", inside + " = 0.5"});
  list.push_back({"one leaf switch's way up at half its rate", "cluster.degraded",
                  "leaf switch 0 - spine switch 0 = 0.5"});
  if (scenario.jitter.compute == 0)
    list.push_back({"every GPU's pace jitters by 2 %", "jitter.compute", "2%"});
  return list;
}

/// Texts between quotes.
std::vector<std::string> quoted_words(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t begin = text.find('"'); begin != std::string_view::npos;) {
    const std::size_t end = text.find('"', begin + 1);
    words.emplace_back(text.substr(begin + 1, end - begin - 1));
    begin = text.find('"', end + 1);
  }
  return words;
}

std::string current_text(const spec::Scenario& scenario, const std::string& key) {
  for (const scenario::KeyValue& other : scenario::key_values(scenario))
    if (other.key == key) return other.text;
  return "";
}

/// The scenario with a fault beside those it has, and the key's value as after --set.
struct Faulty {
  spec::Scenario scenario;
  std::string value;
};
std::optional<Faulty> with_fault(const spec::Scenario& scenario, const Fault& fault) {
  const std::string before = current_text(scenario, fault.key);
  scenario::Value value(fault.entry);
  std::string text = fmt::format("\"{}\"", fault.entry);
  if (before.starts_with('[')) {
    std::vector<std::string> entries = quoted_words(before);
    entries.push_back(fault.entry);
    text = fmt::format("[\"{}\"]", fmt::join(entries, "\", \""));
    value = std::move(entries);
  }
  auto altered = scenario::altered(scenario, fault.key, value);
  auto* faulty = std::get_if<spec::Scenario>(&altered);
  if (faulty == nullptr) return std::nullopt;
  return Faulty{std::move(*faulty), std::move(text)};
}

/// Step under every draw; none where the drawn profile does not let it fit.
using Drawn = std::vector<std::optional<Seconds>>;

Drawn steps_under_draws(spec::Scenario scenario, const cost::Profile& profile, int count) {
  scenario.jitter.steps = std::min(scenario.jitter.steps, kDrawnJitterSteps);
  std::vector<cost::Draw> draws = {{}};  // the profile itself
  for (const cost::Draw& draw : cost::draws(count)) draws.push_back(draw);
  return parallel(draws.size(), usable_processors(), [&](std::size_t i) -> std::optional<Seconds> {
    const cost::Profile drawn = i == 0 ? profile : cost::perturbed(profile, draws[i]);
    const result::Outcome outcome =
        predict(scenario, drawn, {.driver = engine::Driver::standalone, .interval_draws = 0})
            .outcome;
    const auto* run = std::get_if<result::Run>(&outcome);
    return run == nullptr ? std::nullopt : std::optional(run->step_time);
  });
}

// [M376] Quantiles of the slow-downs under each draw of the profile, the same on both sides. Where
// draws simulate fewer jittered steps than the row, what these cost counts as much as there.
void add_interval(Disturbance& row, const Drawn& base, const Drawn& faulty, double level) {
  constexpr double kLeast = 1e-9;  // a cost that rounding could be
  if (!base.front() || !faulty.front()) return;
  const double cost = *faulty.front() / *base.front() - 1;
  const double scale = cost > kLeast ? (row.slowdown - 1) / cost : 1;
  std::vector<Seconds> ratios;  // pure numbers, for the quantiles of times
  for (std::size_t i = 1; i < base.size(); ++i)
    if (base[i] && faulty[i]) ratios.emplace_back(1 + scale * (*faulty[i] / *base[i] - 1));
  if (ratios.empty()) return;
  const result::Interval interval =
      result::interval_of(std::move(ratios), Seconds(row.slowdown), level);
  row.low = interval.low.si();
  row.high = interval.high.si();
}

/// Of single jittered steps, over the undisturbed one.
std::optional<double> deviation_of(const result::Run& run, const result::Run& base) {
  if (!run.uneven || run.uneven->steps < 2) return std::nullopt;
  return run.uneven->deviation / base.step_time;
}

}  // namespace

std::vector<Disturbance> disturbances(const Series& series, const result::Run& base,
                                      const PredictOptions& options) {
  const int draws = options.interval_draws;
  PredictOptions fast = options;
  fast.interval_draws = 0;
  Drawn base_drawn;
  if (draws > 0) base_drawn = steps_under_draws(series.scenario, series.profile, draws);
  std::vector<Disturbance> rows;
  for (const Fault& fault : faults_of(series.scenario)) {
    const std::optional<Faulty> faulty = with_fault(series.scenario, fault);
    if (!faulty) continue;
    const result::Outcome outcome = predict(faulty->scenario, series.profile, fast).outcome;
    const auto& run = std::get<result::Run>(outcome);
    Disturbance row{.name = fault.name,
                    .key = fault.key,
                    .value = faulty->value,
                    .step_time = run.step_time,
                    .slowdown = run.step_time / base.step_time,
                    .deviation = deviation_of(run, base)};
    if (draws > 0)
      add_interval(row, base_drawn, steps_under_draws(faulty->scenario, series.profile, draws),
                   run.interval_level);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace scapesim::study
