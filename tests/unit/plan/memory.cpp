// SPDX-License-Identifier: Apache-2.0
// [M64] What a rank must hold at its fullest.
#include "sim/plan/memory.hpp"

#include <catch2/catch.hpp>

#include "tests/support/strategy.hpp"

using namespace scapesim;
using namespace scapesim::test;
using plan::MemoryNeed;

namespace {

MemoryNeed need_of(const spec::Scenario& scenario) {
  return plan::memory_need(scenario, workload::workload_of(scenario.model, scenario.training),
                           round_profile());
}

spec::Scenario with_micro_batch(spec::Scenario scenario, std::int64_t micro_batch) {
  scenario.training.micro_batch = micro_batch;
  scenario.training.global_batch = micro_batch * scenario.cluster.gpus;
  return scenario;
}

double sum_of(const MemoryNeed& need) {
  return (need.parameters + need.gradients + need.optimizer + need.strategy + need.activations +
          need.temporary)
      .si();
}

}  // namespace

TEST_CASE("[M64] the total is resident state, kept activations and the loss at its peak") {
  const spec::Scenario scenario = with_micro_batch(scenario_of(llama_1_8b(), 8), 8);
  const MemoryNeed need = need_of(scenario);
  const double n = 1'831'201'280, tokens = 8 * 1024;
  const double kept_per_token =
      24 * (2 * (4.0 * 2560 + 48 * 80 + 40 * 80 + 32 * 80 + 3 * 6912) + 4 * 32) + 2 * 2 * 2560;
  CHECK(need.activations.si() == tokens * kept_per_token);
  CHECK(need.temporary.si() == tokens * 32'000 * 8);
  CHECK(need.total.si() == (2 + 4 + 8) * n + tokens * (kept_per_token + 32'000 * 8));
  CHECK(need.context == Bytes(1e9));
}

TEST_CASE("the parts sum to the total, with every method and switch") {
  for (const auto sharding : {spec::Sharding::none, spec::Sharding::zero1}) {
    spec::Scenario dense = scenario_of(llama_500m(), 8);
    dense.strategy.sharding = sharding;
    spec::Scenario scape = scape_scenario(llama_500m(), 8, 0.1);
    scape.strategy.sharding = sharding;
    scape.strategy.offload.residual = true;
    for (const spec::Scenario& scenario : {dense, scape})
      CHECK(sum_of(need_of(scenario)) == need_of(scenario).total.si());
  }
}

TEST_CASE("[M64] the update's temporaries show only where activations do not cover them") {
  // One short sequence keeps little; a dense payload of SCAPE is 4 N bytes at the step's end.
  spec::Scenario scenario = scape_scenario(llama_1_8b(), 8, 1);
  scenario.training.sequence = 16;
  const MemoryNeed small = need_of(scenario);
  CHECK(small.activations + small.temporary > Bytes(4 * 1'831'201'280.0));
  scenario.strategy.payload_buffers = spec::PayloadBuffers::two;
  CHECK(need_of(scenario).total - small.total == Bytes(4 * 1'831'201'280.0));
  scenario.training.sequence = 8192;
  const MemoryNeed two = need_of(scenario);
  scenario.strategy.payload_buffers = spec::PayloadBuffers::one;
  CHECK(need_of(scenario).total == two.total);
}

TEST_CASE("a larger micro-batch never needs less memory") {
  for (const auto recompute :
       {spec::Recompute::none, spec::Recompute::selective, spec::Recompute::full}) {
    Bytes last;
    for (const std::int64_t micro_batch : {1, 2, 4, 8, 16}) {
      spec::Scenario scenario = with_micro_batch(scape_scenario(llama_1_8b(), 8, 0.1), micro_batch);
      scenario.training.recompute = recompute;
      const Bytes total = need_of(scenario).total;
      CHECK(total >= last);
      last = total;
    }
  }
}

TEST_CASE("more recomputation never needs more memory") {
  const auto total = [](spec::Recompute recompute) {
    spec::Scenario scenario = with_micro_batch(scenario_of(llama_1_8b(), 8), 8);
    scenario.training.recompute = recompute;
    return need_of(scenario).total;
  };
  CHECK(total(spec::Recompute::full) < total(spec::Recompute::selective));
  CHECK(total(spec::Recompute::selective) < total(spec::Recompute::none));
}

TEST_CASE("sharding the dense optimizer over P ranks saves 8 N (1 - 1/P)") {
  const double n = 1'831'201'280;
  for (const int ranks : {2, 8, 64}) {
    spec::Scenario scenario = with_micro_batch(scenario_of(llama_1_8b(), ranks), 8);
    const Bytes replicated = need_of(scenario).total;
    scenario.strategy.sharding = spec::Sharding::zero1;
    CHECK((replicated - need_of(scenario).total).si() ==
          Approx(8 * n * (1 - 1.0 / ranks)).epsilon(1e-9));  // a difference of larger sums
  }
}

TEST_CASE("offloading the residual saves 4 N less two buffers in the total, too") {
  spec::Scenario scenario = with_micro_batch(scape_scenario(llama_1_8b(), 8, 0.1), 8);
  const Bytes resident = need_of(scenario).total;
  scenario.strategy.offload.residual = true;
  CHECK((resident - need_of(scenario).total).si() == 4 * 1'831'201'280.0 - 2 * 4 * 32'000.0 * 2560);
}

TEST_CASE("[M424] what the allocator reserves beyond is a share of activations and temporaries") {
  const spec::Scenario scenario = with_micro_batch(scenario_of(llama_1_8b(), 8), 8);
  const auto work = workload::workload_of(scenario.model, scenario.training);
  cost::Profile profile = round_profile();
  const MemoryNeed without = plan::memory_need(scenario, work, profile);
  profile.numbers["memory.fragmentation"] = exactly(0.05, cost::Factor::hbm);
  const MemoryNeed with = plan::memory_need(scenario, work, profile);
  const Bytes moving = without.activations + without.temporary;
  CHECK(with.activations == without.activations);
  CHECK((with.total - without.total).si() == Approx(0.05 * moving.si()).epsilon(1e-12));
  CHECK(sum_of(with) == Approx(with.total.si()).epsilon(1e-12));
}
