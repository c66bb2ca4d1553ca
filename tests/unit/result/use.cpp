// SPDX-License-Identifier: Apache-2.0
#include "sim/result/use.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/result/timeline_of.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

std::vector<std::pair<double, double>> pairs(const std::vector<result::Level>& levels) {
  std::vector<std::pair<double, double>> list;
  for (const result::Level& level : levels) list.emplace_back(level.time.si(), level.value);
  return list;
}

using Pairs = std::vector<std::pair<double, double>>;

}  // namespace

TEST_CASE("[M491] a call uses flows x bytes / (time x capacity) of a link, once for all classes") {
  graph::StepGraph graph;
  graph.resources = {{"link", BytesPerSecond(4e9)}, {"idle", BytesPerSecond(1e9)}};
  const Operation reduce = collective(graph, "reduce", Bytes(1e9), 2, 2, {});
  graph.collectives[0].phases = {
      {.latency = {}, .bytes = Bytes(1e9), .rate_cap = {}, .loads = {{graph::ResourceId{0}, 2}}},
      {.latency = {}, .bytes = Bytes(2e9), .rate_cap = {}, .loads = {{graph::ResourceId{0}, 1}}}};
  const Operation work = operation("work", Kind::compute, Stream::compute, 1);
  graph.classes = {{.name = "a", .ranks = 1, .operations = {work, reduce}},
                   {.name = "b", .ranks = 1, .operations = {reduce}}};
  engine::Timeline timeline;
  const Seconds one(1), three(3);
  timeline.spans = {{RankClassId{0}, OpId{0}, 0, {}, {}, one},
                    {RankClassId{0}, OpId{1}, 0, one, one, three},
                    {RankClassId{1}, OpId{0}, 0, {}, one, three}};
  const auto use = result::resource_use(graph, timeline);
  REQUIRE(use.size() == 2);
  CHECK(pairs(use[0]) == Pairs{{1, 0.5}, {3, 0}});  // 4e9 bytes in 2 s of 8e9
  CHECK(use[1].empty());
}

TEST_CASE("[M491] a copy counts like a call, and what runs together adds up") {
  graph::StepGraph graph;
  graph.resources = {{"host link", BytesPerSecond(2e9)}};
  Operation copy = operation("copy", Kind::copy, Stream::copy_in, 1);
  copy.work = Work::transfer;
  copy.transfer = {
      .latency = {}, .bytes = Bytes(1e9), .rate_cap = {}, .loads = {{graph::ResourceId{0}, 1}}};
  Operation other = copy;
  other.stream = Stream::copy_out;
  graph.classes = {{.name = "a", .ranks = 1, .operations = {copy, other}}};
  engine::Timeline timeline;
  timeline.spans = {{RankClassId{0}, OpId{0}, 0, {}, Seconds(0), Seconds(2)},
                    {RankClassId{0}, OpId{1}, 0, {}, Seconds(1), Seconds(3)}};
  CHECK(pairs(result::resource_use(graph, timeline)[0]) ==
        Pairs{{0, 0.25}, {1, 0.5}, {2, 0.25}, {3, 0}});
}
