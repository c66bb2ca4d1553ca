// SPDX-License-Identifier: Apache-2.0
// Groups of ranks as groups of GPUs.
#pragma once

#include "sim/graph/mesh.hpp"
#include "sim/plan/collectives.hpp"

namespace scapesim::plan {

/// Which GPU has which rank.
struct Seats {
  graph::Mesh mesh;
  const topology::Fabric& fabric;
  std::vector<topology::GpuId> gpu_of;  ///< per rank
};

/// The groups of an axis in one pipeline stage, node by node; of world and embedding those that
/// join stages.
GroupSet stage_groups(const Seats& seats, graph::Axis axis, int stage);

/// The groups of an axis in all stages: stages that do the same at about the same time.
GroupSet all_groups(const Seats& seats, graph::Axis axis);

/// A rank of one stage and its like in another, for every rank of a stage.
GroupSet stage_pairs(const Seats& seats, int from_stage, int to_stage);

}  // namespace scapesim::plan
