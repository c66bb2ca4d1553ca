// SPDX-License-Identifier: Apache-2.0
// Host lanes: order within a lane, events between lanes, collectives of all ranks, and faults that
// are told.
#include "kernels/step/deferred.hpp"

#include <catch2/catch.hpp>

using namespace scapesim;
using namespace scapesim::step;

TEST_CASE("a copy that waits for an event sees what was written before it, in any order") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    DeferredWorld world(1, seed);
    Backend& rank = world.rank(0);
    auto* a = rank.array<int>(1);
    auto* b = rank.array<int>(1);
    const int seven = 7;
    rank.copy(Lane::copy_in, a, &seven, sizeof(int));
    rank.wait(Lane::compute, rank.record(Lane::copy_in));
    rank.copy(Lane::compute, b, a, sizeof(int));
    rank.synchronise();
    CHECK(*b == 7);
  }
}

TEST_CASE("lanes without an event between them run in either order") {
  int first = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    DeferredWorld world(1, seed);
    Backend& rank = world.rank(0);
    auto* a = rank.array<int>(1);
    const int one = 1;
    const int two = 2;
    rank.copy(Lane::copy_in, a, &one, sizeof(int));
    rank.copy(Lane::copy_out, a, &two, sizeof(int));
    world.run();
    first += *a == 2 ? 1 : 0;
  }
  CHECK(first > 0);
  CHECK(first < 50);
}

TEST_CASE("collectives happen once all ranks have come to them") {
  DeferredWorld world(3);
  std::vector<float*> values;
  for (int rank = 0; rank < 3; ++rank) {
    values.push_back(world.rank(rank).array<float>(2));
    values.back()[0] = static_cast<float>(rank);
    values.back()[1] = 6;
    world.rank(rank).all_reduce_mean(Lane::payload, values.back(), 2);
  }
  world.run();
  for (const float* value : values) {
    CHECK(value[0] == 1);
    CHECK(value[1] == 6);
  }
  REQUIRE(world.calls().size() == 1);
  CHECK(world.calls()[0].bytes == 8);
}

TEST_CASE("ranks that call different collectives, or wait for each other, are told") {
  DeferredWorld different(2);
  auto* values = different.rank(0).array<float>(4);
  auto* others = different.rank(1).array<float>(4);
  different.rank(0).all_reduce_mean(Lane::payload, values, 4);
  different.rank(1).all_reduce_sum(Lane::payload, others, 4);
  CHECK_THROWS_WITH(different.run(), Catch::Matchers::Contains("another collective"));

  DeferredWorld alone(2);
  alone.rank(0).all_reduce_mean(Lane::payload, alone.rank(0).array<float>(4), 4);
  CHECK_THROWS_WITH(alone.run(), Catch::Matchers::Contains("all lanes wait"));
}
