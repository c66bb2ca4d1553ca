// SPDX-License-Identifier: Apache-2.0
// State in host memory: [M33] copies, [M55] pipelined and [M56] staged passes, [M63] what SCAPE
// holds on the GPU.
#include "sim/strategy/offload.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/strategy.hpp"

using namespace scapesim;
using namespace scapesim::test;
using graph::Operation;
using graph::Stream;
using spec::Kernels;
using spec::Sharding;

namespace {

// Sums of a few exact numbers in double precision.
constexpr double kRounding = 1e-12;
constexpr double kParameters = 1'831'201'280;
constexpr double kLargest = 32'000.0 * 2560;

struct Place {
  bool residual = false;
  bool replica = false;
};

spec::Scenario offloaded(Place host, Kernels kernels, Sharding sharding = Sharding::none) {
  spec::Scenario scenario = scape_scenario(llama_1_8b(), 8, 0.01);
  scenario.strategy.kernels = kernels;
  scenario.strategy.sharding = sharding;
  scenario.strategy.offload = {.residual = host.residual, .replica = host.replica};
  return scenario;
}

double copied(const Program& program, const std::string& name) {
  double sum = 0;
  for (const Operation& operation : operations_named(program, name)) {
    CHECK(operation.work == graph::Work::transfer);
    CHECK(operation.bytes == operation.transfer.bytes);
    sum += operation.bytes.si();
  }
  return sum;
}

double held(const strategy::StateMemory& memory) {
  return (memory.parameters + memory.gradients + memory.optimizer + memory.strategy).si();
}

double held_by(const spec::Scenario& scenario) { return held(Rig(scenario).memory()); }

}  // namespace

TEST_CASE("[M55] an offloaded residual goes in and out once per step, 4 N bytes each way") {
  const Program program = Rig(offloaded({.residual = true}, Kernels::fused)).program();
  CHECK(copied(program, "residual copy in") == Approx(4 * kParameters).epsilon(kRounding));
  CHECK(copied(program, "residual copy out") == Approx(4 * kParameters).epsilon(kRounding));
  // In chunks of the largest tensor at most: 1,831,201,280 / 81,920,000 = 22.4.
  CHECK(operations_named(program, "residual copy in").size() == 23);
  CHECK(operations_named(program, "accumulate, residual, gather").size() == 23);
}

TEST_CASE("[M55] chunks do not change the traffic of the pass they divide") {
  const std::string pass = "accumulate, residual, gather";
  const double whole = traffic_of(Rig(offloaded({}, Kernels::fused)).program(), pass);
  for (const double chunk : {1e8, 1e9, 1e12}) {
    spec::Scenario scenario = offloaded({.residual = true}, Kernels::fused);
    scenario.strategy.offload_chunk = Bytes(chunk);
    const Program program = Rig(scenario).program();
    CHECK(traffic_of(program, pass) == Approx(whole).epsilon(kRounding));
    CHECK(operations_named(program, pass).size() ==
          static_cast<std::size_t>(std::ceil(4 * kParameters / chunk)));
  }
}

TEST_CASE("[M55] a chunk waits for the buffer of two chunks before, a pass for its chunk") {
  const Program program = Rig(offloaded({.residual = true}, Kernels::fused)).program();
  std::vector<std::size_t> in, out, pass;
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    if (program.operations[i].name == "residual copy in") in.push_back(i);
    if (program.operations[i].name == "residual copy out") out.push_back(i);
    if (program.operations[i].name == "accumulate, residual, gather") pass.push_back(i);
  }
  const auto waits_for = [&](std::size_t operation, std::size_t earlier, int steps_back) {
    for (const graph::Dependency& wait : program.operations[operation].waits_for)
      if (index(wait.op) == earlier && wait.steps_back == steps_back) return true;
    return false;
  };
  REQUIRE(in.size() == out.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    CHECK(program.operations[in[i]].stream == Stream::copy_in);
    CHECK(program.operations[out[i]].stream == Stream::copy_out);
    CHECK(waits_for(pass[i], in[i], 0));
    CHECK(waits_for(out[i], pass[i], 0));
    CHECK(waits_for(in[i], out[i], 1));
    if (i >= 2) CHECK(waits_for(in[i], out[i - 2], 0));
    if (i < 2) CHECK(waits_for(in[i], out.back(), 1));
  }
}

TEST_CASE("[M56] the released residual goes in, is worked on and goes out, nothing beside it") {
  for (const auto& [sharding, bytes] : {std::pair{Sharding::none, 4 * kParameters},
                                        std::pair{Sharding::zero1, 4 * kParameters / 8}}) {
    const Program program =
        Rig(offloaded({.residual = true}, Kernels::unfused, sharding)).program();
    REQUIRE(operations_named(program, "residual copy in").size() == 1);
    CHECK(copied(program, "residual copy in") == Approx(bytes).epsilon(kRounding));
    CHECK(copied(program, "residual copy out") == Approx(bytes).epsilon(kRounding));
    CHECK(operations_named(program, "residual copy in")[0].transfer.rate_cap ==
          BytesPerSecond(50e9));  // copy.staged_Bps of the round profile
  }
}

TEST_CASE("an offloaded replica goes in and out once, whoever updates it") {
  for (const Kernels kernels : {Kernels::fused, Kernels::unfused})
    for (const auto second : {spec::SecondPayload::released, spec::SecondPayload::none}) {
      spec::Scenario scenario = offloaded({.replica = true}, kernels, Sharding::zero1);
      scenario.strategy.second_payload = second;
      const Program program = Rig(scenario).program();
      CHECK(copied(program, "replica copy in") == Approx(4 * kParameters).epsilon(kRounding));
      CHECK(copied(program, "replica copy out") == Approx(4 * kParameters).epsilon(kRounding));
      for (const Operation& copy : operations_named(program, "replica copy in"))
        CHECK(copy.transfer.rate_cap == BytesPerSecond(100e9));  // large copies, copy.h2d_Bps
    }
}

TEST_CASE("[M33] a copy loads its direction of the host link and host memory, once each") {
  const Program program = Rig(offloaded({.residual = true}, Kernels::fused)).program();
  using strategy::CopyResource;
  const auto loads_of = [&](const char* name) {
    std::vector<std::uint32_t> list;
    const Operation copy = operations_named(program, name).at(0);
    for (const graph::Load& load : copy.transfer.loads) {
      CHECK(load.flows == 1);
      list.push_back(load.resource.value);
    }
    return list;
  };
  const auto id = [](CopyResource resource) { return static_cast<std::uint32_t>(resource); };
  CHECK(loads_of("residual copy in") ==
        std::vector{id(CopyResource::host_to_device), id(CopyResource::host_memory)});
  CHECK(loads_of("residual copy out") ==
        std::vector{id(CopyResource::device_to_host), id(CopyResource::host_memory)});
}

TEST_CASE(
    "[M63] offloading the residual saves 4 N less two buffers of the largest tensor, exactly") {
  for (const Kernels kernels : {Kernels::fused, Kernels::unfused})
    for (const Sharding sharding : {Sharding::none, Sharding::zero1})
      CHECK(held_by(offloaded({}, kernels, sharding)) -
                held_by(offloaded({.residual = true}, kernels, sharding)) ==
            4 * kParameters - 2 * 4 * kLargest);
}

TEST_CASE(
    "[M63] offloading the replica saves 4 N; the fused pass keeps two staging buffers of it") {
  const auto saved = [](Kernels kernels) {
    return held_by(offloaded({}, kernels, Sharding::zero1)) -
           held_by(offloaded({.replica = true}, kernels, Sharding::zero1));
  };
  CHECK(saved(Kernels::unfused) == 4 * kParameters);
  CHECK(saved(Kernels::fused) == 4 * kParameters - 2 * 4 * kLargest);
}

TEST_CASE("[M63] SCAPE holds a residual, two masks and a tensor of scratch more than dense AdamS") {
  const double dense = held_by(scenario_of(llama_1_8b(), 8));
  CHECK(held_by(offloaded({}, Kernels::fused)) - dense ==
        4 * kParameters + 2 * kParameters / 8 + 4 * kLargest);
}

TEST_CASE("[M63] with the distributed optimizer SCAPE as released holds a replica more: 4 N") {
  CHECK(held_by(offloaded({}, Kernels::unfused, Sharding::zero1)) -
            held_by(offloaded({}, Kernels::unfused)) ==
        4 * kParameters);
  // Done right, master weights are sharded beside the replica.
  CHECK(held_by(offloaded({}, Kernels::fused, Sharding::zero1)) -
            held_by(offloaded({}, Kernels::fused)) ==
        4 * kParameters - 4 * kParameters * 7 / 8);
}

TEST_CASE("[M63] byte masks take seven eighths of a byte more per element and mask") {
  spec::Scenario bytes = offloaded({}, Kernels::fused);
  bytes.strategy.mask_format = spec::MaskFormat::byte;
  CHECK(held_by(bytes) - held_by(offloaded({}, Kernels::fused)) == 2 * kParameters * 7 / 8);
}

TEST_CASE("a staging buffer is as large as the scenario says, else as the largest tensor in fp32") {
  spec::Scenario scenario = offloaded({.residual = true}, Kernels::fused);
  CHECK(strategy::offload_chunk(Rig(scenario).context()).si() == 4 * kLargest);
  scenario.strategy.offload_chunk = Bytes(1e8);
  CHECK(strategy::offload_chunk(Rig(scenario).context()) == Bytes(1e8));
}

TEST_CASE(
    "what is offloaded is held by the host: 4 N, a shard of it where only that is offloaded") {
  const auto host = [](Place place, Kernels kernels, Sharding sharding) {
    return Rig(offloaded(place, kernels, sharding)).memory().host.si();
  };
  CHECK(host({}, Kernels::fused, Sharding::zero1) == 0);
  CHECK(host({.residual = true}, Kernels::fused, Sharding::zero1) == 4 * kParameters);
  CHECK(host({.residual = true}, Kernels::unfused, Sharding::zero1) == 4 * kParameters / 8);
  CHECK(host({.residual = true, .replica = true}, Kernels::fused, Sharding::zero1) ==
        8 * kParameters);
}

TEST_CASE("[M63] in fp32 the parameters are their own master weights, for SCAPE too") {
  spec::Scenario scenario = offloaded({}, Kernels::fused);
  scenario.training.precision = spec::Precision::fp32;
  CHECK(Rig(scenario).memory().parameters.si() == 4 * kParameters);
  CHECK(Rig(scenario).memory().optimizer.si() == 4 * kParameters);  // the moment
}
