// SPDX-License-Identifier: Apache-2.0
// Ring collectives, simulated, against their closed forms.
#include <catch2/catch.hpp>

#include "sim/cost/collective_forms.hpp"
#include "sim/engine/replay.hpp"
#include "sim/plan/ring.hpp"

using namespace scapesim;
using namespace scapesim::literals;

namespace {
spec::Cluster flat() {
  spec::Cluster cluster;
  cluster.nic_bandwidth = 50_GBps;
  cluster.fabric.latency = 5_us;
  return cluster;
}
}  // namespace

TEST_CASE("ring all-reduce on a switch equals its closed form") {
  const auto driver = GENERATE(engine::Driver::standalone, engine::Driver::simgrid);
  const int n = 8;
  const auto fabric = topology::build_fabric(flat(), n);
  const auto net = plan::plan_collectives(
      fabric, {plan::consecutive_gpus(n)},
      {{.name = "ar", .kind = graph::CollectiveKind::all_reduce, .size = 1_GiB, .group = 0, .members = {{0}}, .terms = {}}});
  graph::StepGraph graph;
  graph.collectives = net.collectives;
  graph.resources = net.resources;
  graph::Operation op;
  op.work = graph::Work::collective;
  op.stream = graph::Stream::communication;
  graph.classes.push_back({"all", n, {op}});
  const auto timeline = engine::replay(graph, {.driver = driver});
  const Seconds expected = cost::ring_all_reduce(1_GiB, {n, 5_us, 50_GBps});
  REQUIRE(timeline.step_end[0].si() == Approx(expected.si()).epsilon(1e-12));
}
