// SPDX-License-Identifier: Apache-2.0
#include "sim/result/metrics.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/result/timeline_of.hpp"

using namespace scapesim;
using namespace scapesim::literals;
using namespace scapesim::result;
using namespace scapesim::test;

namespace {

// Sums of a few doubles: 1e-12 relative is rounding.
bool close(Seconds a, double b) { return a.si() == Approx(b).epsilon(1e-12).margin(1e-15); }

/// forward 2 s, backward 4 s; the all-reduce of 3 s starts after `reduce_after`; optimizer 1 s.
graph::StepGraph dense_step(OpId reduce_after) {
  graph::StepGraph graph;
  std::vector<Operation> ops;
  ops.push_back(operation("forward", Kind::compute, Stream::compute, 2));
  ops.push_back(operation("backward", Kind::compute, Stream::compute, 4));
  ops.push_back(collective(graph, "gradient all-reduce", 6_GB, 4, 3, {{reduce_after, 0}}));
  ops.push_back(operation("optimizer", Kind::optimizer, Stream::compute, 1, {{OpId{2}, 0}}));
  graph.classes.push_back({.name = "all", .ranks = 4, .operations = std::move(ops)});
  return graph;
}

}  // namespace

// [M72]
TEST_CASE("communication after the backward pass is fully exposed") {
  const graph::StepGraph graph = dense_step(OpId{1});
  const StepMetrics m = metrics_of(graph, schedule(graph, 3));
  CHECK(close(m.step_time, 10));
  CHECK(close(m.breakdown.compute, 6));
  CHECK(close(m.breakdown.exposed_communication, 3));
  CHECK(close(m.breakdown.optimizer, 1));
  CHECK(close(m.breakdown.bubble, 0));
  REQUIRE(m.communication.size() == 1);
  CHECK(close(m.communication[0].time, 3));
  CHECK(close(m.communication[0].exposed, 3));
  CHECK(*m.overlap_fraction == Approx(0).margin(1e-12));
}

TEST_CASE("communication beside the backward pass that ends before it is hidden") {
  const graph::StepGraph graph = dense_step(OpId{0});
  const StepMetrics m = metrics_of(graph, schedule(graph, 3));
  CHECK(close(m.step_time, 7));
  CHECK(close(m.breakdown.exposed_communication, 0));
  CHECK(close(m.communication.at(0).time, 3));
  CHECK(*m.overlap_fraction == Approx(1).epsilon(1e-12));
}

TEST_CASE("what ends exactly when the compute stream needs it is hidden, a moment later is not") {
  for (const double late : {0.0, 1e-6}) {
    graph::StepGraph graph = dense_step(OpId{0});
    graph.classes[0].operations[2].duration = Seconds(4 + late);
    const StepMetrics m = metrics_of(graph, schedule(graph, 2));
    // The difference of two times near 10 s is exact to 1e-15 s.
    CHECK(m.breakdown.exposed_communication.si() == Approx(late).margin(1e-14));
  }
}

// [M70]
TEST_CASE("busbw of a row follows nccl-tests: factor times bytes over time") {
  const graph::StepGraph graph = dense_step(OpId{1});
  const StepMetrics m = metrics_of(graph, schedule(graph, 2));
  // 2 * 3/4 * 6 GB / 3 s
  CHECK(m.communication.at(0).busbw.si() == Approx(3e9).epsilon(1e-12));
  CHECK(busbw_factor(CollectiveKind::all_reduce, 64) == Approx(2 * 63 / 64.0));
  CHECK(busbw_factor(CollectiveKind::all_gather, 64) == Approx(63 / 64.0));
  CHECK(busbw_factor(CollectiveKind::reduce_scatter, 2) == 0.5);
  CHECK(busbw_factor(CollectiveKind::all_to_all, 8) == Approx(7 / 8.0));
  CHECK(busbw_factor(CollectiveKind::broadcast, 8) == 1);
}

TEST_CASE("a collective queued before the one waited for answers for its own time") {
  graph::StepGraph graph;
  std::vector<Operation> ops;
  ops.push_back(operation("backward", Kind::compute, Stream::compute, 2));
  ops.push_back(
      collective(graph, "mask all-gather", 1_GB, 4, 1, {{OpId{0}, 0}}, CollectiveKind::all_gather));
  ops.push_back(collective(graph, "payload all-reduce", 1_GB, 4, 3, {{OpId{0}, 0}}));
  ops.push_back(operation("optimizer", Kind::optimizer, Stream::compute, 1, {{OpId{2}, 0}}));
  graph.classes.push_back({.name = "all", .ranks = 4, .operations = std::move(ops)});
  const StepMetrics m = metrics_of(graph, schedule(graph, 2));
  REQUIRE(m.communication.size() == 2);
  CHECK(close(m.communication[0].exposed, 1));
  CHECK(close(m.communication[1].exposed, 3));
  CHECK(m.communication[0].collective == "all-gather");
}

TEST_CASE("an operation that nobody waits for takes no part of a gap") {
  graph::StepGraph graph;
  std::vector<Operation> ops;
  ops.push_back(operation("backward", Kind::compute, Stream::compute, 2));
  ops.push_back(collective(graph, "reduce", 1_GB, 4, 3, {{OpId{0}, 0}}));
  ops.push_back(operation("copy out", Kind::copy, Stream::copy_out, 5, {{OpId{0}, 0}}));
  ops.push_back(operation("optimizer", Kind::optimizer, Stream::compute, 4, {{OpId{1}, 0}}));
  graph.classes.push_back({.name = "all", .ranks = 4, .operations = std::move(ops)});
  const StepMetrics m = metrics_of(graph, schedule(graph, 2));
  CHECK(close(m.breakdown.exposed_communication, 3));
  CHECK(close(m.breakdown.copy, 0));
}

TEST_CASE("communication answers before a copy that is waited for at the same time") {
  graph::StepGraph graph;
  std::vector<Operation> ops;
  ops.push_back(operation("backward", Kind::compute, Stream::compute, 2));
  ops.push_back(collective(graph, "reduce", 1_GB, 4, 3, {{OpId{0}, 0}}));
  ops.push_back(operation("copy in", Kind::copy, Stream::copy_in, 5, {{OpId{0}, 0}}));
  ops.push_back(
      operation("optimizer", Kind::optimizer, Stream::compute, 1, {{OpId{1}, 0}, {OpId{2}, 0}}));
  graph.classes.push_back({.name = "all", .ranks = 4, .operations = std::move(ops)});
  const StepMetrics m = metrics_of(graph, schedule(graph, 2));
  CHECK(close(m.breakdown.exposed_communication, 3));
  CHECK(close(m.breakdown.copy, 2));
  CHECK(close(m.step_time, 8));
}

TEST_CASE("waiting for a collective of the step before is exposed in this step") {
  graph::StepGraph graph;
  std::vector<Operation> ops;
  ops.push_back(
      collective(graph, "mask all-gather", 1_GB, 4, 5, {{OpId{1}, 1}}, CollectiveKind::all_gather));
  ops.push_back(operation("step", Kind::compute, Stream::compute, 2, {{OpId{0}, 1}}));
  graph.classes.push_back({.name = "all", .ranks = 4, .operations = std::move(ops)});
  const StepMetrics m = metrics_of(graph, schedule(graph, 9));
  CHECK(m.communication.at(0).exposed <= m.communication.at(0).time);
  CHECK(m.breakdown.exposed_communication > 0_s);
}

TEST_CASE("what other ranks cause is a bubble") {
  graph::StepGraph graph;
  Operation reduce = collective(graph, "reduce", 1_GB, 2, 1, {{OpId{0}, 0}});
  const Operation fast = operation("backward", Kind::compute, Stream::compute, 2);
  const Operation slow = operation("backward", Kind::compute, Stream::compute, 3);
  const Operation end = operation("optimizer", Kind::optimizer, Stream::compute, 1, {{OpId{1}, 0}});
  graph.classes.push_back({.name = "fast", .ranks = 1, .operations = {fast, reduce, end}});
  graph.classes.push_back({.name = "slow", .ranks = 1, .operations = {slow, reduce, end}});
  engine::Timeline t;
  const auto span = [&](std::uint32_t c, std::uint32_t op, double begin, double finish) {
    t.spans.push_back(
        {RankClassId{c}, OpId{op}, 0, Seconds(begin), Seconds(begin), Seconds(finish)});
  };
  span(0, 0, 0, 2), span(0, 1, 3, 4), span(0, 2, 4, 5);
  span(1, 0, 0, 3), span(1, 1, 3, 4), span(1, 2, 4, 5);
  t.step_begin = {Seconds(0)}, t.step_end = {Seconds(5)};
  const StepMetrics m = metrics_of(graph, t);
  CHECK(index(m.slowest) == 1);
  CHECK(close(m.breakdown.bubble, 0));
  // Seen from the fast class (alone in the graph): one second of nothing, one of the collective.
  graph.classes.pop_back();
  t.spans.resize(3);
  const StepMetrics alone = metrics_of(graph, t);
  CHECK(close(alone.breakdown.bubble, 1));
  CHECK(close(alone.breakdown.exposed_communication, 1));
}

// [M75]
TEST_CASE("terms of one name are one, keep formula and calibration, and sum to the step") {
  graph::StepGraph graph = dense_step(OpId{1});
  graph.classes[0].operations[0].name = "forward 0";
  graph.classes[0].operations[1].name = "forward 1";
  for (Operation& op : graph.classes[0].operations) op.formula = "M2", op.calibration = "gemm.a";
  const StepMetrics m = metrics_of(graph, schedule(graph, 2));
  REQUIRE(m.terms.size() == 3);
  CHECK(m.terms[0].name == "forward");
  CHECK(close(m.terms[0].time, 6));
  CHECK(m.terms[0].formula == "M2");
  CHECK(m.terms[1].name == "gradient all-reduce");
  CHECK(m.terms[1].calibration == "gemm.a");
  CHECK(m.terms[2].name == "optimizer");
}

TEST_CASE("a term's name drops what tells equal operations apart, nothing else") {
  CHECK(term_name("gradient all-reduce 3") == "gradient all-reduce");
  CHECK(term_name("bucket #12") == "bucket");
  CHECK(term_name("bucket[2]") == "bucket");
  CHECK(term_name("mlp forward: layer 3") == "mlp forward");
  CHECK(term_name("zero1") == "zero1");
  CHECK(term_name("fp32") == "fp32");
  CHECK(term_name("42") == "42");
}

TEST_CASE("the result is the mean over the period") {
  graph::StepGraph graph = dense_step(OpId{1});
  graph.period = 2;
  const StepMetrics m = metrics_of(graph, schedule(graph, 4));
  CHECK(close(m.step_time, 10));
  CHECK(close(m.communication.at(0).time, 3));
  CHECK(m.communication.at(0).count == 1);
  CHECK(close(m.breakdown.compute, 6));
}

TEST_CASE("equal collectives are one row with their count") {
  graph::StepGraph graph;
  std::vector<Operation> ops;
  ops.push_back(operation("backward", Kind::compute, Stream::compute, 2));
  for (const char* name : {"bucket 0", "bucket 1", "bucket 2"})
    ops.push_back(collective(graph, name, 1_GB, 4, 1, {{OpId{0}, 0}}));
  ops.push_back(operation("optimizer", Kind::optimizer, Stream::compute, 1, {{OpId{3}, 0}}));
  graph.classes.push_back({.name = "all", .ranks = 4, .operations = std::move(ops)});
  const StepMetrics m = metrics_of(graph, schedule(graph, 2));
  REQUIRE(m.communication.size() == 1);
  CHECK(m.communication[0].count == 3);
  CHECK(m.communication[0].bytes == 1_GB);
  CHECK(close(m.communication[0].time, 3));
  CHECK(m.communication[0].busbw.si() == Approx(1.5e9).epsilon(1e-12));
}

TEST_CASE("[M238] exchanges within local work are exposed communication for what they add") {
  Operation pass = operation("forward: micro-batch 0", Kind::compute, Stream::compute, 4);
  pass.inside = {{.name = "tensor parallel all-reduce",
                  .kind = graph::CollectiveKind::all_reduce,
                  .group_size = 4,
                  .count = 8,
                  .bytes = 1_GB,
                  .time = Seconds(3),
                  .exposed = Seconds(1)}};
  const graph::StepGraph graph = one_class({pass, pass});
  const StepMetrics m = metrics_of(graph, schedule(graph, 2));
  CHECK(close(m.step_time, 8));
  CHECK(close(m.breakdown.compute, 6));
  CHECK(close(m.breakdown.exposed_communication, 2));
  REQUIRE(m.communication.size() == 1);
  CHECK(m.communication[0].count == 16);
  CHECK(close(m.communication[0].time, 6));
  CHECK(close(m.communication[0].exposed, 2));
  CHECK(m.overlap_fraction == Approx(2.0 / 3));
  REQUIRE(m.terms.size() == 2);
  CHECK(m.terms[0].name == "forward");
  CHECK(close(m.terms[0].time + m.terms[1].time, 8));
}

// [M73]
TEST_CASE("nothing communicated has no overlap fraction") {
  const graph::StepGraph graph =
      one_class({operation("forward", Kind::compute, Stream::compute, 2)});
  const StepMetrics m = metrics_of(graph, schedule(graph, 2));
  CHECK_FALSE(m.overlap_fraction);
  CHECK(m.communication.empty());
}

// [M71]
TEST_CASE("utilisation is model arithmetic over the peak of all GPUs") {
  CHECK(model_flops_utilisation(4000_TFLOP, 2_s, 4, 1000_TFLOPps) == Approx(0.5).epsilon(1e-15));
}

// [M74]
TEST_CASE("an interval holds the prediction and the central draws") {
  std::vector<Seconds> drawn;
  for (int i = 20; i >= 0; --i) drawn.push_back(Seconds(1 + 0.01 * i));
  const Interval inner = interval_of(drawn, Seconds(1.1), 0.9);
  CHECK(close(inner.low, 1.01));
  CHECK(close(inner.high, 1.19));
  const Interval outside = interval_of(drawn, Seconds(2), 0.9);
  CHECK(close(outside.high, 2));
  const Interval none = interval_of({}, Seconds(2), 0.9);
  CHECK((none.low == 2_s && none.high == 2_s));
}
