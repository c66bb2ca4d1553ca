// SPDX-License-Identifier: Apache-2.0
// Timelines written by hand, and one by list scheduling, for the tests of the metrics.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sim/engine/timeline.hpp"
#include "sim/graph/graph.hpp"

namespace scapesim::test {

using graph::CollectiveId;
using graph::CollectiveKind;
using graph::Kind;
using graph::Operation;
using graph::OpId;
using graph::RankClassId;
using graph::Stream;
using graph::Work;

inline Operation operation(std::string name, Kind kind, Stream stream, double seconds,
                           std::vector<graph::Dependency> waits_for = {}) {
  Operation op;
  op.name = std::move(name);
  op.kind = kind;
  op.stream = stream;
  op.duration = Seconds(seconds);
  op.waits_for = std::move(waits_for);
  return op;
}

/// Adds a collective of all classes and the operation that calls it; its time is `seconds`.
inline Operation collective(graph::StepGraph& graph, std::string name, Bytes bytes, int group,
                            double seconds, std::vector<graph::Dependency> waits_for,
                            CollectiveKind kind = CollectiveKind::all_reduce,
                            Stream stream = Stream::communication) {
  Operation op = operation(name, Kind::communication, stream, seconds, std::move(waits_for));
  op.work = Work::collective;
  op.collective = CollectiveId{static_cast<std::uint32_t>(graph.collectives.size())};
  graph.collectives.push_back({.name = std::move(name),
                               .kind = kind,
                               .group_size = group,
                               .bytes = bytes,
                               .algorithm = "ring",
                               .phases = {},
                               .members = {RankClassId{0}}});
  return op;
}

/// Every operation begins when its stream and its dependencies allow; dependencies point to
/// operations listed earlier. One rank class, nothing is shared.
inline engine::Timeline schedule(const graph::StepGraph& graph, int steps) {
  engine::Timeline timeline;
  const std::vector<Operation>& operations = graph.classes.at(0).operations;
  std::vector<Seconds> stream_free(graph::kStreams);
  Seconds end_of_step(0);
  for (int step = 0; step < steps; ++step) {
    timeline.step_begin.push_back(end_of_step);
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      Seconds& free = stream_free[static_cast<std::size_t>(operations[i].stream)];
      Seconds ready = free;
      for (const graph::Dependency& d : operations[i].waits_for)
        if (step >= d.steps_back) {
          const std::size_t at =
              static_cast<std::size_t>(step - d.steps_back) * operations.size() + index(d.op);
          ready = std::max(ready, timeline.spans.at(at).end);
        }
      free = ready + operations[i].duration;
      timeline.spans.push_back({RankClassId{0}, OpId{i}, step, ready, ready, free});
      if (operations[i].stream == Stream::compute) end_of_step = std::max(end_of_step, free);
    }
    timeline.step_end.push_back(end_of_step);
  }
  return timeline;
}

inline graph::StepGraph one_class(std::vector<Operation> operations) {
  graph::StepGraph graph;
  graph.classes.push_back({.name = "all", .ranks = 4, .operations = std::move(operations)});
  return graph;
}

}  // namespace scapesim::test
