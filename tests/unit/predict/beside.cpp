// SPDX-License-Identifier: Apache-2.0
// [M405] [M406] A step whose collectives run beside kernels, and whose slowest GPU it waits for.
#include "sim/predict/beside.hpp"

#include <catch2/catch.hpp>

#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

spec::Scenario overlapped_scenario() {
  spec::Scenario scenario = scenario_of(llama_1_8b(), 8);
  scenario.training.overlap_gradients = true;
  scenario.cluster.nic_bandwidth = BytesPerSecond(1e12);  // so that kernels hide the gradients
  return scenario;
}

cost::Profile with(const char* key, double value) {
  cost::Profile profile = round_profile();
  profile.numbers[key] = exactly(value, cost::Factor::gemm);
  return profile;
}

/// A kernel of 10 s and beside it a collective from 2 s to 7 s.
graph::StepGraph two_streams() {
  graph::Operation kernel;
  kernel.name = "kernel";
  kernel.duration = Seconds(10);
  graph::Operation collective;
  collective.name = "collective";
  collective.stream = graph::Stream::communication;
  collective.kind = graph::Kind::communication;
  collective.work = graph::Work::collective;
  graph::StepGraph graph;
  graph.classes = {{.name = "all ranks", .ranks = 2, .operations = {kernel, collective}}};
  graph::Collective sum;
  sum.phases = {graph::Phase{}};
  sum.members = {graph::RankClassId{0}};
  graph.collectives = {sum};
  return graph;
}

engine::Span span_of(std::uint32_t op, int step, double begin, double end) {
  return {.rank_class = graph::RankClassId{0},
          .op = graph::OpId{op},
          .step = step,
          .ready = Seconds(begin),
          .begin = Seconds(begin),
          .end = Seconds(end)};
}

engine::Timeline timeline_of(int steps) {
  engine::Timeline timeline;
  timeline.warmup = 0;
  for (int step = 0; step < steps; ++step) {
    const double begin = 10.0 * step;
    timeline.spans.push_back(span_of(0, step, begin, begin + 10));
    timeline.spans.push_back(span_of(1, step, begin + 2, begin + 7));
    timeline.step_end.push_back(Seconds(begin + 10));
  }
  return timeline;
}

}  // namespace

TEST_CASE("[M406] a kernel takes c / (1 + c) of the time longer that a collective runs beside it") {
  for (const int steps : {1, 3}) {
    graph::StepGraph graph = two_streams();
    const Seconds added = slow_beside_collectives(graph, timeline_of(steps), 0.25);
    CHECK(added.si() == Approx(5 * 0.2).epsilon(1e-12));  // the mean over the steps
    CHECK(graph.classes[0].operations[0].duration.si() == Approx(11).epsilon(1e-12));
  }
}

TEST_CASE("[M406] messages between stages and groups of one slow nothing down") {
  graph::StepGraph messages = two_streams();
  messages.collectives[0].kind = graph::CollectiveKind::send_recv;
  CHECK(slow_beside_collectives(messages, timeline_of(1), 0.25) == Seconds(0));
  graph::StepGraph alone = two_streams();
  alone.collectives[0].phases.clear();
  CHECK(slow_beside_collectives(alone, timeline_of(1), 0.25) == Seconds(0));
  CHECK(alone.classes[0].operations[0].duration == Seconds(10));
}

TEST_CASE("[M406] overlapped gradients lengthen a step by at most c / (1 + c) of their time") {
  const spec::Scenario scenario = overlapped_scenario();
  const Prediction before = prediction_of(scenario, round_profile());
  const Prediction after = prediction_of(scenario, with("gpu.overlap_slowdown", 0.25));
  const double added = run_of(after).step_time.si() - run_of(before).step_time.si();
  Seconds hidden(0);
  for (const result::Communication& row : run_of(before).communication)
    hidden += row.time - row.exposed;
  CHECK(added > 0);
  CHECK(added <= hidden.si() * 0.2 * (1 + 1e-9));
  CHECK(run_of(after).fleet.beside.si() == Approx(hidden.si() * 0.2).epsilon(1e-9));
}

TEST_CASE("[M406] what does not overlap is not slowed down, and the key switches it off") {
  spec::Scenario scenario = scenario_of(llama_1_8b(), 8);
  const cost::Profile slow = with("gpu.overlap_slowdown", 0.25);
  CHECK(step_of(scenario, slow) == step_of(scenario, round_profile()));
  scenario = overlapped_scenario();
  scenario.cluster.overlap_slowdown = 0;
  CHECK(step_of(scenario, slow) == step_of(scenario, round_profile()));
}

TEST_CASE("[M405] a step grows with the GPUs that it waits for, and the key switches it off") {
  const cost::Profile spread = with("gpu.speed_spread", 0.02);
  double before = 0;
  for (const int ranks : {1, 8, 64}) {
    spec::Scenario scenario = scenario_of(llama_1_8b(), ranks);
    const double slowest = step_of(scenario, spread) / step_of(scenario, round_profile());
    CHECK(slowest >= 1);
    CHECK(slowest <= 1 + 0.02 * cost::expected_largest(ranks) + 1e-12);
    CHECK(run_of(prediction_of(scenario, spread)).fleet.slowest ==
          Approx(1 + 0.02 * cost::expected_largest(ranks)).epsilon(1e-12));
    if (ranks == 8) CHECK(slowest > before);
    before = slowest;
    scenario.cluster.speed_spread = 0;
    CHECK(step_of(scenario, spread) == step_of(scenario, round_profile()));
  }
}
