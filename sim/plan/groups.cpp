// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/groups.hpp"

#include "topologies/placement.hpp"

namespace scapesim::plan {

namespace {

Group gpus_of(const Seats& seats, const graph::RankGroup& ranks) {
  Group group;
  group.reserve(ranks.size());
  for (const int rank : ranks) group.push_back(seats.gpu_of[static_cast<std::size_t>(rank)]);
  return group;
}

void append(std::vector<Group>& list, const Seats& seats, graph::Axis axis, int stage) {
  for (const graph::RankGroup& ranks : graph::groups_of(seats.mesh, axis, stage))
    list.push_back(topology::node_by_node(seats.fabric, gpus_of(seats, ranks)));
}

}  // namespace

GroupSet stage_groups(const Seats& seats, graph::Axis axis, int stage) {
  if (axis == graph::Axis::world)
    return GroupSet(topology::node_by_node(seats.fabric, seats.gpu_of));
  if (axis == graph::Axis::embedding) return stage_pairs(seats, 0, seats.mesh.pp - 1);
  std::vector<Group> list;
  append(list, seats, axis, stage);
  return GroupSet(std::move(list));
}

GroupSet all_groups(const Seats& seats, graph::Axis axis) {
  std::vector<Group> list;
  for (int stage = 0; stage < seats.mesh.pp; ++stage) append(list, seats, axis, stage);
  return GroupSet(std::move(list));
}

GroupSet stage_pairs(const Seats& seats, int from_stage, int to_stage) {
  std::vector<Group> list;
  for (const graph::RankGroup& pair : graph::pairs_of(seats.mesh, from_stage, to_stage))
    list.push_back(gpus_of(seats, pair));
  return GroupSet(std::move(list));
}

}  // namespace scapesim::plan
