// SPDX-License-Identifier: Apache-2.0
// [M230] Every axis partitions the ranks of a stage into groups of its size; axes of one view meet
// in one rank.
#include "sim/graph/mesh.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "sim/base/random.hpp"

using namespace scapesim;
using graph::Axis;
using graph::Mesh;
using graph::RankGroup;

namespace {

constexpr Axis kAxes[] = {Axis::data,   Axis::expert_data, Axis::tensor, Axis::context,
                          Axis::expert, Axis::shard,       Axis::replica};

int power_of_two(Random& random, std::uint64_t most) { return 1 << random.below(most + 1); }

/// Degrees that divide, in a random order of axes.
Mesh random_mesh(Random& random) {
  Mesh mesh;
  mesh.tp = power_of_two(random, 2);
  mesh.cp = power_of_two(random, 2);
  mesh.dp = power_of_two(random, 3);
  mesh.pp = 1 + static_cast<int>(random.below(3));
  mesh.expert_tp = random.below(2) ? mesh.tp : 1;
  while (mesh.stage_ranks() % (mesh.expert_tp * mesh.ep * 2) == 0 && random.below(3)) mesh.ep *= 2;
  while (mesh.dp * mesh.cp % (mesh.shard * 2) == 0 && random.below(3)) mesh.shard *= 2;
  for (std::size_t i = mesh.order.size(); i-- > 1;)
    std::swap(mesh.order[i], mesh.order[random.below(i + 1)]);
  // The experts' view of a stage needs the stages apart.
  auto pipeline = std::ranges::find(mesh.order, spec::MeshAxis::pp);
  if (mesh.ep > 1 || mesh.expert_tp != mesh.tp)
    std::rotate(pipeline, pipeline + 1, mesh.order.end());
  return mesh;
}

RankGroup flattened(const std::vector<RankGroup>& groups) {
  RankGroup all;
  for (const RankGroup& group : groups) all.insert(all.end(), group.begin(), group.end());
  std::ranges::sort(all);
  return all;
}

std::vector<RankGroup> groups(const Mesh& mesh, Axis axis) { return groups_of(mesh, axis, 0); }

}  // namespace

TEST_CASE("[M230] groups of every axis partition each stage's ranks, and have the axis's size") {
  Random random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const Mesh mesh = random_mesh(random);
    RankGroup everybody;
    for (int stage = 0; stage < mesh.pp; ++stage) {
      const RankGroup ranks = ranks_of_stage(mesh, stage);
      REQUIRE(std::ssize(ranks) == mesh.stage_ranks());
      everybody.insert(everybody.end(), ranks.begin(), ranks.end());
      for (const Axis axis : kAxes) {
        const auto list = groups_of(mesh, axis, stage);
        CHECK(flattened(list) == ranks);
        for (const RankGroup& group : list) {
          CHECK(std::ssize(group) == group_size(mesh, axis));
          CHECK(std::ranges::is_sorted(group));
        }
      }
    }
    std::ranges::sort(everybody);
    CHECK(std::ssize(everybody) == mesh.ranks());
    CHECK(std::ranges::adjacent_find(everybody) == everybody.end());
  }
}

TEST_CASE("[M230] groups of two axes of one view share one rank at most") {
  Random random(2);
  const std::pair<Axis, Axis> pairs[] = {{Axis::data, Axis::tensor},
                                         {Axis::context, Axis::tensor},
                                         {Axis::expert, Axis::expert_data},
                                         {Axis::shard, Axis::replica}};
  for (int trial = 0; trial < 100; ++trial) {
    const Mesh mesh = random_mesh(random);
    for (const auto& [one, other] : pairs)
      for (const RankGroup& a : groups(mesh, one))
        for (const RankGroup& b : groups(mesh, other)) {
          RankGroup both;
          std::ranges::set_intersection(a, b, std::back_inserter(both));
          CHECK(both.size() <= 1);
        }
  }
}

TEST_CASE(
    "[M230] context groups lie inside data groups; shards and replicas make up a data group") {
  Random random(3);
  for (int trial = 0; trial < 100; ++trial) {
    const Mesh mesh = random_mesh(random);
    for (const Axis inner : {Axis::context, Axis::shard, Axis::replica})
      for (const RankGroup& part : groups(mesh, inner)) {
        const auto data = groups(mesh, Axis::data);
        CHECK(std::ranges::any_of(
            data, [&](const RankGroup& all) { return std::ranges::includes(all, part); }));
      }
  }
}

TEST_CASE("ranks are numbered as Megatron-LM numbers them") {
  const Mesh mesh{.tp = 2, .cp = 1, .ep = 2, .dp = 4, .pp = 2, .expert_tp = 2, .shard = 2};
  CHECK(groups_of(mesh, Axis::tensor, 0).front() == RankGroup{0, 1});
  CHECK(groups_of(mesh, Axis::data, 0) == std::vector<RankGroup>{{0, 2, 4, 6}, {1, 3, 5, 7}});
  CHECK(groups_of(mesh, Axis::expert, 0) == std::vector<RankGroup>{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
  CHECK(groups_of(mesh, Axis::expert_data, 0) ==
        std::vector<RankGroup>{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
  CHECK(groups_of(mesh, Axis::tensor, 1).front() == RankGroup{8, 9});
  CHECK(pairs_of(mesh, 0, 1).front() == RankGroup{0, 8});
}

TEST_CASE("the order of the axes says which ranks are neighbours") {
  Mesh mesh{.tp = 2, .cp = 1, .ep = 1, .dp = 2, .pp = 2, .expert_tp = 2, .shard = 2};
  using enum spec::MeshAxis;
  mesh.order = {tp, cp, ep, pp, dp};
  CHECK(ranks_of_stage(mesh, 0) == RankGroup{0, 1, 4, 5});
  CHECK(groups_of(mesh, Axis::data, 0) == std::vector<RankGroup>{{0, 4}, {1, 5}});
  CHECK(pairs_of(mesh, 0, 1) == std::vector<RankGroup>{{0, 2}, {1, 3}, {4, 6}, {5, 7}});
}
