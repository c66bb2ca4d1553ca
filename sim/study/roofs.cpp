// SPDX-License-Identifier: Apache-2.0
#include "sim/study/roofs.hpp"

#include <algorithm>
#include <array>

#include "sim/result/attribution.hpp"
#include "sim/result/metrics.hpp"

namespace scapesim::study {
namespace {

using graph::Operation;
using graph::StepGraph;

Seconds exposed_inside(const Operation& operation) {
  Seconds sum;
  for (const graph::Inside& inside : operation.inside) sum += inside.exposed;
  return sum;
}

template <class Change>
StepGraph with_operations(StepGraph graph, Change change) {
  for (graph::RankClass& rank_class : graph.classes)
    for (Operation& operation : rank_class.operations) change(operation);
  return graph;
}

StepGraph without_communication(StepGraph graph) {
  for (graph::Collective& collective : graph.collectives) {
    collective.phases.clear();
    collective.lower_bound = Seconds(0);
  }
  return with_operations(std::move(graph), [](Operation& operation) {
    operation.duration -= exposed_inside(operation);
    operation.inside.clear();
  });
}

StepGraph without_computation(StepGraph graph) {
  return with_operations(std::move(graph), [](Operation& operation) {
    if (operation.work != graph::Work::local) return;
    if (operation.kind == graph::Kind::compute || operation.kind == graph::Kind::optimizer)
      operation.duration = exposed_inside(operation);
  });
}

StepGraph without_host(StepGraph graph) {
  return with_operations(std::move(graph), [](Operation& operation) {
    if (operation.kind == graph::Kind::host && operation.work == graph::Work::local)
      operation.duration = Seconds(0);
    if (operation.kind == graph::Kind::copy) {
      operation.duration = Seconds(0);
      operation.transfer.latency = Seconds(0);
      operation.transfer.bytes = Bytes(0);
    }
  });
}

Seconds replayed(const StepGraph& graph) {
  return result::step_time(engine::replay(graph, {.driver = engine::Driver::standalone}),
                           graph.period);
}

/// Busy time of every stream of one class in the last period, exchanges within local work apart.
Seconds busiest(const StepGraph& graph, const engine::Timeline& timeline,
                graph::RankClassId rank_class) {
  const std::size_t steps = timeline.step_end.size();
  const result::Window window{timeline.step_begin[steps - static_cast<std::size_t>(graph.period)],
                              timeline.step_end.back()};
  std::array<Seconds, graph::kStreams> busy{};
  Seconds inside;
  const auto& operations = graph.classes[index(rank_class)].operations;
  for (int step = 0; step < static_cast<int>(steps); ++step)
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      const Operation& operation = operations[i];
      const engine::Span& span = result::span_of(graph, timeline, step, rank_class, graph::OpId{i});
      const Seconds length = result::overlap(span, window);
      if (length <= Seconds(0)) continue;
      const double share = operation.duration > Seconds(0) && !operation.inside.empty()
                               ? length / operation.duration
                               : 0.0;
      const Seconds exposed = share * exposed_inside(operation);
      inside += exposed;
      busy[static_cast<std::size_t>(operation.stream)] += length - exposed;
    }
  return std::max(inside, std::ranges::max(busy)) / graph.period;
}

Seconds perfectly_overlapped(const Prediction& prediction) {
  Seconds longest;
  for (std::uint32_t c = 0; c < prediction.graph.classes.size(); ++c)
    longest =
        std::max(longest, busiest(prediction.graph, prediction.timeline, graph::RankClassId{c}));
  return longest;
}

}  // namespace

// [M369] Of what runs at a rate of its own nothing gets slower when something else takes no time;
// of perfect overlap what is left is the busiest stream of the busiest rank, links shared as they
// are shared in the prediction.
std::vector<Roof> roofs_of(const Prediction& prediction) {
  const auto& run = std::get<result::Run>(prediction.outcome);
  return {
      {"communication free", "collectives and messages take no time",
       replayed(without_communication(prediction.graph))},
      {"overlap perfect", "nothing waits: the busiest stream of the busiest GPU",
       perfectly_overlapped(prediction)},
      {"host and copies free", "no host work, no copies to and from host memory",
       replayed(without_host(prediction.graph))},
      {"computation free", "kernels take no time, optimizer's included",
       replayed(without_computation(prediction.graph))},
      {"every GPU at its peak", "nothing but the model's FLOPs at the data sheet's rate",
       run.step_time * run.mfu},
  };
}

}  // namespace scapesim::study
