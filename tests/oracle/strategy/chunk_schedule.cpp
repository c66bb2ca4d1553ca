// SPDX-License-Identifier: Apache-2.0
// [M55] The chunks that a device's step moves are, in number, order and waits, the simulator's.
#include <catch2/catch.hpp>
#include <map>

#include "kernels/step/offload.hpp"
#include "sim/strategy/offload.hpp"
#include "tests/support/strategy.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

step::Stage stage_of(const graph::Operation& operation) {
  switch (operation.stream) {
    case graph::Stream::copy_in:
      return step::Stage::in;
    case graph::Stream::copy_out:
      return step::Stage::out;
    default:
      return step::Stage::pass;
  }
}

/// The simulator's pipeline of a state of some bytes, as moves without elements.
std::vector<step::ChunkMove> simulated(const Rig& rig, Bytes state) {
  strategy::Program program;
  strategy::add_pipelined(program, rig.context(),
                          {.name = "pass", .traffic = state, .formula = "M55"}, "state", state, {});
  std::map<step::Stage, std::size_t> count;
  std::vector<step::ChunkWait> self;
  for (const graph::Operation& operation : program.operations) {
    const step::Stage stage = stage_of(operation);
    self.push_back({stage, count[stage]++, 0});
  }
  std::vector<step::ChunkMove> moves;
  for (std::size_t i = 0; i < self.size(); ++i) {
    step::ChunkMove move;
    move.stage = self[i].stage;
    move.chunk = self[i].chunk;
    move.buffer = self[i].chunk % 2;
    for (const graph::Dependency& wait : program.operations[i].waits_for) {
      const step::ChunkWait& on = self[index(wait.op)];
      move.waits.push_back({on.stage, on.chunk, wait.steps_back});
    }
    moves.push_back(move);
  }
  return moves;
}

}  // namespace

TEST_CASE("[M55] a device moves the simulator's chunks: same number, same order, same waits") {
  for (const std::size_t chunks : {1, 2, 3, 4, 9}) {
    constexpr std::size_t kChunk = 1024;
    spec::Scenario scenario = scape_scenario(gpt({2, 20, 2, 30, 101}), 2, 0.1);
    scenario.strategy.offload_chunk = Bytes(4.0 * kChunk);
    const Rig rig(scenario);
    const std::size_t elements = chunks * kChunk;
    const auto expected = simulated(rig, Bytes(4.0 * static_cast<double>(elements)));
    const auto real = step::chunk_schedule(elements, kChunk);
    REQUIRE(real.size() == expected.size());
    for (std::size_t i = 0; i < real.size(); ++i) {
      INFO(chunks << " chunks, move " << i);
      CHECK(real[i].stage == expected[i].stage);
      CHECK(real[i].chunk == expected[i].chunk);
      CHECK(real[i].buffer == expected[i].buffer);
      CHECK(real[i].waits == expected[i].waits);
    }
  }
}
