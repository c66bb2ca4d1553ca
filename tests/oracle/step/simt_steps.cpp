// SPDX-License-Identifier: Apache-2.0
// The step of a device with the kernels' own source, on the CPU: ranks, lanes in random orders and
// ring collectives give the reference's bits after several steps.
#include <catch2/catch.hpp>

#include "kernels/step/deferred.hpp"
#include "kernels/step/program.hpp"

using namespace scapesim;
using namespace scapesim::step;

namespace {

Difference worst(const ProgramOptions& options, std::uint64_t seed) {
  DeferredWorld world(options.ranks, seed);
  std::vector<std::unique_ptr<RankProgram>> programs;
  for (int rank = 0; rank < options.ranks; ++rank)
    programs.push_back(std::make_unique<RankProgram>(world.rank(rank), options, nullptr));
  for (int step = 0; step < options.steps; ++step)
    for (const auto& program : programs) program->enqueue_step(step);
  world.run();
  const std::vector<RankState> expected = reference_states(options);
  Difference sum;
  for (std::size_t rank = 0; rank < programs.size(); ++rank) {
    const Difference one = difference(programs[rank]->state(), expected[rank]);
    sum.mask += one.mask;
    sum.weights += one.weights;
    sum.moment += one.moment;
    sum.residual += one.residual;
  }
  return sum;
}

void check_equal(const ProgramOptions& options) {
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    INFO(options.ranks << " ranks, seed " << seed);
    const Difference sum = worst(options, seed);
    CHECK(sum.mask == 0);
    CHECK(sum.weights == 0);
    CHECK(sum.moment == 0);
    CHECK(sum.residual == 0);
  }
}

/// Not a whole number of tiles, chunks or words per rank.
ProgramOptions small(int ranks) {
  ProgramOptions options;
  options.ranks = ranks;
  options.steps = 3;
  options.elements = 7001;
  options.step.chunk = 3000;
  return options;
}

}  // namespace

TEST_CASE("kernels and step give the reference's result on one, two and three ranks") {
  for (const int ranks : {1, 2, 3}) check_equal(small(ranks));
}

TEST_CASE("kernels and step give the reference's result with shards and state on the host") {
  ProgramOptions options = small(2);
  options.step.sharding = reference::Sharding::distributed;
  options.step.residual = Placement::staged;
  options.step.replica = Placement::staged;
  check_equal(options);
  options.step.residual = Placement::direct;
  check_equal(options);
}

TEST_CASE("kernels and step give the reference's result when the clip fires and densities fall") {
  ProgramOptions options = small(2);
  options.step.adam.clip = 0.05;
  options.step.density = 0.02;
  options.step.density_warmup = 2;
  check_equal(options);
}
