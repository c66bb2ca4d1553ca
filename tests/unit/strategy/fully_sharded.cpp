// SPDX-License-Identifier: Apache-2.0
// Fully sharded parameters: [M243] gathers, [M244] gradients, [M245] memory; ZeRO-2 and the table
// of the ZeRO paper; [M242] parameters gathered ahead.
#include <catch2/catch.hpp>

#include "sim/strategy/share.hpp"
#include "tests/support/strategy.hpp"

using namespace scapesim;
using namespace scapesim::test;
using spec::Sharding;
using strategy::Direction;
using strategy::LayerPass;

namespace {

constexpr double kRounding = 1e-12;
constexpr double kParameters = 1'831'201'280;  // llama_1_8b

spec::Scenario sharded(Sharding sharding, int ranks = 64) {
  spec::Scenario scenario = scenario_of(llama_1_8b(), ranks);
  scenario.strategy.sharding = sharding;
  scenario.training.optimizer = spec::Optimizer::adamw;
  return scenario;
}

graph::OpId append(Program& program, std::string name, strategy::Waits waits) {
  graph::Operation operation;
  operation.name = std::move(name);
  operation.waits_for = std::move(waits);
  program.operations.push_back(operation);
  return {static_cast<std::uint32_t>(program.operations.size() - 1)};
}

/// So many micro-batches forward and back with all hooks.
Program step_of(const Rig& rig, int micro_batches) {
  const auto method =
      strategy::method_of(rig.context().scenario.strategy.method).make(rig.context());
  const auto layers = static_cast<int>(rig.workload().layers.size());
  Program program;
  graph::OpId last{};
  for (int batch = 0; batch < micro_batches; ++batch)
    for (const Direction direction : {Direction::forward, Direction::backward})
      for (int i = 0; i < layers; ++i) {
        const bool forward = direction == Direction::forward;
        const LayerPass pass{.direction = direction,
                             .layer = forward ? i : layers - 1 - i,
                             .first = batch == 0,
                             .last = batch == micro_batches - 1};
        if (!method->watches(pass)) continue;
        strategy::Waits waits = method->layer_needed(program, pass);
        last = append(program, forward ? "forward" : "backward", std::move(waits));
        method->layer_done(program, pass, last);
        if (!forward && i == layers - 1) method->pass_done(program, pass, last);
      }
  method->step_end(program, last);
  return program;
}

double bytes_of(const Program& program, std::string_view name) {
  double sum = 0;
  for (const strategy::Call& call : calls_named(program, name)) sum += call.bytes.si();
  return sum;
}

}  // namespace

TEST_CASE("[M243] every micro-batch gathers 2 N forward and 2 N backward, the last layer once") {
  for (const Sharding sharding : {Sharding::zero3, Sharding::fsdp}) {
    const Rig rig(sharded(sharding));
    const Program program = step_of(rig, 3);
    const auto last = static_cast<double>(workload::parameters_of(rig.workload().layers.back()));
    CHECK(bytes_of(program, "parameter all-gather") ==
          Approx(3 * 2 * (2 * kParameters - last)).epsilon(kRounding));
  }
}

TEST_CASE("[M243] parameters that stay after the forward pass are gathered once per micro-batch") {
  spec::Scenario scenario = sharded(Sharding::fsdp);
  scenario.strategy.reshard_after_forward = false;
  CHECK(bytes_of(step_of(Rig(scenario), 2), "parameter all-gather") ==
        Approx(2 * 2 * kParameters).epsilon(kRounding));
}

TEST_CASE("[M243] a gather waits for the layer prefetch + 1 passes before, or the step before") {
  for (const int prefetch : {0, 1, 3}) {
    spec::Scenario scenario = sharded(Sharding::fsdp);
    scenario.strategy.prefetch = prefetch;
    const Program program = step_of(Rig(scenario), 1);
    std::vector<graph::OpId> passes;
    for (std::uint32_t i = 0; i < program.operations.size(); ++i) {
      const graph::Operation& operation = program.operations[i];
      if (operation.name == "forward") passes.push_back({i});
      if (operation.name != "parameter all-gather" || passes.size() > 10) continue;
      REQUIRE(operation.waits_for.size() == 1);
      const auto ahead = static_cast<std::size_t>(prefetch) + 1;
      if (passes.size() < ahead) {
        CHECK(operation.waits_for[0].steps_back == 1);
      } else {
        CHECK(operation.waits_for[0].op == passes[passes.size() - ahead]);
      }
    }
    REQUIRE(passes.size() > 10);
  }
}

TEST_CASE("[M244] every micro-batch scatters all gradients, N in their type") {
  for (const auto dtype : {spec::GradientDtype::fp32, spec::GradientDtype::bf16}) {
    spec::Scenario scenario = sharded(Sharding::fsdp);
    scenario.training.gradient_dtype = dtype;
    const double element = dtype == spec::GradientDtype::fp32 ? 4 : 2;
    CHECK(bytes_of(step_of(Rig(scenario), 3), "gradient reduce-scatter") ==
          Approx(3 * element * kParameters).epsilon(kRounding));
  }
}

TEST_CASE("[M456] gradients are copied flat, cast and divided behind every backward pass") {
  spec::Scenario scenario = sharded(Sharding::fsdp);
  // bf16 gradients: copied 4, cast 2 + 4, divided 8; reduced in bf16: copied 4, divided 4.
  CHECK(traffic_of(step_of(Rig(scenario), 3), "gradient copies") ==
        Approx(3 * 18 * kParameters).epsilon(kRounding));
  scenario.training.gradient_dtype = spec::GradientDtype::bf16;
  CHECK(traffic_of(step_of(Rig(scenario), 3), "gradient copies") ==
        Approx(3 * 8 * kParameters).epsilon(kRounding));
}

TEST_CASE("[M452] autocast gathers fp32 parameters, and copies fp32 gradients") {
  spec::Scenario scenario = sharded(Sharding::fsdp);
  const double half = bytes_of(step_of(Rig(scenario), 1), "parameter all-gather");
  scenario.training.autocast = true;
  scenario.training.gradient_dtype = spec::GradientDtype::bf16;
  const Program program = step_of(Rig(scenario), 1);
  CHECK(bytes_of(program, "parameter all-gather") == Approx(2 * half).epsilon(kRounding));
  CHECK(traffic_of(program, "gradient copies") == Approx(18 * kParameters).epsilon(kRounding));
}

TEST_CASE("[M244] hsdp shards inside groups and sums the shares across them") {
  spec::Scenario scenario = sharded(Sharding::hsdp);
  scenario.strategy.shard_group = 8;
  const Program program = step_of(Rig(scenario), 1);
  for (const strategy::Call& call : program.calls) {
    if (call.name == "gradient all-reduce") CHECK(call.axis == graph::Axis::replica);
    if (call.name == "gradient reduce-scatter") CHECK(call.axis == graph::Axis::shard);
    if (call.name == "parameter all-gather") CHECK(call.axis == graph::Axis::shard);
  }
  CHECK(bytes_of(program, "gradient all-reduce") == Approx(4 * kParameters / 8).epsilon(kRounding));
}

TEST_CASE("zero2 reduces in every micro-batch and gathers once") {
  for (const bool overlap : {false, true}) {
    spec::Scenario scenario = sharded(Sharding::zero2);
    scenario.training.overlap_gradients = overlap;
    const Rig rig(scenario);
    const auto method = strategy::method_of(scenario.strategy.method).make(rig.context());
    Program program;
    const auto layers = static_cast<int>(rig.workload().layers.size());
    for (const bool last : {false, false, true}) {
      graph::OpId op{};
      for (int layer = layers; layer-- > 0;) {
        const LayerPass pass{Direction::backward, layer, false, last};
        op = append(program, "backward", {});
        if (method->watches(pass)) method->layer_done(program, pass, op);
      }
      method->pass_done(program, {Direction::backward, 0, false, last}, op);
      if (last) method->step_end(program, op);
    }
    CHECK(bytes_of(program, "gradient reduce-scatter") ==
          Approx(3 * 4 * kParameters).epsilon(kRounding));
    CHECK(bytes_of(program, "parameter all-gather") == 2 * kParameters);
  }
}

TEST_CASE("[M242] parameters gathered ahead hold up the layers that need them, and no other") {
  spec::Scenario scenario = sharded(Sharding::zero1);
  scenario.training.overlap_parameters = true;
  scenario.training.bucket = Bytes(1e6);
  const Rig rig(scenario);
  const Program program = step_of(rig, 2);
  CHECK(bytes_of(program, "parameter all-gather") == Approx(2 * kParameters).epsilon(kRounding));
  CHECK(operations_named(program, "parameters ready").empty());
  const auto forward = operations_named(program, "forward");
  CHECK(forward.size() == rig.workload().layers.size());  // of the first micro-batch
  std::uint32_t before = 0;
  for (const graph::Operation& operation : forward) {
    REQUIRE(operation.waits_for.size() == 1);
    CHECK(operation.waits_for[0].steps_back == 1);
    CHECK(operation.waits_for[0].op.value > before);
    before = operation.waits_for[0].op.value;
  }
}

TEST_CASE("[M245] [M62] state per parameter is the ZeRO paper's table") {
  // Rajbhandari 2020, table 1: fp16 parameters and gradients, K = 12, 7.5B parameters or any.
  for (const int ranks : {1, 4, 16, 64}) {
    const auto state = [&](Sharding sharding) {
      spec::Scenario scenario = sharded(sharding, ranks);
      scenario.training.gradient_dtype = spec::GradientDtype::fp16;
      const strategy::StateMemory memory = Rig(scenario).memory();
      return (memory.parameters + memory.gradients + memory.optimizer).si() / kParameters;
    };
    CHECK(state(Sharding::none) == Approx(16).epsilon(kRounding));
    CHECK(state(Sharding::zero1) == Approx(4 + 12.0 / ranks).epsilon(kRounding));
    CHECK(state(Sharding::zero2) == Approx(2 + 14.0 / ranks).epsilon(kRounding));
    CHECK(state(Sharding::zero3) == Approx(16.0 / ranks).epsilon(kRounding));
  }
}

TEST_CASE("[M241] both ends of a pipeline sum the gradients of tied embeddings") {
  Rig rig(sharded(Sharding::none));
  strategy::Context context = rig.context();
  context.tied_embedding = 1000;
  context.mesh.pp = 2;
  Program program;
  const auto call = strategy::add_embedding_sum(program, context, {});
  REQUIRE(call.has_value());
  CHECK(program.calls[0].bytes == Bytes(4000));
  CHECK(program.calls[0].axis == graph::Axis::embedding);
  context.tied_embedding = 0;
  CHECK_FALSE(strategy::add_embedding_sum(program, context, {}).has_value());
}
