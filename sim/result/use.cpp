// SPDX-License-Identifier: Apache-2.0
#include "sim/result/use.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace scapesim::result {
namespace {

/// Sums of changes, by time.
class Steps {
 public:
  void add(Seconds time, double change) { changes_[time] += change; }

  std::vector<Level> levels() const {
    std::vector<Level> list;
    double value = 0;
    for (const auto& [time, change] : changes_) {
      value += change;
      list.push_back({time, value});
    }
    return list;
  }

 private:
  std::map<Seconds, double> changes_;
};

const graph::Operation& operation_of(const graph::StepGraph& graph, const engine::Span& span) {
  return graph.classes[index(span.rank_class)].operations[index(span.op)];
}

void add_phases(std::span<const graph::Phase> phases, const engine::Span& span,
                const graph::StepGraph& graph, std::vector<Steps>& steps) {
  const Seconds length = span.end - span.begin;
  if (length <= Seconds(0)) return;
  for (const graph::Phase& phase : phases)
    for (const graph::Load& load : phase.loads) {
      const std::size_t at = index(load.resource);
      const double share = load.flows * (phase.bytes / length) / graph.resources[at].capacity;
      steps[at].add(span.begin, share);
      steps[at].add(span.end, -share);
    }
}

}  // namespace

// [M491]
std::vector<std::vector<Level>> resource_use(const graph::StepGraph& graph,
                                             const engine::Timeline& timeline) {
  std::vector<Steps> steps(graph.resources.size());
  std::set<std::pair<int, std::uint32_t>> seen;  // a collective has a span per class
  for (const engine::Span& span : timeline.spans) {
    const graph::Operation& operation = operation_of(graph, span);
    if (operation.work == graph::Work::transfer) {
      add_phases({&operation.transfer, 1}, span, graph, steps);
    } else if (operation.work == graph::Work::collective &&
               seen.emplace(span.step, operation.collective.value).second) {
      add_phases(graph.collectives[index(operation.collective)].phases, span, graph, steps);
    }
  }
  std::vector<std::vector<Level>> list;
  for (const Steps& one : steps) list.push_back(one.levels());
  return list;
}

}  // namespace scapesim::result
