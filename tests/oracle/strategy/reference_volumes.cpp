// SPDX-License-Identifier: Apache-2.0
// [M40] owners, [M41] selected elements, [M42] masks, [M47] and [M48] payloads, [M55] offload: what
// the simulator counts is, element for element, what the reference sends and copies.
#include <catch2/catch.hpp>
#include <numeric>

#include "kernels/reference/scape.hpp"
#include "sim/base/random.hpp"
#include "sim/strategy/selection.hpp"
#include "tests/support/strategy.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

/// Sizes that no number of ranks and no byte divides.
spec::Model tiny_gpt() { return gpt({2, 20, 2, 30, 101}); }

spec::Model tiny_llama() {
  spec::Model model = llama({3, 24, 4, 2, 37});
  model.vocab = 67;
  return model;
}

std::vector<reference::Tensor> tensors_of(const std::vector<workload::Tensor>& tensors) {
  std::vector<reference::Tensor> list;
  for (const workload::Tensor& tensor : tensors)
    list.push_back({static_cast<std::size_t>(tensor.numel), tensor.always_selected});
  return list;
}

/// The reference's options that mean the same as a scenario's.
reference::ScapeOptions options_of(const spec::Strategy& strategy) {
  reference::ScapeOptions options;
  options.density = strategy.density;
  options.owners =
      strategy.owners == spec::Owners::even ? reference::Owners::even : reference::Owners::tensor;
  options.mask_format = strategy.mask_format == spec::MaskFormat::packed
                            ? reference::MaskFormat::packed
                            : reference::MaskFormat::byte;
  options.mask_delay = strategy.mask_delay;
  options.sharding = strategy.sharding == spec::Sharding::zero1 ? reference::Sharding::distributed
                                                                : reference::Sharding::none;
  options.second_payload = strategy.second_payload == spec::SecondPayload::released
                               ? reference::SecondPayload::weights
                               : reference::SecondPayload::none;
  options.payload_buffers = strategy.payload_buffers == spec::PayloadBuffers::one
                                ? reference::PayloadBuffers::one
                                : reference::PayloadBuffers::two;
  const auto storage = [](bool offloaded) {
    return offloaded ? reference::Storage::host : reference::Storage::resident;
  };
  options.residual = storage(strategy.offload.residual);
  options.replica = storage(strategy.offload.replica);
  return options;
}

/// Bytes that one rank copies to and from host memory.
struct Copied {
  std::int64_t residual_in, residual_out, replica_in, replica_out;
};

struct Step {
  std::vector<reference::Call> calls;
  Copied copied;
};

Copied copied_so_far(const reference::Scape<float>& scape) {
  const auto& residual = scape.stored_residual(0);
  const auto& replica = scape.stored_replica(0);
  return {residual.bytes_in(), residual.bytes_out(), replica.bytes_in(), replica.bytes_out()};
}

/// One step of the reference, after a step that made the first mask.
Step step_of(const strategy::Context& context) {
  Random random(1);
  const std::vector<reference::Tensor> tensors = tensors_of(context.tensors);
  std::vector<float> values(reference::total_of(tensors));
  reference::Communicator communicator(context.ranks);
  reference::Scape<float> scape(tensors, values, options_of(context.scenario.strategy),
                                communicator);
  Copied before{};
  for (int step = 0; step < 2; ++step) {
    communicator.forget_calls();
    before = copied_so_far(scape);
    reference::PerRank<float> gradients;
    for (int rank = 0; rank < context.ranks; ++rank) {
      for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
      gradients.push_back(values);
    }
    scape.step(gradients, 1e-3);
  }
  const Copied after = copied_so_far(scape);
  return {communicator.calls(),
          {after.residual_in - before.residual_in, after.residual_out - before.residual_out,
           after.replica_in - before.replica_in, after.replica_out - before.replica_out}};
}

std::vector<const strategy::Call*> bulk_calls(const strategy::Program& program) {
  std::vector<const strategy::Call*> calls;
  for (const strategy::Call& call : program.calls)
    if (call.regime == strategy::Regime::bulk) calls.push_back(&call);
  return calls;
}

/// Every bulk call of the simulator has its like among the reference's, and none is left over.
void check_same_calls(const spec::Scenario& scenario) {
  const Rig rig(scenario);
  const strategy::Program program = rig.program();
  const std::vector<reference::Call> sent = step_of(rig.context()).calls;
  const auto simulated = bulk_calls(program);
  REQUIRE(sent.size() == simulated.size());
  for (const reference::Call& real : sent) {
    INFO(real.name << " on " << rig.context().ranks << " ranks");
    const auto same = std::ranges::find(simulated, real.name, &strategy::Call::name);
    REQUIRE(same != simulated.end());
    CHECK((*same)->bytes.si() == static_cast<double>(real.bytes));
    CHECK(((*same)->kind == graph::CollectiveKind::all_reduce) ==
          (real.kind == reference::Collective::all_reduce));
    const double all_ranks = std::accumulate(real.bytes_sent.begin(), real.bytes_sent.end(), 0.0);
    CHECK(all_ranks == Approx(ring_bytes(**same, rig.ranks()) * rig.ranks()).epsilon(1e-12));
  }
}

/// Calls the check for every model, number of ranks, density and choice of owners.
template <class Check>
void for_scenarios(Check check) {
  for (const spec::Model& model : {tiny_gpt(), tiny_llama()})
    for (const int ranks : {2, 3, 4, 7, 8, 16})
      for (const double density : {0.5, 0.1, 0.01})
        for (const spec::Owners owners : {spec::Owners::even, spec::Owners::tensor}) {
          spec::Scenario scenario = scape_scenario(model, ranks, density);
          scenario.strategy.owners = owners;
          check(scenario);
        }
}

}  // namespace

TEST_CASE("[M40] both state the same owners, piece for piece") {
  for_scenarios([](const spec::Scenario& scenario) {
    const Rig rig(scenario);
    const spec::Owners owners = scenario.strategy.owners;
    const int ranks = rig.context().ranks;
    const strategy::Ownership simulated = strategy::ownership(rig.context().tensors, ranks, owners);
    const reference::Ownership real = reference::ownership(tensors_of(rig.context().tensors), ranks,
                                                           options_of(scenario.strategy).owners);
    REQUIRE(simulated.size() == real.size());
    for (std::size_t rank = 0; rank < real.size(); ++rank) {
      REQUIRE(simulated[rank].size() == real[rank].size());
      for (std::size_t i = 0; i < real[rank].size(); ++i) {
        CHECK(simulated[rank][i].numel == static_cast<std::int64_t>(real[rank][i].numel));
        CHECK(simulated[rank][i].always_selected == real[rank][i].always_selected);
      }
    }
  });
}

TEST_CASE("[M41] [M42] the reference's payload and masks are as long as the simulator counts") {
  for_scenarios([](const spec::Scenario& scenario) {
    const Rig rig(scenario);
    const spec::Strategy& s = scenario.strategy;
    const strategy::Ownership parts =
        strategy::ownership(rig.context().tensors, rig.context().ranks, s.owners);
    for (const reference::Call& call : step_of(rig.context()).calls) {
      if (call.name == "payload all-reduce")
        CHECK(call.elements == strategy::selected(parts, s.density));
      else
        CHECK(call.bytes == strategy::gathered_mask_bytes(parts, s.mask_format));
    }
  });
}

TEST_CASE("[M47] a simulated step sends the calls and bytes that the reference sends") {
  for_scenarios(check_same_calls);
}

TEST_CASE("[M42] masks of a byte per element are counted as they are sent") {
  for_scenarios([](spec::Scenario scenario) {
    scenario.strategy.mask_format = spec::MaskFormat::byte;
    check_same_calls(scenario);
  });
}

TEST_CASE("[M47] two payload buffers are counted as they are sent") {
  for_scenarios([](spec::Scenario scenario) {
    scenario.strategy.payload_buffers = spec::PayloadBuffers::two;
    check_same_calls(scenario);
  });
}

TEST_CASE("[M48] the distributed optimizer sends a second payload, or none") {
  for_scenarios([](spec::Scenario scenario) {
    scenario.strategy.owners = spec::Owners::even;
    scenario.strategy.sharding = spec::Sharding::zero1;
    check_same_calls(scenario);
    scenario.strategy.second_payload = spec::SecondPayload::none;
    check_same_calls(scenario);
  });
}

TEST_CASE("[M42] a mask without delay is sent as often as one with") {
  for_scenarios([](spec::Scenario scenario) {
    scenario.strategy.mask_delay = 0;
    scenario.strategy.mask_wait = spec::MaskWait::blocking;
    check_same_calls(scenario);
  });
}

TEST_CASE("[M55] offload copies what the simulator counts, residual and replica, in and out") {
  for (const spec::Sharding sharding : {spec::Sharding::none, spec::Sharding::zero1})
    for (const bool replica : {false, true}) {
      spec::Scenario scenario = scape_scenario(tiny_llama(), 4, 0.1);
      scenario.strategy.sharding = sharding;
      scenario.strategy.offload.residual = true;
      scenario.strategy.offload.replica = replica;
      const Rig rig(scenario);
      const strategy::Program program = rig.program();
      const Copied real = step_of(rig.context()).copied;
      const auto check = [&](std::string_view name, std::int64_t bytes) {
        // Chunks of equal size here, cut at the buffer's size there: the sums agree.
        CHECK(traffic_of(program, name) == Approx(static_cast<double>(bytes)).epsilon(1e-12));
      };
      CHECK(real.residual_in == 4 * rig.workload().parameters);
      check("residual copy in", real.residual_in);
      check("residual copy out", real.residual_out);
      CHECK((real.replica_in > 0) == replica);
      check("replica copy in", real.replica_in);
      check("replica copy out", real.replica_out);
    }
}

TEST_CASE("[M45] the union of independent global masks is as dense as the simulator says") {
  for (const int ranks : {2, 4, 8, 16})
    for (const double density : {0.1, 0.01}) {
      constexpr std::int64_t kElements = 100'000;
      reference::ScapeOptions options;
      options.density = density;
      options.mask_partition = reference::MaskPartition::global;
      reference::Communicator communicator(ranks);
      reference::Scape<float> scape({{kElements, false}}, std::vector<float>(kElements), options,
                                    communicator);
      Random random(7);
      reference::PerRank<float> gradients(static_cast<std::size_t>(ranks),
                                          std::vector<float>(kElements));
      for (auto& gradient : gradients)
        for (float& value : gradient) value = static_cast<float>(random.uniform(-1, 1));
      const auto selected = static_cast<double>(scape.step(gradients, 1e-3).selected);
      const double expected = strategy::union_density(density, ranks, 0) * kElements;
      // Five standard deviations of a binomial count, above that of these draws without repetition.
      CHECK(selected == Approx(expected).margin(5 * std::sqrt(expected)));
      CHECK(communicator.calls()[0].bytes ==
            strategy::mask_bytes(kElements, spec::MaskFormat::packed));
    }
}
