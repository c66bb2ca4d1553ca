// SPDX-License-Identifier: Apache-2.0
// Dense data parallelism: [M30], [M31] passes, [M32] bytes on the ring, [M35] default bucket, [M62]
// memory.
#include <catch2/catch.hpp>

#include "sim/strategy/optimizer.hpp"
#include "tests/support/strategy.hpp"

using namespace scapesim;
using namespace scapesim::test;
using graph::Stream;
using spec::GradientDtype;
using spec::Kernels;
using spec::Optimizer;
using spec::Sharding;

namespace {

// Sums of a few exact numbers in double precision.
constexpr double kRounding = 1e-12;

spec::Scenario sharded(spec::Scenario scenario) {
  scenario.strategy.sharding = Sharding::zero1;
  return scenario;
}

spec::Scenario overlapped(spec::Scenario scenario, Bytes bucket) {
  scenario.training.overlap_gradients = true;
  scenario.training.bucket = bucket;
  return scenario;
}

}  // namespace

TEST_CASE("[M32] dense fp32 gradients send 8 N (P-1)/P bytes per rank") {
  for (const int ranks : {2, 3, 8, 64}) {
    const Rig rig(scenario_of(llama_1_8b(), ranks));
    CHECK(bytes_sent(rig.program(), ranks) ==
          Approx(8 * rig.parameters() * rig.sent_share()).epsilon(kRounding));
  }
}

TEST_CASE("[M32] bf16 and fp16 gradients send half of that") {
  for (const GradientDtype dtype : {GradientDtype::bf16, GradientDtype::fp16}) {
    spec::Scenario scenario = scenario_of(llama_1_8b(), 64);
    scenario.training.gradient_dtype = dtype;
    const Rig rig(scenario);
    CHECK(bytes_sent(rig.program(), 64) ==
          Approx(4 * rig.parameters() * rig.sent_share()).epsilon(kRounding));
  }
}

TEST_CASE("[M455] DeepSpeed's bf16 optimizer sums gradients whole, and gathers its shards") {
  spec::Scenario scenario = sharded(scenario_of(llama_1_8b(), 64));
  scenario.strategy.reduction = spec::Reduction::all_reduce;
  const Rig rig(scenario);
  const Program program = rig.program();
  CHECK(calls_named(program, "gradient reduce-scatter").empty());
  REQUIRE(calls_named(program, "gradient all-reduce").size() == 1);
  CHECK(calls_named(program, "gradient all-reduce")[0].bytes.si() == 4 * rig.parameters());
  CHECK(calls_named(program, "parameter all-gather").size() == 1);
}

TEST_CASE("[M32] the distributed optimizer sends 4 N in gradients and 2 N in parameters") {
  const Rig rig(sharded(scenario_of(llama_1_8b(), 64)));
  const Program program = rig.program();
  const double n = rig.parameters();
  REQUIRE(calls_named(program, "gradient reduce-scatter").size() == 1);
  REQUIRE(calls_named(program, "parameter all-gather").size() == 1);
  CHECK(calls_named(program, "gradient reduce-scatter")[0].bytes.si() == 4 * n);
  CHECK(calls_named(program, "parameter all-gather")[0].bytes.si() == 2 * n);
  CHECK(bytes_sent(program, 64) == Approx(6 * n * rig.sent_share()).epsilon(kRounding));
}

TEST_CASE("only the distributed optimizer has to add up the norm of the gradients over ranks") {
  CHECK(
      calls_named(Rig(scenario_of(llama_500m(), 8)).program(), "gradient norm all-reduce").empty());
  const Program program = Rig(sharded(scenario_of(llama_500m(), 8))).program();
  const auto norm = calls_named(program, "gradient norm all-reduce");
  REQUIRE(norm.size() == 1);
  CHECK(norm[0].regime == strategy::Regime::scalar);
  CHECK(norm[0].bytes == Bytes(4));
}

TEST_CASE("buckets split the gradients without changing what is sent") {
  spec::Scenario scenario = scenario_of(llama_500m(), 8);
  scenario.training.bucket = Bytes(100e6);
  const Rig rig(scenario);
  const auto calls = calls_named(rig.program(), "gradient all-reduce");
  CHECK(calls.size() == 21);  // 513,590,784 elements in pieces of 25,000,000
  for (std::size_t i = 0; i + 1 < calls.size(); ++i) CHECK(calls[i].bytes == Bytes(100e6));
  CHECK(calls.back().bytes.si() == 4 * (rig.parameters() - 20 * 25e6));
}

TEST_CASE("an overlapped bucket is sent as soon as the layers that fill it are done") {
  const Rig rig(overlapped(scenario_of(llama_500m(), 8), Bytes(100e6)));
  const Program program = rig.program();
  const auto layers = rig.workload().layers;
  // From the last layer to the first, cut where 25,000,000 elements are reached.
  std::vector<double> expected;
  double waiting = 0;
  for (std::size_t i = layers.size(); i-- > 0;) {
    for (const workload::Tensor& tensor : layers[i].tensors)
      waiting += static_cast<double>(tensor.numel);
    if (waiting < 25e6 && i > 0) continue;
    expected.push_back(4 * waiting);
    waiting = 0;
  }
  const auto calls = calls_named(program, "gradient all-reduce");
  REQUIRE(calls.size() == expected.size());
  for (std::size_t i = 0; i < calls.size(); ++i) CHECK(calls[i].bytes.si() == expected[i]);
  // Each waits for the backward pass issued just before it.
  for (std::size_t i = 0; i < program.operations.size(); ++i)
    if (program.operations[i].name == "gradient all-reduce") {
      REQUIRE(program.operations[i].waits_for.size() == 1);
      CHECK(index(program.operations[i].waits_for[0].op) == i - 1);
      CHECK(program.operations[i - 1].name == "backward");
    }
}

TEST_CASE("overlapped buckets send every gradient once") {
  for (const double bucket : {1e6, 30e6, 500e6, 1e12}) {
    const Rig rig(overlapped(sharded(scenario_of(llama_500m(), 8)), Bytes(bucket)));
    double sum = 0;
    for (const strategy::Call& call : calls_named(rig.program(), "gradient reduce-scatter"))
      sum += call.bytes.si();
    CHECK(sum == 4 * rig.parameters());
  }
}

TEST_CASE(
    "[M35] overlapped gradients go in buckets of 40 million elements, or a million per rank") {
  for (const auto& [ranks, elements] : {std::pair{8, 40e6}, std::pair{64, 64e6}}) {
    spec::Scenario by_default = scenario_of(llama_1_8b(), ranks);
    by_default.training.overlap_gradients = true;
    const auto calls = calls_named(Rig(by_default).program(), "gradient all-reduce");
    const auto same = calls_named(
        Rig(overlapped(scenario_of(llama_1_8b(), ranks), Bytes(4 * elements))).program(),
        "gradient all-reduce");
    REQUIRE(calls.size() == same.size());
    CHECK(calls.size() > 5);
    for (std::size_t i = 0; i < calls.size(); ++i) CHECK(calls[i].bytes == same[i].bytes);
  }
}

TEST_CASE("[M30] a fused update reads and writes each fp32 state once, and writes the bf16 copy") {
  const auto bytes_per_parameter = [](Optimizer optimizer, spec::Precision precision) {
    spec::Scenario scenario = scenario_of(llama_500m(), 4);
    scenario.training.optimizer = optimizer;
    scenario.training.precision = precision;
    const Rig rig(scenario);
    return traffic_of(rig.program(), std::string(name_of(optimizer)) + " update") /
           rig.parameters();
  };
  // Gradient 4, weight 8, each moment 8; bf16 copy 2.
  CHECK(bytes_per_parameter(Optimizer::adams, spec::Precision::bf16) == 20 + 2);
  CHECK(bytes_per_parameter(Optimizer::adamw, spec::Precision::bf16) == 28 + 2);
  CHECK(bytes_per_parameter(Optimizer::sgd, spec::Precision::bf16) == 20 + 2);
  CHECK(bytes_per_parameter(Optimizer::adamw, spec::Precision::fp32) == 28);
}

TEST_CASE("[M30] an unfused update is the sum of its element-wise calls") {
  // In place on a scalar: 8 bytes; with one tensor: 12; with two: 16; out of place: 8. Norm: 4,
  // bf16 copy: 6.
  // AdamS: v from the old m (8, 8, 12), m (8, 12), bias corrections, root, eps (3 x 8), decay 8,
  // update 16.
  CHECK(strategy::update_bytes(Optimizer::adams, Kernels::unfused) ==
        (8 + 8 + 12) + (8 + 12) + 3 * 8 + 8 + 16 + 4 + 6);
  // AdamW: m (8, 12), v (8, 12), root into a new tensor 8, bias and eps (2 x 8), decay 8,
  // update 16.
  CHECK(strategy::update_bytes(Optimizer::adamw, Kernels::unfused) ==
        (8 + 12) + (8 + 12) + 8 + 2 * 8 + 8 + 16 + 4 + 6);
  // SGD with momentum: momentum (8, 12), decay 8, update 12.
  CHECK(strategy::update_bytes(Optimizer::sgd, Kernels::unfused) == (8 + 12) + 8 + 12 + 4 + 6);
  for (const Optimizer optimizer : {Optimizer::adams, Optimizer::adamw, Optimizer::sgd})
    CHECK(strategy::update_bytes(optimizer, Kernels::unfused) >
          strategy::update_bytes(optimizer, Kernels::fused));
}

TEST_CASE("[M30] a sharded update touches its share of the parameters only") {
  const Rig rig(sharded(scenario_of(llama_500m(), 8)));
  CHECK(traffic_of(rig.program(), "adams update") ==
        Approx(22 * rig.parameters() / 8).epsilon(kRounding));
}

TEST_CASE("[M31] gradients are scaled in place and zeroed: three times their size") {
  const Rig fp32(scenario_of(llama_500m(), 4));
  CHECK(traffic_of(fp32.program(), "gradient scaling and zeroing") == 12 * fp32.parameters());
  spec::Scenario scenario = scenario_of(llama_500m(), 4);
  scenario.training.gradient_dtype = GradientDtype::bf16;
  const Rig bf16(scenario);
  CHECK(traffic_of(bf16.program(), "gradient scaling and zeroing") == 6 * bf16.parameters());
}

TEST_CASE("a single rank updates without communicating") {
  for (const Sharding sharding : {Sharding::none, Sharding::zero1}) {
    spec::Scenario scenario = scenario_of(llama_500m(), 1);
    scenario.strategy.sharding = sharding;
    const Program program = Rig(scenario).program();
    CHECK(program.calls.empty());
    CHECK(operations_named(program, "adams update").size() == 1);
  }
}

TEST_CASE("[M62] parameters 2 N, gradients 4 N, fp32 weights and moments in full or in shards") {
  const auto memory_of = [](Optimizer optimizer, Sharding sharding) {
    spec::Scenario scenario = scenario_of(llama_1_8b(), 8);
    scenario.training.optimizer = optimizer;
    scenario.strategy.sharding = sharding;
    return Rig(scenario).memory();
  };
  const double n = 1'831'201'280;
  const strategy::StateMemory adams = memory_of(Optimizer::adams, Sharding::none);
  CHECK(adams.parameters.si() == 2 * n);
  CHECK(adams.gradients.si() == 4 * n);
  CHECK(adams.optimizer.si() == 8 * n);
  CHECK(adams.strategy == Bytes(0));
  CHECK(memory_of(Optimizer::adamw, Sharding::none).optimizer.si() == 12 * n);
  CHECK(memory_of(Optimizer::sgd, Sharding::none).optimizer.si() == 8 * n);
  const strategy::StateMemory shard = memory_of(Optimizer::adams, Sharding::zero1);
  CHECK(shard.optimizer.si() == 8 * n / 8);
  CHECK(shard.gradients == adams.gradients);
}

TEST_CASE("[M62] in fp32 the parameters are their own master weights") {
  spec::Scenario scenario = scenario_of(llama_500m(), 8);
  scenario.training.precision = spec::Precision::fp32;
  const Rig rig(scenario);
  CHECK(rig.memory().parameters.si() == 4 * rig.parameters());
  CHECK(rig.memory().optimizer.si() == 4 * rig.parameters());
}

TEST_CASE("the table has one row per method of the enumeration") {
  CHECK(strategy::methods().size() == names<spec::Method>().size());
  for (const strategy::Method& row : strategy::methods()) {
    CHECK(&strategy::method_of(row.method) == &row);
    CHECK_FALSE(row.help.empty());
  }
}
