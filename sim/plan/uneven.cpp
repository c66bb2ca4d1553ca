// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/uneven.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "sim/base/check.hpp"
#include "sim/base/random.hpp"
#include "sim/cost/profile.hpp"
#include "topologies/placement.hpp"

namespace scapesim::plan {

namespace {

/// Sets of ranks that are merged pair by pair.
class Sets {
 public:
  explicit Sets(int count) : above_(static_cast<std::size_t>(count)) {
    std::iota(above_.begin(), above_.end(), 0U);
  }
  std::uint32_t find(std::uint32_t rank) {
    while (above_[rank] != rank) rank = above_[rank] = above_[above_[rank]];
    return rank;
  }
  void merge(const std::vector<graph::RankGroup>& groups) {
    for (const graph::RankGroup& group : groups)
      for (const int rank : group) {
        const std::uint32_t a = find(static_cast<std::uint32_t>(group.front()));
        const std::uint32_t b = find(static_cast<std::uint32_t>(rank));
        above_[std::max(a, b)] = std::min(a, b);
      }
  }

 private:
  std::vector<std::uint32_t> above_;
};

bool holds(const spec::Straggler& straggler, topology::GpuId gpu, int node) {
  const int number = straggler.part == spec::JitterScope::node ? node : static_cast<int>(gpu.value);
  return number >= straggler.first && number <= straggler.last;
}

/// Never faster anywhere, and for every GPU that the other has.
bool at_least(const PipelineClass& slow, const PipelineClass& fast) {
  for (std::size_t s = 0; s < slow.stages.size(); ++s)
    for (std::size_t g = 0; g < slow.stages[s].size(); ++g)
      if (slow.stages[s][g] < fast.stages[s][g]) return false;
  return true;
}

/// Those that no other is at least as slow as; it takes the others in.
std::vector<PipelineClass> undominated(const std::vector<PipelineClass>& classes) {
  std::vector<PipelineClass> kept;
  for (PipelineClass one : classes) {
    const auto slower = std::ranges::find_if(
        kept, [&](const PipelineClass& other) { return at_least(other, one); });
    if (slower != kept.end()) {
      slower->pipelines += one.pipelines;
      continue;
    }
    std::erase_if(kept, [&](const PipelineClass& other) {
      const bool goes = at_least(one, other);
      if (goes) one.pipelines += other.pipelines;
      return goes;
    });
    kept.push_back(std::move(one));
  }
  return kept;
}

}  // namespace

bool is_uneven(const spec::Scenario& scenario) {
  return scenario.jitter.compute > 0 || !scenario.cluster.stragglers.empty() ||
         !scenario.cluster.other_gpus.empty();
}

std::vector<Pace> paces_of(const spec::Scenario& scenario) {
  const spec::Cluster& cluster = scenario.cluster;
  std::vector<Pace> paces;
  for (const topology::GpuId gpu : topology::placement(cluster)) {
    const int node = static_cast<int>(gpu.value) / cluster.gpus_per_node;
    Pace& pace = paces.emplace_back();
    for (std::size_t i = 0; i < cluster.other_gpus.size(); ++i)
      if (node >= cluster.other_gpus[i].first && node <= cluster.other_gpus[i].last)
        pace.gpu = i + 1;
    for (const spec::Straggler& straggler : cluster.stragglers)
      if (holds(straggler, gpu, node)) pace.slowdown *= straggler.slowdown;
  }
  return paces;
}

// [M401] normal: 1 + s z, at least 0.1; lognormal: exp(u z - u^2/2) with u^2 = ln(1 + s^2);
// exponential: 1 - s + s e, e exponential of mean 1. Mean 1 and standard deviation s each.
double jitter_quantile(const spec::Jitter& jitter, double p) {
  constexpr double kFastest = 0.1;
  const double s = jitter.compute;
  switch (jitter.distribution) {
    case spec::JitterDistribution::normal:
      return std::max(1 + s * cost::normal_quantile(p), kFastest);
    case spec::JitterDistribution::lognormal: {
      const double variance = std::log1p(s * s);
      return std::exp(std::sqrt(variance) * cost::normal_quantile(p) - variance / 2);
    }
    case spec::JitterDistribution::exponential:
      return 1 - s - s * std::log1p(-p);
  }
  throw InternalError("distribution of jitter");
}

void add_jitter(std::vector<Pace>& paces, const spec::Scenario& scenario, int step) {
  const spec::Jitter& jitter = scenario.jitter;
  if (jitter.compute == 0) return;
  Random random(Random(static_cast<std::uint64_t>(jitter.seed)).bits() +
                Random(static_cast<std::uint64_t>(step)).bits());
  const auto draw = [&] { return jitter_quantile(jitter, random.uniform() + 0x1p-54); };
  if (jitter.scope == spec::JitterScope::rank) {
    for (Pace& pace : paces) pace.slowdown *= draw();
    return;
  }
  const std::vector<topology::GpuId> gpus = topology::placement(scenario.cluster);
  std::map<int, double> of_node;  // drawn in order of their first ranks
  for (std::size_t rank = 0; rank < paces.size(); ++rank) {
    const int node = static_cast<int>(gpus[rank].value) / scenario.cluster.gpus_per_node;
    const auto [entry, is_new] = of_node.try_emplace(node);
    if (is_new) entry->second = draw();
    paces[rank].slowdown *= entry->second;
  }
}

Pipelines::Pipelines(const graph::Mesh& mesh)
    : mesh_(mesh),
      pipeline_of_(static_cast<std::size_t>(mesh.ranks())),
      stage_of_(pipeline_of_.size()) {
  Sets sets(mesh.ranks());
  for (int stage = 0; stage < mesh.pp; ++stage) {
    for (const int rank : graph::ranks_of_stage(mesh, stage))
      stage_of_[static_cast<std::size_t>(rank)] = static_cast<std::uint32_t>(stage);
    if (stage > 0) sets.merge(graph::pairs_of(mesh, stage - 1, stage));
    for (const graph::Axis axis : {graph::Axis::tensor, graph::Axis::context, graph::Axis::expert})
      if (graph::group_size(mesh, axis) > 1) sets.merge(graph::groups_of(mesh, axis, stage));
  }
  std::map<std::uint32_t, std::uint32_t> numbers;
  for (std::uint32_t rank = 0; rank < pipeline_of_.size(); ++rank)
    pipeline_of_[rank] =
        numbers.try_emplace(sets.find(rank), static_cast<std::uint32_t>(numbers.size()))
            .first->second;
  count_ = numbers.size();
}

std::vector<PipelineClass> Pipelines::classes_of(const std::vector<Pace>& paces, std::size_t gpus,
                                                 Merge merge) const {
  const PipelineClass untouched{
      .stages = std::vector<TeamPace>(static_cast<std::size_t>(mesh_.pp), TeamPace(gpus))};
  std::vector<PipelineClass> all(count_, untouched);
  for (std::size_t rank = 0; rank < paces.size(); ++rank) {
    double& slowest = all[pipeline_of_[rank]].stages[stage_of_[rank]][paces[rank].gpu];
    slowest = std::max(slowest, paces[rank].slowdown);
  }
  if (merge == Merge::nothing) return all;
  std::vector<PipelineClass> classes;
  std::map<std::vector<TeamPace>, std::size_t> known;
  for (PipelineClass& one : all) {
    const auto [entry, is_new] = known.try_emplace(one.stages, classes.size());
    if (is_new)
      classes.push_back(std::move(one));
    else
      ++classes[entry->second].pipelines;
  }
  return mesh_.pp == 1 ? undominated(classes) : classes;
}

std::vector<Seconds> durations_of(const PipelineClass& pipeline, std::span<const StepPlan> plans) {
  std::vector<Seconds> list;
  for (std::size_t stage = 0; stage < pipeline.stages.size(); ++stage) {
    std::vector<Seconds> slowest;
    for (std::size_t gpu = 0; gpu < plans.size(); ++gpu) {
      const double slowdown = pipeline.stages[stage][gpu];
      if (slowdown == 0) continue;
      std::vector<Seconds> durations = plans[gpu].durations(stage, slowdown);
      if (slowest.empty()) slowest.assign(durations.size(), Seconds(0));
      SCAPESIM_CHECK(slowest.size() == durations.size(), "{} and {} operations", slowest.size(),
                     durations.size());
      std::ranges::transform(slowest, durations, slowest.begin(),
                             [](Seconds a, Seconds b) { return std::max(a, b); });
    }
    list.insert(list.end(), slowest.begin(), slowest.end());
  }
  return list;
}

bool within_pipeline(graph::Axis axis) {
  return axis == graph::Axis::pipeline || axis == graph::Axis::embedding ||
         axis == graph::Axis::tensor;
}

namespace {

/// Loads on the resources of one copy.
void append_loads(std::vector<graph::Load>& loads, const std::vector<graph::Load>& of_graph,
                  std::uint32_t offset) {
  for (const graph::Load& load : of_graph)
    loads.push_back({{load.resource.value + offset}, load.flows});
}

class Copier {
 public:
  Copier(const graph::StepGraph& graph, std::span<const Copy> copies)
      : graph_(graph), copies_(copies) {
    for (const Copy& copy : copies) pipelines_ += copy.pipelines;
  }

  graph::StepGraph copied() {
    out_.period = graph_.period;
    out_.training_steps = graph_.training_steps;
    for (std::size_t copy = 0; copy < copies_.size(); ++copy)
      out_.resources.insert(out_.resources.end(), graph_.resources.begin(), graph_.resources.end());
    for (const graph::Collective& collective : graph_.collectives) add(collective);
    for (std::size_t copy = 0; copy < copies_.size(); ++copy) add_classes(copy);
    return std::move(out_);
  }

 private:
  std::uint32_t resources_of(std::size_t copy) const {
    return static_cast<std::uint32_t>(copy * graph_.resources.size());
  }
  std::uint32_t classes_of(std::size_t copy) const {
    return static_cast<std::uint32_t>(copy * graph_.classes.size());
  }

  /// A collective of the copies from the first to before the last.
  void add(const graph::Collective& collective, std::size_t first, std::size_t last) {
    graph::Collective one = collective;
    one.members.clear();
    for (graph::Phase& phase : one.phases) phase.loads.clear();
    for (std::size_t copy = first; copy < last; ++copy) {
      for (const graph::RankClassId member : collective.members)
        one.members.push_back({classes_of(copy) + member.value});
      for (std::size_t phase = 0; phase < one.phases.size(); ++phase)
        append_loads(one.phases[phase].loads, collective.phases[phase].loads, resources_of(copy));
    }
    out_.collectives.push_back(std::move(one));
  }

  void add(const graph::Collective& collective) {
    first_.push_back(static_cast<std::uint32_t>(out_.collectives.size()));
    const bool within = within_pipeline(collective.axis);
    own_.push_back(within);
    if (!within) return add(collective, 0, copies_.size());
    for (std::size_t copy = 0; copy < copies_.size(); ++copy) add(collective, copy, copy + 1);
  }

  void add_classes(std::size_t copy) {
    std::size_t duration = 0;
    for (const graph::RankClass& rank_class : graph_.classes) {
      graph::RankClass& one = out_.classes.emplace_back(rank_class);
      one.ranks = rank_class.ranks / pipelines_ * copies_[copy].pipelines;
      if (copies_.size() > 1) one.name += ", pipelines like " + std::to_string(copy);
      for (graph::Operation& operation : one.operations) {
        const Seconds takes = copies_[copy].durations.at(duration++);
        if (operation.work == graph::Work::local)
          operation.duration = takes;
        else if (operation.work == graph::Work::collective)
          place(operation.collective, copy);
        for (graph::Load& load : operation.transfer.loads)
          load.resource.value += resources_of(copy);
      }
    }
  }

  void place(graph::CollectiveId& id, std::size_t copy) const {
    const std::size_t collective = index(id);
    id.value = first_[collective] + (own_[collective] ? static_cast<std::uint32_t>(copy) : 0U);
  }

  const graph::StepGraph& graph_;
  std::span<const Copy> copies_;
  int pipelines_ = 0;
  graph::StepGraph out_;
  std::vector<std::uint32_t> first_;  ///< per collective of the graph
  std::vector<bool> own_;             ///< per collective of the graph: one per copy
};

}  // namespace

graph::StepGraph copied(const graph::StepGraph& graph, std::span<const Copy> copies) {
  return Copier(graph, copies).copied();
}

}  // namespace scapesim::plan
