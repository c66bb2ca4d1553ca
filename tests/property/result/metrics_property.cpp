// SPDX-License-Identifier: Apache-2.0
// Random step graphs, list-scheduled: what must hold for every one of them.
#include <catch2/catch.hpp>
#include <random>

#include "sim/result/metrics.hpp"
#include "tests/unit/result/timeline_of.hpp"

using namespace scapesim;
using namespace scapesim::literals;
using namespace scapesim::test;

namespace {

graph::StepGraph random_graph(std::mt19937& random) {
  graph::StepGraph graph;
  std::vector<Operation> ops;
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const int count = 2 + below(20);
  for (int i = 0; i < count; ++i) {
    const auto stream = i == 0 ? Stream::compute : static_cast<Stream>(below(graph::kStreams));
    std::vector<graph::Dependency> waits_for;
    for (int d = below(3); d > 0; --d)
      if (i > 0) waits_for.push_back({OpId{static_cast<std::uint32_t>(below(i))}, 0});
    if (below(4) == 0) waits_for.push_back({OpId{static_cast<std::uint32_t>(below(count))}, 1});
    const double seconds = below(5) == 0 ? 0 : 1e-3 * (1 + below(1000));
    if (stream == Stream::communication || stream == Stream::mask_communication)
      ops.push_back(collective(graph, "c " + std::to_string(i), 1_MB, 4, seconds, waits_for,
                               CollectiveKind::all_reduce, stream));
    else
      ops.push_back(operation("o " + std::to_string(i), static_cast<Kind>(below(5)), stream,
                              seconds, waits_for));
  }
  graph.classes.push_back({.name = "all", .ranks = 4, .operations = std::move(ops)});
  graph.period = 1 + below(2);
  return graph;
}

}  // namespace

TEST_CASE("breakdown and terms sum to the step; exposed never exceeds total communication") {
  std::mt19937 random(20);
  for (int trial = 0; trial < 2000; ++trial) {
    const graph::StepGraph graph = random_graph(random);
    const result::StepMetrics m = result::metrics_of(graph, schedule(graph, 8));
    const result::Breakdown& b = m.breakdown;
    const Seconds sum =
        b.compute + b.optimizer + b.exposed_communication + b.copy + b.host + b.bubble;
    CAPTURE(trial);
    // Rounding of at most some dozen additions of times near 100 s.
    REQUIRE(sum.si() == Approx(m.step_time.si()).margin(1e-11));
    Seconds terms(0);
    for (const result::Term& term : m.terms) terms += term.time;
    REQUIRE(terms.si() == Approx(m.step_time.si()).margin(1e-11));
    Seconds exposed(0);
    for (const result::Communication& row : m.communication) {
      REQUIRE(row.exposed.si() <= row.time.si() + 1e-11);
      exposed += row.exposed;
    }
    REQUIRE(exposed <= b.exposed_communication + Seconds(1e-11));
    if (m.overlap_fraction) {
      REQUIRE(*m.overlap_fraction >= -1e-9);
      REQUIRE(*m.overlap_fraction <= 1);
    }
  }
}

TEST_CASE("all times times k give the same shares and k times the step") {
  std::mt19937 random(21);
  for (int trial = 0; trial < 300; ++trial) {
    graph::StepGraph graph = random_graph(random);
    const result::StepMetrics before = result::metrics_of(graph, schedule(graph, 6));
    for (Operation& op : graph.classes[0].operations) op.duration *= 4;  // a power of 2: exact
    const result::StepMetrics after = result::metrics_of(graph, schedule(graph, 6));
    REQUIRE(after.step_time == 4 * before.step_time);
    REQUIRE(after.breakdown.exposed_communication == 4 * before.breakdown.exposed_communication);
    REQUIRE(after.breakdown.bubble == 4 * before.breakdown.bubble);
    REQUIRE(after.overlap_fraction == before.overlap_fraction);
  }
}

TEST_CASE("a lone rank class is never left with an unexplained gap") {
  std::mt19937 random(22);
  for (int trial = 0; trial < 1000; ++trial) {
    const graph::StepGraph graph = random_graph(random);
    // List scheduling idles only for something that runs: no bubble beyond rounding.
    REQUIRE(result::metrics_of(graph, schedule(graph, 6)).breakdown.bubble.si() < 1e-11);
  }
}
