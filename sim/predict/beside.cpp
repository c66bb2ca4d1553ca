// SPDX-License-Identifier: Apache-2.0
#include "sim/predict/beside.hpp"

#include <algorithm>
#include <vector>

namespace scapesim {

namespace {

struct Interval {
  Seconds begin, end;
};

/// Collectives with kernels of their own on the GPU: messages between stages take next to none.
bool holds_multiprocessors(const graph::StepGraph& graph, const graph::Operation& operation) {
  if (operation.work != graph::Work::collective) return false;
  const graph::Collective& collective = graph.collectives[index(operation.collective)];
  return collective.kind != graph::CollectiveKind::send_recv && !collective.phases.empty();
}

bool is_kernel(const graph::Operation& operation) {
  return operation.work == graph::Work::local &&
         (operation.kind == graph::Kind::compute || operation.kind == graph::Kind::optimizer);
}

/// Sorted, without overlaps.
std::vector<Interval> united(std::vector<Interval> list) {
  std::ranges::sort(list, {}, &Interval::begin);
  std::vector<Interval> result;
  for (const Interval& interval : list)
    if (!result.empty() && interval.begin <= result.back().end)
      result.back().end = std::max(result.back().end, interval.end);
    else
      result.push_back(interval);
  return result;
}

/// How much of [begin, end) the intervals cover.
Seconds covered(const std::vector<Interval>& intervals, Seconds begin, Seconds end) {
  Seconds sum(0);
  auto interval = std::ranges::upper_bound(intervals, begin, {}, &Interval::end);
  for (; interval != intervals.end() && interval->begin < end; ++interval)
    sum += std::min(interval->end, end) - std::max(interval->begin, begin);
  return sum;
}

}  // namespace

// [M406] c / (1 + c) of the time that a collective runs beside a kernel is added to the kernel: it
// goes on at 1 / (1 + c) of its pace. Means over the steps behind the warm-up.
Seconds slow_beside_collectives(graph::StepGraph& graph, const engine::Timeline& timeline,
                                double overlap_slowdown) {
  const double share = overlap_slowdown / (1 + overlap_slowdown);
  const auto steps = static_cast<int>(timeline.step_end.size()) - timeline.warmup;
  std::vector<std::vector<Interval>> busy(graph.classes.size());
  for (const engine::Span& span : timeline.spans)
    if (holds_multiprocessors(graph,
                              graph.classes[index(span.rank_class)].operations[index(span.op)]))
      busy[index(span.rank_class)].push_back({span.begin, span.end});
  for (std::vector<Interval>& list : busy) list = united(std::move(list));

  std::vector<Seconds> added(graph.classes.size());
  for (const engine::Span& span : timeline.spans) {
    const std::size_t its = index(span.rank_class);
    graph::Operation& operation = graph.classes[its].operations[index(span.op)];
    if (span.step < timeline.warmup || busy[its].empty() || !is_kernel(operation)) continue;
    const Seconds more = share / steps * covered(busy[its], span.begin, span.end);
    operation.duration += more;
    added[its] += more;
  }
  return *std::ranges::max_element(added);
}

}  // namespace scapesim
