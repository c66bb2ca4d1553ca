// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/replay.hpp"

#include <catch2/catch.hpp>

#include "sim/base/check.hpp"
#include "sim/engine/fluid.hpp"
#include "tests/support/network.hpp"

using namespace scapesim;
using namespace scapesim::test;
using engine::Driver;
using engine::Timeline;

namespace {

Timeline alone(const graph::StepGraph& graph) {
  return engine::replay(graph, {.driver = Driver::standalone});
}

graph::StepGraph one_class(std::vector<graph::Operation> operations) {
  graph::StepGraph graph;
  graph.classes.push_back({"all", 1, std::move(operations)});
  return graph;
}

}  // namespace

TEST_CASE("activities that end at one time are told in the order of their tags") {
  engine::Fluid fluid({});
  for (const engine::Tag tag : {7u, 3u, 5u}) fluid.start_timer(tag, 1_s);
  fluid.start_timer(1, 2_s);
  const auto first = fluid.advance();
  REQUIRE(std::vector(first.begin(), first.end()) == std::vector<engine::Tag>{3, 5, 7});
  REQUIRE(fluid.now() == 1_s);
  REQUIRE(fluid.advance().size() == 1);
  REQUIRE(fluid.idle());
}

TEST_CASE("a transfer of no bytes ends with its latency") {
  engine::Fluid fluid({});
  const graph::Phase phase{.latency = 1_s, .bytes = {}, .rate_cap = {}, .loads = {}};
  fluid.start(0, phase);
  REQUIRE(fluid.advance().empty());  // begins to move
  REQUIRE(fluid.advance().size() == 1);
  REQUIRE(fluid.now() == 1_s);
}

TEST_CASE("[M24] steps of equal length are steady after two") {
  const Timeline timeline = alone(one_class({local(1_s), local(2_s)}));
  REQUIRE(timeline.steady);
  REQUIRE(timeline.step_end == std::vector{3_s, 6_s});
  REQUIRE(timeline.warmup == 1);
}

TEST_CASE("work of the step before delays only steps that have one") {
  // The copy takes 3 s and the next step's computation waits for it.
  auto copy = local(3_s, graph::Stream::copy_out);
  copy.waits_for = {{{0}, 0}};
  auto compute = local(1_s);
  compute.waits_for = {{{1}, 1}};
  const Timeline timeline = alone(one_class({compute, copy}));
  REQUIRE(timeline.step_end[0] == 1_s);
  REQUIRE(timeline.step_end[1] == 5_s);  // copy of step 0 ends at 4
  REQUIRE(timeline.step_end[2] == 9_s);
  REQUIRE(timeline.steady);
  REQUIRE(timeline.warmup == 2);
}

TEST_CASE("an asynchronous stream that falls behind more and more is not steady") {
  graph::StepGraph graph = one_class({local(1_s), local(2_s, graph::Stream::copy_out)});
  const Timeline timeline = engine::replay(graph, {.driver = Driver::standalone, .most_steps = 6});
  REQUIRE_FALSE(timeline.steady);
  REQUIRE(timeline.step_end.size() == 6);
  REQUIRE(timeline.warmup == 3);
}

TEST_CASE("a host that runs ahead does not keep steps from being steady") {
  auto compute = local(2_s);
  compute.waits_for = {{{0}, 0}};
  const Timeline timeline = alone(one_class({local(0.5_s, graph::Stream::host), compute}));
  REQUIRE(timeline.steady);
  REQUIRE(timeline.step_end.back() - timeline.step_begin.back() == 2_s);
}

TEST_CASE("a pattern of two steps is averaged over two") {
  // The computation waits for a copy two steps back: with 3 s copies and 2 s of computation it
  // settles in 3 s per step.
  auto copy = local(3_s, graph::Stream::copy_out);
  copy.waits_for = {{{0}, 0}};
  auto compute = local(2_s);
  compute.waits_for = {{{1}, 2}};
  graph::StepGraph graph = one_class({compute, copy});
  graph.period = 2;
  const Timeline timeline = alone(graph);
  REQUIRE(timeline.steady);
  const auto warmup = static_cast<std::size_t>(timeline.warmup);
  REQUIRE(timeline.step_end.size() - warmup == 2);
  REQUIRE((timeline.step_end.back() - timeline.step_begin[warmup]) == 6_s);
}

TEST_CASE("a class that computes nothing ends its step with its last stream") {
  const Timeline timeline =
      alone(one_class({local(1_s, graph::Stream::host), local(2_s, graph::Stream::copy_in)}));
  REQUIRE(timeline.step_end[0] == 2_s);
}

TEST_CASE("graphs that break their rules are refused") {
  REQUIRE_THROWS_AS(alone({}), InternalError);
  REQUIRE_THROWS_AS(alone(one_class({})), InternalError);
  REQUIRE_THROWS_AS(alone(one_class({local(-1 * 1_s)})), InternalError);
  auto waits_for_nobody = local(1_s);
  waits_for_nobody.waits_for = {{{9}, 0}};
  REQUIRE_THROWS_AS(alone(one_class({waits_for_nobody})), InternalError);
  REQUIRE_THROWS_AS(alone(one_class({enter(0, graph::Stream::communication)})), InternalError);
}

TEST_CASE("a graph that waits for itself is a deadlock, not a hang") {
  const auto driver = GENERATE(Driver::standalone, Driver::simgrid);
  auto operation = local(1_s);
  operation.waits_for = {{{0}, 0}};
  const auto graph = one_class({operation});
  REQUIRE_THROWS_AS(engine::replay(graph, {.driver = driver}), InternalError);
  // Another replay in the same process goes on as if nothing had happened.
  REQUIRE(engine::replay(one_class({local(1_s)}), {.driver = driver}).step_end[0] == 1_s);
}

TEST_CASE("[M151] a collective that beats its lower bound is our fault, and named") {
  const auto fabric = topology::build_fabric(flat_cluster(), 4);
  auto graph = only_calls(fabric, {plan::consecutive_gpus(4)},
                          {call(graph::CollectiveKind::all_reduce, 1_GiB)});
  REQUIRE(graph.collectives[0].lower_bound > 0_s);
  REQUIRE_NOTHROW(alone(graph));
  graph.collectives[0].phases[0].bytes = 0.9 * graph.collectives[0].phases[0].bytes;
  REQUIRE_THROWS_WITH(alone(graph), Catch::Contains("all-reduce takes"));
}
