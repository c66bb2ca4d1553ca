// SPDX-License-Identifier: Apache-2.0
// Steps of SCAPE whose time is a closed form: masks on and off the critical path, payload and mask
// sharing a NIC, offload bound by copies or not ([M42], [M47], [M48], [M52], [M55], [M56]).
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

// Differences of event times after at most twelve steps: a few hundred additions.
constexpr double kRounding = 1e-9;

constexpr double kParameters = 1'831'201'280;

cost::Profile profile_with_latency(double hop) {
  cost::Profile profile = round_profile();
  set(profile, "network.hop_latency_s", hop);
  return profile;
}

spec::Scenario scape(int ranks, double density) {
  return scape_scenario(llama_1_8b(), ranks, density);
}

struct Exposed {
  double payload, mask;
};

Exposed exposed(const Prediction& prediction, const spec::Scenario& scenario,
                const cost::Profile& profile) {
  const cost::RingTerms ring = ring_of(scenario, profile);
  return {cost::ring_all_reduce(collective_bytes(prediction, "payload all-reduce"), ring).si(),
          cost::ring_all_gather(collective_bytes(prediction, "mask all-gather"), ring).si()};
}

/// Times of one chunk of a pipelined pass, and the local work before and after all of them.
struct Chunks {
  int count = 0;
  double in = 0, pass = 0, out = 0;
};

Chunks chunks_of(const Prediction& prediction) {
  Chunks chunks;
  for (const graph::Operation& operation : prediction.graph.classes.at(0).operations) {
    if (operation.name == "residual copy in") {
      ++chunks.count;
      chunks.in = (operation.bytes / operation.transfer.rate_cap).si();
    }
    if (operation.name == "residual copy out")
      chunks.out = (operation.bytes / operation.transfer.rate_cap).si();
    if (operation.name == "accumulate, residual, gather") chunks.pass = operation.duration.si();
  }
  return chunks;
}

/// One GPU with the residual in host memory, copies at these shares of the pass's own time.
struct Offloaded {
  Prediction prediction;
  Chunks chunks;
  double step;
  double local;
};
Offloaded offloaded(double in_share, double out_share, Bytes chunk) {
  spec::Scenario scenario = scape(1, 0.01);
  scenario.strategy.offload.residual = true;
  scenario.strategy.offload_chunk = chunk;
  scenario.cluster.host_link.bandwidth = BytesPerSecond(1e16);
  scenario.cluster.host_memory_bandwidth = BytesPerSecond(1e16);
  cost::Profile profile = round_profile();
  const double pass = chunks_of(prediction_of(scenario, profile)).pass;
  const double bytes = 4 * kParameters / chunks_of(prediction_of(scenario, profile)).count;
  set(profile, "copy.h2d_Bps", bytes / (in_share * pass));
  set(profile, "copy.d2h_Bps", bytes / (out_share * pass));
  Prediction prediction = prediction_of(scenario, profile);
  const Chunks chunks = chunks_of(prediction);
  const double step = run_of(prediction).step_time.si();
  const double local = local_work(prediction);
  return {std::move(prediction), chunks, step, local};
}

}  // namespace

TEST_CASE("[M42] [M47] a blocking step is its local work, the mask and the payload") {
  const cost::Profile profile = profile_with_latency(1.1e-3);
  for (const int ranks : {2, 3, 8, 64})
    for (const auto owners : {spec::Owners::tensor, spec::Owners::even}) {
      spec::Scenario scenario = scape(ranks, 0.1);
      scenario.strategy.mask_wait = spec::MaskWait::blocking;
      scenario.strategy.owners = owners;
      const Prediction prediction = prediction_of(scenario, profile);
      const Exposed e = exposed(prediction, scenario, profile);
      CHECK(run_of(prediction).step_time.si() ==
            Approx(local_work(prediction) + e.mask + e.payload).epsilon(kRounding));
    }
}

TEST_CASE("[M52] a mask without delay is on the critical path, whatever the kernels") {
  const cost::Profile profile = profile_with_latency(1.1e-3);
  for (const auto kernels : {spec::Kernels::fused, spec::Kernels::unfused}) {
    spec::Scenario scenario = scape(8, 0.1);
    scenario.strategy.mask_delay = 0;
    scenario.strategy.mask_wait = spec::MaskWait::blocking;
    scenario.strategy.kernels = kernels;
    const Prediction prediction = prediction_of(scenario, profile);
    const Exposed e = exposed(prediction, scenario, profile);
    CHECK(run_of(prediction).step_time.si() ==
          Approx(local_work(prediction) + e.mask + e.payload).epsilon(kRounding));
  }
}

TEST_CASE("[M48] with the distributed optimizer a second payload follows the update") {
  const cost::Profile profile = profile_with_latency(1.1e-3);
  spec::Scenario scenario = scape(8, 0.1);
  scenario.strategy.sharding = spec::Sharding::zero1;
  scenario.strategy.mask_wait = spec::MaskWait::blocking;
  const Prediction prediction = prediction_of(scenario, profile);
  const Exposed e = exposed(prediction, scenario, profile);
  CHECK(run_of(prediction).step_time.si() ==
        Approx(local_work(prediction) + e.mask + 2 * e.payload).epsilon(kRounding));
}

TEST_CASE("an overlapped mask hides behind the next forward and backward pass") {
  // Payload shorter than making the mask: when the mask begins, the payload has gone, and the
  // compute stream never waits for anything.
  const cost::Profile profile = profile_with_latency(1e-6);
  spec::Scenario scenario = scape(8, 0.01);
  scenario.training.global_batch = 8 * 32;
  scenario.cluster.nic_bandwidth = BytesPerSecond(2e12);
  const Prediction prediction = prediction_of(scenario, profile);
  const Exposed e = exposed(prediction, scenario, profile);
  const double making = local_work(prediction, "top-k threshold and mask");
  REQUIRE(e.payload < making);
  CHECK(run_of(prediction).step_time.si() == Approx(local_work(prediction)).epsilon(kRounding));
  CHECK(run_of(prediction).overlap_fraction == Approx(1).margin(kRounding));
}

TEST_CASE("an overlapped mask shares the NIC with what is left of the payload") {
  // Making the mask hides as much of the payload; from then on both move at half the rate.
  const cost::Profile profile = profile_with_latency(0);
  for (const double density : {0.02, 0.1, 0.5}) {
    spec::Scenario scenario = scape(8, density);
    scenario.training.global_batch = 8 * 256;
    const Prediction prediction = prediction_of(scenario, profile);
    const Exposed e = exposed(prediction, scenario, profile);
    const double making = local_work(prediction, "top-k threshold and mask");
    REQUIRE(e.payload > making);
    const double left = e.payload - making;
    const double payload_end = making + left + std::min(left, e.mask);
    CHECK(run_of(prediction).step_time.si() ==
          Approx(local_work(prediction) - making + payload_end).epsilon(kRounding));
  }
}

TEST_CASE("on a slow network even an overlapped mask shows: the NIC never rests") {
  // The next local pass needs the mask, the payload needs the local pass, and forward and backward
  // are over before the mask has come.
  const cost::Profile profile = profile_with_latency(0);
  spec::Scenario scenario = scape(8, 0.01);
  scenario.strategy.mask_format = spec::MaskFormat::byte;
  scenario.cluster.nic_bandwidth = BytesPerSecond(0.1e9);
  const Prediction prediction = prediction_of(scenario, profile);
  const Exposed e = exposed(prediction, scenario, profile);
  REQUIRE(e.mask > e.payload + local_work(prediction));
  const double before_payload = local_work(prediction, "mask offsets") +
                                local_work(prediction, "accumulate, residual, gather");
  CHECK(run_of(prediction).step_time.si() ==
        Approx(before_payload + e.payload + e.mask).epsilon(kRounding));
}

TEST_CASE("SCAPE at density 1 never beats dense training") {
  const cost::Profile profile = profile_with_latency(1e-5);
  for (const int ranks : {1, 2, 8, 64})
    for (const auto sharding : {spec::Sharding::none, spec::Sharding::zero1}) {
      spec::Scenario dense = scenario_of(llama_1_8b(), ranks);
      spec::Scenario sparse = scape(ranks, 1);
      dense.strategy.sharding = sparse.strategy.sharding = sharding;
      CHECK(step_of(sparse, profile) >= step_of(dense, profile));
    }
}

TEST_CASE("density, fill-in, padding, byte masks and a second buffer each cost time") {
  const cost::Profile profile = profile_with_latency(1e-5);
  spec::Scenario base = scape(64, 0.01);
  base.strategy.mask_wait = spec::MaskWait::blocking;
  const double step = step_of(base, profile);
  const auto slower = [&](const auto& change) {
    spec::Scenario scenario = base;
    change(scenario.strategy);
    return step_of(scenario, profile) > step;
  };
  CHECK(slower([](spec::Strategy& s) { s.density = 0.02; }));
  CHECK(slower([](spec::Strategy& s) { s.mask_partition = spec::MaskPartition::global; }));
  CHECK(slower([](spec::Strategy& s) { s.owners = spec::Owners::tensor; }));
  CHECK(slower([](spec::Strategy& s) { s.mask_format = spec::MaskFormat::byte; }));
  CHECK(slower([](spec::Strategy& s) { s.payload_buffers = spec::PayloadBuffers::two; }));
  CHECK(slower([](spec::Strategy& s) { s.mask_delay = 0; }));
  CHECK(slower([](spec::Strategy& s) { s.kernels = spec::Kernels::unfused; }));
  CHECK_FALSE(slower([](spec::Strategy& s) { s.payload_dtype = spec::PayloadDtype::bf16; }));
  CHECK_FALSE(slower([](spec::Strategy& s) { s.mask_wait = spec::MaskWait::overlapped; }));
}

TEST_CASE("[M56] as released, the residual comes in, is worked on and goes out in full") {
  cost::Profile profile = round_profile();
  set(profile, "copy.latency_s", 1e-3);
  spec::Scenario scenario = scape(1, 0.01);
  scenario.strategy.kernels = spec::Kernels::unfused;
  scenario.strategy.offload.residual = true;
  const Prediction prediction = prediction_of(scenario, profile);
  const double copies = 2 * (1e-3 + 4 * kParameters / 50e9);
  CHECK(run_of(prediction).step_time.si() ==
        Approx(local_work(prediction) + copies).epsilon(kRounding));
  CHECK(run_of(prediction).breakdown.copy.si() == Approx(copies).epsilon(kRounding));
}

TEST_CASE("[M55] copies that together are no longer than the pass do not show at all") {
  for (const auto& [in, out] : {std::pair{0.5, 0.5}, {0.9, 0.1}, {0.1, 0.9}, {0.2, 0.2}}) {
    const Offloaded run = offloaded(in, out, Bytes(1e9));
    REQUIRE(run.chunks.count == 8);
    CHECK(run.step == Approx(run.local).epsilon(kRounding));
    CHECK(run_of(run.prediction).breakdown.copy.si() == Approx(0).margin(kRounding));
  }
}

TEST_CASE(
    "[M55] with two buffers a chunk's copies in and out together can stall the next but one") {
  // in, out <= pass < in + out: pass 2j begins j (pass + in + out) after the first.
  for (const auto& [chunk, count] : {std::pair{1e9, 8}, std::pair{1.05e9, 7}}) {
    const Offloaded run = offloaded(0.8, 0.7, Bytes(chunk));
    REQUIRE(run.chunks.count == count);
    const Chunks& c = run.chunks;
    const double stall = c.in + c.out - c.pass;
    const int stalls = count % 2 == 0 ? count / 2 - 1 : (count - 1) / 2;
    CHECK(run.step == Approx(run.local + stalls * stall).epsilon(kRounding));
  }
}

TEST_CASE("[M55] copies in that are slower than the rest set the pace") {
  // The first two chunks were fetched ahead; then one follows the other once a buffer is free.
  const Offloaded run = offloaded(5, 0.5, Bytes(1e9));
  const Chunks& c = run.chunks;
  const double passes = c.count * c.pass;
  const double paced = c.pass + c.out + (c.count - 2) * c.in + c.pass;
  CHECK(run.step == Approx(run.local - passes + paced).epsilon(kRounding));
}

TEST_CASE("a host memory that both directions load slows both") {
  spec::Scenario scenario = scape(1, 0.01);
  scenario.strategy.offload.residual = true;
  scenario.cluster.host_memory_bandwidth = BytesPerSecond(100e9);
  const double shared = step_of(scenario, round_profile());
  scenario.cluster.host_memory_bandwidth = BytesPerSecond(200e9);
  const double enough = step_of(scenario, round_profile());
  scenario.cluster.host_memory_bandwidth = BytesPerSecond(1e13);
  CHECK(shared > enough);
  CHECK(step_of(scenario, round_profile()) == Approx(enough).epsilon(kRounding));
}
