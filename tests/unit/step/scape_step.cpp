// SPDX-License-Identifier: Apache-2.0
// The step as a device runs it, on host lanes in random orders: the reference's bits, always; and a
// wait that is left out shows.
#include "kernels/step/scape_step.hpp"

#include <catch2/catch.hpp>

#include "kernels/step/deferred.hpp"

using namespace scapesim;
using namespace scapesim::step;
using reference::PerRank;
using reference::Sharding;

namespace {

/// Sizes that no tile, word or number of ranks divides.
const std::vector<reference::Tensor> kTensors = {
    {3000, false}, {37, true}, {2048, false}, {1, false}, {1021, false}};

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return values;
}

std::vector<float> gradient_of(std::size_t count, int step, int rank) {
  return random_values(count, static_cast<std::uint64_t>(1000 * step + rank + 1));
}

constexpr double kRate = 1e-2;

/// What all ranks hold after some steps, and what they sent in them.
struct Outcome {
  std::vector<RankState> states;
  std::vector<reference::Call> calls;
  std::vector<kernels::Clip> clips;
};

Outcome by_reference(const StepOptions& options, int ranks, int steps) {
  const std::size_t n = reference::total_of(kTensors);
  reference::Communicator communicator(ranks);
  reference::Scape<float> scape(kTensors, random_values(n, 7), reference_options(options),
                                communicator);
  Outcome outcome;
  reference::StepReport report;
  for (int step = 0; step < steps; ++step) {
    PerRank<float> gradients;
    for (int rank = 0; rank < ranks; ++rank) gradients.push_back(gradient_of(n, step, rank));
    report = scape.step(gradients, kRate);
  }
  for (int i = 0; i < ranks; ++i) {
    const auto rank = static_cast<std::size_t>(i);
    outcome.states.push_back({scape.parameters(rank), scape.moment(rank), scape.residual(rank),
                              options.mask_delay == 1 ? scape.next_mask(rank) : scape.mask(rank)});
    outcome.clips.push_back({report.norm, static_cast<float>(report.clip_factor)});
  }
  outcome.calls = communicator.calls();
  return outcome;
}

/// All steps of all ranks are enqueued before the first one runs.
Outcome by_lanes(const StepOptions& options, int ranks, int steps, DeferredWorld& world) {
  const std::size_t n = reference::total_of(kTensors);
  std::vector<std::unique_ptr<ScapeStep>> rank_steps;
  std::vector<float*> device;
  for (int rank = 0; rank < ranks; ++rank) {
    Backend& backend = world.rank(rank);
    rank_steps.push_back(
        std::make_unique<ScapeStep>(backend, kTensors, random_values(n, 7), options));
    device.push_back(backend.array<float>(n));
  }
  std::deque<std::vector<float>> gradients;
  for (int step = 0; step < steps; ++step)
    for (int i = 0; i < ranks; ++i) {
      const auto rank = static_cast<std::size_t>(i);
      gradients.push_back(gradient_of(n, step, i));
      world.rank(i).copy(Lane::compute, device[rank], gradients.back().data(), n * sizeof(float));
      rank_steps[rank]->enqueue(device[rank], kRate);
    }
  world.run();
  Outcome outcome;
  outcome.calls = world.calls();
  for (const auto& step : rank_steps) outcome.states.push_back(step->state());
  for (const auto& step : rank_steps) outcome.clips.push_back(step->clip());
  return outcome;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return std::ranges::equal(a, b, {}, reference::bits_of, reference::bits_of);
}

bool same(const Outcome& a, const Outcome& b) {
  for (std::size_t rank = 0; rank < a.states.size(); ++rank) {
    const RankState& left = a.states[rank];
    const RankState& right = b.states[rank];
    if (!same(left.weights, right.weights) || !same(left.moment, right.moment) ||
        !same(left.residual, right.residual) || left.next_mask != right.next_mask)
      return false;
  }
  return true;
}

void check_same(const StepOptions& options, int ranks, std::uint64_t seeds) {
  const Outcome expected = by_reference(options, ranks, 4);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    INFO(ranks << " ranks, seed " << seed);
    DeferredWorld world(ranks, seed);
    const Outcome real = by_lanes(options, ranks, 4, world);
    REQUIRE(same(expected, real));
    if (!options.adam.clip) continue;
    for (std::size_t rank = 0; rank < real.clips.size(); ++rank) {
      CHECK(real.clips[rank].norm == expected.clips[rank].norm);
      CHECK(real.clips[rank].factor == expected.clips[rank].factor);
    }
  }
}

StepOptions small() {
  StepOptions options;
  options.chunk = 512;
  return options;
}

}  // namespace

TEST_CASE("lanes in any order give the reference's bits, on any number of ranks") {
  for (const int ranks : {1, 2, 3, 4, 8}) check_same(small(), ranks, 5);
}

TEST_CASE("lanes give the reference's bits for every density, warm-up, owner and delay") {
  for (const double density : {1.0, 0.5, 0.01})
    for (const int warmup : {0, 3})
      for (const reference::Owners owners : {reference::Owners::even, reference::Owners::tensor})
        for (const int delay : {0, 1}) {
          StepOptions options = small();
          options.density = density;
          options.density_warmup = warmup;
          options.owners = owners;
          options.mask_delay = delay;
          check_same(options, 3, 1);
        }
}

TEST_CASE("lanes give the reference's bits wherever residual and replica live") {
  for (const Sharding sharding : {Sharding::none, Sharding::distributed})
    for (const Placement residual : {Placement::resident, Placement::staged, Placement::direct})
      for (const Placement replica : {Placement::resident, Placement::staged, Placement::direct}) {
        StepOptions options = small();
        options.sharding = sharding;
        options.residual = residual;
        options.replica = replica;
        check_same(options, 2, 3);
      }
}

TEST_CASE("lanes give the reference's bits with one chunk, two chunks and chunks of any size") {
  for (const std::size_t chunk : {1, 700, 3053, 3054, 4000, 6107, 100000}) {
    StepOptions options = small();
    options.residual = options.replica = Placement::staged;
    options.chunk = chunk == 1 ? 97 : chunk;
    check_same(options, 2, 2);
  }
}

TEST_CASE("lanes give the reference's bits when the clip fires, for both second payloads") {
  for (const auto second : {reference::SecondPayload::weights, reference::SecondPayload::none})
    for (const Sharding sharding : {Sharding::none, Sharding::distributed})
      for (const double clip : {0.1, 1e6}) {
        StepOptions options = small();
        options.sharding = sharding;
        options.second_payload = second;
        options.adam.clip = clip;
        check_same(options, 4, 2);
      }
}

TEST_CASE("a mask queued before the payload gives the same bits") {
  StepOptions options = small();
  options.mask_path = MaskPath::queued_first;
  check_same(options, 4, 5);
}

TEST_CASE("calls are those of the reference, byte for byte, and a rank knows its own") {
  for (const Sharding sharding : {Sharding::none, Sharding::distributed})
    for (const int delay : {0, 1}) {
      StepOptions options = small();
      options.sharding = sharding;
      options.mask_delay = delay;
      options.density = 0.1;
      const Outcome expected = by_reference(options, 4, 2);
      DeferredWorld world(4);
      const Outcome real = by_lanes(options, 4, 2, world);
      REQUIRE(real.calls.size() == expected.calls.size());
      std::vector<std::int64_t> sizes;
      std::vector<std::int64_t> expected_sizes;
      for (const auto& call : real.calls) sizes.push_back(call.bytes);
      for (const auto& call : expected.calls) expected_sizes.push_back(call.bytes);
      std::ranges::sort(sizes);
      std::ranges::sort(expected_sizes);
      CHECK(sizes == expected_sizes);
    }
}

TEST_CASE("[M47] a rank states what it sends as the ring counts it") {
  StepOptions options = small();
  DeferredWorld world(4);
  ScapeStep step(world.rank(0), kTensors, random_values(reference::total_of(kTensors), 7), options);
  const std::vector<float> gradient = gradient_of(reference::total_of(kTensors), 0, 0);
  step.enqueue(gradient.data(), kRate);
  // Two masks in the first step.
  REQUIRE(step.calls().size() == 3);
  std::size_t selected = 0;
  for (const auto& part : reference::ownership(kTensors, 4, options.owners))
    for (const auto& piece : part) selected += reference::top_count(piece, options.density);
  const Call& payload = step.calls()[1];
  CHECK(payload.name == "payload all-reduce");
  CHECK(payload.bytes == 4 * selected);
  CHECK(ring_bytes(payload, 4) == Approx(2 * 0.75 * 4 * static_cast<double>(selected)));
  const Call& mask = step.calls()[0];
  CHECK(mask.bytes == 4 * ((1527 + 7) / 8));
  CHECK(ring_bytes(mask, 4) == Approx(0.75 * static_cast<double>(mask.bytes)));
}

namespace {

/// Whether some order gives other bits, or reads a mask that is not there, without one wait.
bool shows(const StepOptions& options, const Outcome& expected, int steps, std::size_t wait) {
  const int ranks = static_cast<int>(expected.states.size());
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    DeferredWorld world(ranks, seed);
    world.leave_out_wait(wait);
    try {
      if (!same(expected, by_lanes(options, ranks, steps, world))) return true;
    } catch (const InternalError&) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("every wait between compute, payload and mask shows when it is left out") {
  constexpr int kSteps = 3;
  StepOptions options = small();
  options.chunk = 4096;
  options.density_warmup = 2;  // else the first step makes the same mask twice
  for (const Placement replica : {Placement::resident, Placement::staged}) {
    options.replica = replica;
    const Outcome expected = by_reference(options, 2, kSteps);
    DeferredWorld counted(2);
    by_lanes(options, 2, kSteps, counted);
    int tried = 0;
    for (std::size_t wait = 0; wait < counted.waits().size(); ++wait) {
      // Waits of copies in imply each other: tests of the schedule look at them.
      if (counted.waits()[wait] == Lane::copy_in) continue;
      INFO("wait " << wait << " on lane " << static_cast<int>(counted.waits()[wait]));
      CHECK(shows(options, expected, kSteps, wait));
      ++tried;
    }
    CHECK(tried >= 2 * kSteps * 3);
  }
}
