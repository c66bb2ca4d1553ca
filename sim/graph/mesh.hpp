// SPDX-License-Identifier: Apache-2.0
// Ranks as points of a mesh, as Megatron-LM numbers them: the first axis of the order varies
// fastest. Expert-parallel ranks are a second view of the ranks of a pipeline stage.
#pragma once

#include <vector>

#include "sim/graph/graph.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::graph {

struct Mesh {
  int tp = 1;
  int cp = 1;
  int ep = 1;
  int dp = 1;
  int pp = 1;
  int expert_tp = 1;  ///< tensor parallelism inside an expert
  int shard = 1;      ///< data ranks that share one copy of the parameters
  spec::MeshOrder order = spec::kMegatronOrder;

  int ranks() const { return tp * cp * dp * pp; }
  int stage_ranks() const { return tp * cp * dp; }
  /// Copies of an expert.
  int expert_dp() const { return stage_ranks() / (expert_tp * ep); }
};

Mesh mesh_of(const spec::Scenario& scenario);

/// Ranks in ascending order.
using RankGroup = std::vector<int>;

/// Ranks of one group of the axis: dp * cp for data, the stage's ranks for world.
int group_size(const Mesh& mesh, Axis axis);

/// [M230] The groups of an axis within one pipeline stage, in the order of their first ranks; they
/// partition the ranks of the stage. Not for axes that join stages.
std::vector<RankGroup> groups_of(const Mesh& mesh, Axis axis, int stage);

/// Ranks of a pipeline stage, ascending.
RankGroup ranks_of_stage(const Mesh& mesh, int stage);

/// Pairs of ranks, one of each stage, that differ in their stage only.
std::vector<RankGroup> pairs_of(const Mesh& mesh, int from_stage, int to_stage);

}  // namespace scapesim::graph
