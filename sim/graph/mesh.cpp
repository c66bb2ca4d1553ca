// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/mesh.hpp"

#include <algorithm>
#include <array>

#include "sim/base/check.hpp"

namespace scapesim::graph {

namespace {

using spec::MeshAxis;

/// One axis of the numbering: neighbours along it are `stride` ranks apart.
struct Extent {
  MeshAxis axis;
  int size = 1;
  int stride = 1;
  int coordinate(int rank) const { return rank / stride % size; }
};

using Numbering = std::vector<Extent>;

/// Axes in the mesh's order with strides; an axis of size 1 leaves no trace.
template <class SizeOf>
Numbering numbering(const Mesh& mesh, SizeOf size_of) {
  Numbering list;
  int stride = 1;
  for (const MeshAxis axis : mesh.order) {
    list.push_back({axis, size_of(axis), stride});
    stride *= list.back().size;
  }
  SCAPESIM_CHECK(stride == mesh.ranks(), "{} ranks numbered of {}", stride, mesh.ranks());
  return list;
}

Numbering dense_numbering(const Mesh& mesh) {
  return numbering(mesh, [&](MeshAxis axis) {
    switch (axis) {
      case MeshAxis::tp:
        return mesh.tp;
      case MeshAxis::cp:
        return mesh.cp;
      case MeshAxis::dp:
        return mesh.dp;
      case MeshAxis::pp:
        return mesh.pp;
      case MeshAxis::ep:
        return 1;
    }
    throw InternalError("axis of the mesh");
  });
}

/// The ranks as the experts see them: tensor, expert and data ranks of experts.
Numbering expert_numbering(const Mesh& mesh) {
  return numbering(mesh, [&](MeshAxis axis) {
    switch (axis) {
      case MeshAxis::tp:
        return mesh.expert_tp;
      case MeshAxis::ep:
        return mesh.ep;
      case MeshAxis::dp:
        return mesh.expert_dp();
      case MeshAxis::pp:
        return mesh.pp;
      case MeshAxis::cp:
        return 1;
    }
    throw InternalError("axis of the mesh");
  });
}

const Extent& extent_of(const Numbering& numbering, MeshAxis axis) {
  return *std::ranges::find(numbering, axis, &Extent::axis);
}

/// The numbering of an axis and which of its coordinates vary within a group.
struct View {
  Numbering numbering;
  std::vector<MeshAxis> varies;
};

/// Whether the ranks of a stage are numbered a second time for the experts.
bool splits_experts(const Mesh& mesh) { return mesh.ep > 1 || mesh.expert_tp != mesh.tp; }

View view_of(const Mesh& mesh, Axis axis) {
  if (axis == Axis::expert_data && !splits_experts(mesh)) axis = Axis::data;
  if (axis == Axis::expert && !splits_experts(mesh)) return {dense_numbering(mesh), {}};
  switch (axis) {
    case Axis::data:
      return {dense_numbering(mesh), {MeshAxis::cp, MeshAxis::dp}};
    case Axis::tensor:
      return {dense_numbering(mesh), {MeshAxis::tp}};
    case Axis::context:
      return {dense_numbering(mesh), {MeshAxis::cp}};
    case Axis::expert:
      return {expert_numbering(mesh), {MeshAxis::ep}};
    case Axis::expert_data:
      return {expert_numbering(mesh), {MeshAxis::dp}};
    case Axis::world:
      return {dense_numbering(mesh), {MeshAxis::tp, MeshAxis::cp, MeshAxis::dp}};
    case Axis::pipeline:
    case Axis::embedding:
    case Axis::shard:
    case Axis::replica:
      break;
  }
  throw InternalError("axis is no part of the numbering");
}

/// Neighbours among the data ranks share a copy.
std::vector<RankGroup> shard_groups(const std::vector<RankGroup>& data, int shard) {
  std::vector<RankGroup> groups;
  for (const RankGroup& all : data)
    for (auto first = all.begin(); first != all.end(); first += shard)
      groups.emplace_back(first, first + shard);
  return groups;
}

/// Ranks with the same place in their shard group.
std::vector<RankGroup> replica_groups(const std::vector<RankGroup>& data, int shard) {
  std::vector<RankGroup> groups;
  const auto width = static_cast<std::size_t>(shard);
  for (const RankGroup& all : data)
    for (std::size_t place = 0; place < width; ++place) {
      RankGroup& group = groups.emplace_back();
      for (std::size_t i = place; i < all.size(); i += width) group.push_back(all[i]);
    }
  return groups;
}

}  // namespace

Mesh mesh_of(const spec::Scenario& scenario) {
  const spec::Parallelism& p = scenario.parallelism;
  const int copies = spec::data_parallel_size(scenario) * p.cp;
  const bool groups = scenario.strategy.sharding == spec::Sharding::hsdp ||
                      scenario.strategy.method == spec::Method::zeropp;
  return {.tp = p.tp,
          .cp = p.cp,
          .ep = p.ep,
          .dp = spec::data_parallel_size(scenario),
          .pp = p.pp,
          .expert_tp = spec::expert_tensor_parallel(p),
          .shard = groups ? spec::shard_group(scenario) : copies,
          .order = p.order};
}

int group_size(const Mesh& mesh, Axis axis) {
  switch (axis) {
    case Axis::data:
      return mesh.dp * mesh.cp;
    case Axis::expert_data:
      return mesh.expert_dp();
    case Axis::tensor:
      return mesh.tp;
    case Axis::context:
      return mesh.cp;
    case Axis::expert:
      return mesh.ep;
    case Axis::pipeline:
    case Axis::embedding:
      return std::min(mesh.pp, 2);
    case Axis::shard:
      return mesh.shard;
    case Axis::replica:
      return mesh.dp * mesh.cp / mesh.shard;
    case Axis::world:
      return mesh.ranks();
  }
  throw InternalError("axis");
}

RankGroup ranks_of_stage(const Mesh& mesh, int stage) {
  const Extent pipeline = extent_of(dense_numbering(mesh), MeshAxis::pp);
  RankGroup list;
  list.reserve(static_cast<std::size_t>(mesh.stage_ranks()));
  for (int rank = 0; rank < mesh.ranks(); ++rank)
    if (pipeline.coordinate(rank) == stage) list.push_back(rank);
  return list;
}

// [M230] A group is named by its rank with all varying coordinates 0, its smallest.
std::vector<RankGroup> groups_of(const Mesh& mesh, Axis axis, int stage) {
  if (axis == Axis::shard) return shard_groups(groups_of(mesh, Axis::data, stage), mesh.shard);
  if (axis == Axis::replica) return replica_groups(groups_of(mesh, Axis::data, stage), mesh.shard);
  const View view = view_of(mesh, axis);
  std::vector<RankGroup> groups;
  std::vector<int> group_at(static_cast<std::size_t>(mesh.ranks()), -1);
  for (const int rank : ranks_of_stage(mesh, stage)) {
    int first = rank;
    for (const MeshAxis varying : view.varies) {
      const Extent& extent = extent_of(view.numbering, varying);
      first -= extent.coordinate(rank) * extent.stride;
    }
    int& group = group_at[static_cast<std::size_t>(first)];
    if (group < 0) {
      group = static_cast<int>(groups.size());
      groups.emplace_back();
    }
    groups[static_cast<std::size_t>(group)].push_back(rank);
  }
  return groups;
}

std::vector<RankGroup> pairs_of(const Mesh& mesh, int from_stage, int to_stage) {
  const RankGroup from = ranks_of_stage(mesh, from_stage);
  const RankGroup to = ranks_of_stage(mesh, to_stage);
  std::vector<RankGroup> pairs;
  for (std::size_t i = 0; i < from.size(); ++i) pairs.push_back({from[i], to[i]});
  return pairs;
}

}  // namespace scapesim::graph
