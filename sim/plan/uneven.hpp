// SPDX-License-Identifier: Apache-2.0
// Ranks that do not compute alike: slow parts, other GPUs, jitter. Ranks of a stage that meet
// inside every layer keep the pace of the slowest; such teams of all stages form a pipeline of
// their own until the data-parallel collectives, where the pipelines wait for each other. Pipelines
// that compute alike are simulated once.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/step_plan.hpp"

namespace scapesim::plan {

/// How a rank computes: which GPU it has (0: the cluster's own, i: other_gpus[i - 1]) and how many
/// times as long it takes as that GPU does.
struct Pace {
  std::size_t gpu = 0;
  double slowdown = 1;
};

/// Whether ranks of the job may differ.
bool is_uneven(const spec::Scenario& scenario);
/// What slow parts and other GPUs make of every rank; the slow-downs of one GPU multiply.
std::vector<Pace> paces_of(const spec::Scenario& scenario);
/// [M401] Paces of a drawn step: a factor of mean 1 per rank or node, a sequence of its own per
/// step, in which a rank's draw does not depend on how many there are.
void add_jitter(std::vector<Pace>& paces, const spec::Scenario& scenario, int step);
/// The p-quantile of a distribution of mean 1.
double jitter_quantile(const spec::Jitter& jitter, double p);

/// Slow-down of the slowest rank of a team by GPU; 0: the team has none.
using TeamPace = std::vector<double>;

/// Pipelines that compute alike.
struct PipelineClass {
  std::vector<TeamPace> stages;
  int pipelines = 1;
};

/// alike: pipelines that compute alike are one class; nothing: each is its own.
enum class Merge { alike, nothing };

/// [M402] Which ranks form pipelines: joined by tensor, context and expert groups and by stages.
class Pipelines {
 public:
  explicit Pipelines(const graph::Mesh& mesh);
  /// Classes in order of their first ranks. Without stages a class that is nowhere slower than
  /// another counts with that one: it arrives at no collective last.
  std::vector<PipelineClass> classes_of(const std::vector<Pace>& paces, std::size_t gpus,
                                        Merge merge = Merge::alike) const;
  std::size_t count() const { return count_; }

 private:
  graph::Mesh mesh_;
  std::vector<std::uint32_t> pipeline_of_;  ///< per rank
  std::vector<std::uint32_t> stage_of_;     ///< per rank
  std::size_t count_ = 0;
};

/// Durations of every operation of a pipeline, class after class of the plans' graphs: plans[i] is
/// planned with GPU i, all alike but for durations.
std::vector<Seconds> durations_of(const PipelineClass& pipeline, std::span<const StepPlan> plans);

/// A pipeline in a graph: what its operations take.
struct Copy {
  std::vector<Seconds> durations;
  int pipelines = 1;
};

/// The graph with a copy of every class per pipeline. Messages between stages and calls of
/// tensor-parallel groups stay within a copy and share its links as if all copies sent at once, as
/// the graph counts them; all other collectives wait for all copies.
graph::StepGraph copied(const graph::StepGraph& graph, std::span<const Copy> copies);

/// Whether a collective is one per pipeline.
bool within_pipeline(graph::Axis axis);

}  // namespace scapesim::plan
