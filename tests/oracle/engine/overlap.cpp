// SPDX-License-Identifier: Apache-2.0
// Computation beside communication, and what happens exactly on the boundary. All numbers of the
// boundary cases are binary fractions, so equality is to the last bit.
#include <catch2/catch.hpp>

#include "sim/cost/collective_forms.hpp"
#include "sim/engine/replay.hpp"
#include "tests/support/network.hpp"

using namespace scapesim;
using namespace scapesim::test;
using enum graph::CollectiveKind;
using graph::Stream;

namespace {

/// Both drivers, in turn.
engine::Timeline replayed(const graph::StepGraph& graph) {
  const auto driver = GENERATE(engine::Driver::standalone, engine::Driver::simgrid);
  return engine::replay(graph, {.driver = driver});
}

graph::Operation after(graph::Operation operation, std::vector<graph::Dependency> waits) {
  operation.waits_for = std::move(waits);
  return operation;
}

graph::Operation copy_on(std::uint32_t resource, Bytes bytes, Seconds latency, Stream stream) {
  graph::Operation copy;
  copy.name = "copy";
  copy.kind = graph::Kind::copy;
  copy.stream = stream;
  copy.work = graph::Work::transfer;
  copy.transfer.latency = latency;
  copy.transfer.bytes = bytes;
  copy.transfer.loads = {{{resource}, 1}};
  return copy;
}

/// A backward pass in two halves, the first one's gradients reduced beside the second:
/// operations 0 first half, 1 all-reduce, 2 second half, 3 optimizer after both.
graph::StepGraph overlapped(Seconds first, Seconds second, const plan::CollectiveCall& reduce,
                            const spec::Cluster& cluster) {
  const auto fabric = topology::build_fabric(cluster, 4);
  auto network = plan::plan_collectives(fabric, {plan::consecutive_gpus(4)}, {reduce});
  graph::StepGraph graph;
  graph.collectives = std::move(network.collectives);
  graph.resources = std::move(network.resources);
  graph.classes.push_back({"all",
                           4,
                           {local(first), after(enter(0, Stream::communication), {{{0}, 0}}),
                            local(second), after(local(0.25_s), {{{1}, 0}, {{2}, 0}})}});
  return graph;
}

spec::Cluster binary_cluster() {
  spec::Cluster cluster = flat_cluster();
  cluster.nic_bandwidth = BytesPerSecond(1024);
  cluster.fabric.latency = Seconds(0.125);
  return cluster;
}

}  // namespace

TEST_CASE("overlapped computation and communication take the longer of the two") {
  const Seconds second = GENERATE(1_ms, 10_ms, 31_ms, 100_ms);
  const auto reduce = call(all_reduce, 1_GiB);
  const Seconds communication = cost::ring_all_reduce(1_GiB, {4, 5_us, 50_GBps});
  const auto timeline = replayed(overlapped(20_ms, second, reduce, flat_cluster()));
  const Seconds expected = 20_ms + std::max(second, communication) + 0.25_s;
  // Some sums of doubles.
  REQUIRE(timeline.step_end[0].si() == Approx(expected.si()).epsilon(1e-13));
}

TEST_CASE("communication that ends exactly with the computation beside it is not waited for") {
  // 6 steps of 1/8 s + 256 B / 1024 B/s = 2.25 s.
  const auto timeline =
      replayed(overlapped(0.5_s, 2.25_s, call(all_reduce, Bytes(1024)), binary_cluster()));
  REQUIRE(timeline.spans[1].end == 2.75_s);
  REQUIRE(timeline.spans[3].ready == 2.75_s);
  REQUIRE(timeline.spans[3].begin == 2.75_s);
  REQUIRE(timeline.step_end[0] == 3_s);
}

TEST_CASE("a latency equal to the computation lets the bytes begin at its end, not before") {
  // Latency 0.75 s in 6 steps; the computation beside takes just that; 1.5 s of bytes follow.
  const auto timeline =
      replayed(overlapped(0.5_s, 0.75_s, call(all_reduce, Bytes(1024)), binary_cluster()));
  REQUIRE(timeline.spans[2].end == 1.25_s);
  REQUIRE(timeline.spans[1].end == 1.25_s + 1.5_s);
}

TEST_CASE("a transfer that ends as another begins shares nothing with it") {
  // Copy 0 moves 1024 B from 0 to 1 s; copy 1 on the same engine begins at 1 s, after 1 s of
  // computation, and moves as much in one second more.
  graph::StepGraph graph;
  graph.resources = {{"engine", BytesPerSecond(1024)}};
  graph.classes.push_back(
      {"all",
       1,
       {after(copy_on(0, Bytes(1024), 0_s, Stream::copy_in), {{{3}, 1}}), local(1_s),
        after(copy_on(0, Bytes(1024), 0_s, Stream::copy_out), {{{1}, 0}}),
        after(local(0_s), {{{0}, 0}, {{2}, 0}})}});
  const auto timeline = replayed(graph);
  REQUIRE(timeline.spans[0].end == 1_s);
  REQUIRE(timeline.spans[2].begin == 1_s);
  REQUIRE(timeline.spans[2].end == 2_s);
}

TEST_CASE("a transfer that begins a quarter before another ends shares that quarter") {
  // Copy 0 has 256 B left at 0.75 s and ends at 1.25 s at half rate; copy 1 then has 768 B left.
  graph::StepGraph graph;
  graph.resources = {{"engine", BytesPerSecond(1024)}};
  graph.classes.push_back(
      {"all",
       1,
       {after(copy_on(0, Bytes(1024), 0_s, Stream::copy_in), {{{3}, 1}}), local(0.75_s),
        after(copy_on(0, Bytes(1024), 0_s, Stream::copy_out), {{{1}, 0}}),
        after(local(0_s), {{{0}, 0}, {{2}, 0}})}});
  const auto timeline = replayed(graph);
  REQUIRE(timeline.spans[0].end == 1.25_s);
  REQUIRE(timeline.spans[2].end == 2_s);
}

TEST_CASE("bytes wait for the latency, and hold no link meanwhile") {
  // Copy 1 has a latency of 1 s, in which copy 0 has the engine alone.
  graph::StepGraph graph;
  graph.resources = {{"engine", BytesPerSecond(1024)}};
  graph.classes.push_back({"all",
                           1,
                           {after(copy_on(0, Bytes(1024), 0_s, Stream::copy_in), {{{2}, 1}}),
                            after(copy_on(0, Bytes(1024), 1_s, Stream::copy_out), {{{2}, 1}}),
                            after(local(0_s), {{{0}, 0}, {{1}, 0}})}});
  const auto timeline = replayed(graph);
  REQUIRE(timeline.spans[0].end == 1_s);
  REQUIRE(timeline.spans[1].end == 2_s);
}

TEST_CASE("a collective begins when its slowest member class is ready and holds up the others") {
  const auto fabric = topology::build_fabric(binary_cluster(), 4);
  auto reduce = call(all_reduce, Bytes(1024));
  reduce.members = {{0}, {1}};
  auto network = plan::plan_collectives(fabric, {plan::consecutive_gpus(4)}, {reduce});
  graph::StepGraph graph;
  graph.collectives = std::move(network.collectives);
  graph.resources = std::move(network.resources);
  for (const Seconds compute : {1_s, 3_s})
    graph.classes.push_back({"class",
                             2,
                             {local(compute), after(enter(0, Stream::communication), {{{0}, 0}}),
                              after(local(0.5_s), {{{1}, 0}})}});
  const auto timeline = replayed(graph);
  REQUIRE(timeline.spans[1].ready == 1_s);
  REQUIRE(timeline.spans[1].begin == 3_s);
  REQUIRE(timeline.spans[4].ready == 3_s);
  REQUIRE(timeline.step_end[0] == 3_s + 2.25_s + 0.5_s);
}

TEST_CASE("phases of a collective run one after the other, each with its latency") {
  graph::StepGraph graph;
  graph.resources = {{"link", BytesPerSecond(1024)}};
  graph::Collective& collective = graph.collectives.emplace_back();
  collective.members = {{0}};
  collective.phases = {{0.25_s, Bytes(1024), {}, {{{0}, 1}}},
                       {0.5_s, Bytes(1024), BytesPerSecond(512), {{{0}, 1}}},
                       {0_s, Bytes(1024), {}, {{{0}, 4}}}};
  graph.classes.push_back({"all", 1, {enter(0, Stream::compute)}});
  REQUIRE(replayed(graph).step_end[0] == 0.25_s + 1_s + 0.5_s + 2_s + 4_s);
}
