// SPDX-License-Identifier: Apache-2.0
#include "sim/result/attribution.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "sim/base/check.hpp"

namespace scapesim::result {
namespace {

using graph::Operation;
using graph::OpId;
using graph::RankClass;

/// An operation of a step.
struct Instance {
  int step = 0;
  OpId op;
  auto operator<=>(const Instance&) const = default;
};

/// One rank class's part of the timeline, with the order of its streams.
class ClassView {
 public:
  ClassView(const graph::StepGraph& graph, const engine::Timeline& timeline,
            graph::RankClassId rank_class)
      : graph_(graph),
        timeline_(timeline),
        id_(rank_class),
        rank_class_(graph.classes[index(rank_class)]),
        before_(rank_class_.operations.size()) {
    std::array<std::optional<OpId>, graph::kStreams> last;
    for (std::uint32_t i = 0; i < rank_class_.operations.size(); ++i) {
      auto& newest = last[stream_index(OpId{i})];
      before_[i] = newest;
      newest = OpId{i};
    }
    last_ = last;
  }

  const Operation& operation(OpId op) const { return rank_class_.operations[index(op)]; }
  const engine::Span& span(Instance at) const {
    return span_of(graph_, timeline_, at.step, id_, at.op);
  }
  int steps() const { return static_cast<int>(timeline_.step_end.size()); }
  std::size_t operations() const { return rank_class_.operations.size(); }

  /// What an operation waits for directly: its dependencies and the one before it on its stream.
  std::vector<Instance> waits_for(Instance at) const {
    std::vector<Instance> list;
    for (const graph::Dependency& d : operation(at.op).waits_for)
      if (at.step >= d.steps_back) list.push_back({at.step - d.steps_back, d.op});
    if (const auto& earlier = before_[index(at.op)])
      list.push_back({at.step, *earlier});
    else if (at.step > 0)
      list.push_back({at.step - 1, *last_[stream_index(at.op)]});
    return list;
  }

 private:
  std::size_t stream_index(OpId op) const { return static_cast<std::size_t>(operation(op).stream); }

  const graph::StepGraph& graph_;
  const engine::Timeline& timeline_;
  graph::RankClassId id_;
  const RankClass& rank_class_;
  std::vector<std::optional<OpId>> before_;
  std::array<std::optional<OpId>, graph::kStreams> last_;
};

/// What `waiting` waits for, directly or through others, and that runs within the gap. Whatever
/// ended before the gap has nothing running behind it, so the search stops there.
std::vector<Instance> running_causes(const ClassView& view, Instance waiting, Window gap) {
  std::vector<Instance> causes;
  std::vector<Instance> open = {waiting};
  std::set<Instance> seen = {waiting};
  while (!open.empty()) {
    const Instance at = open.back();
    open.pop_back();
    for (const Instance& cause : view.waits_for(at)) {
      const engine::Span& span = view.span(cause);
      if (span.end <= gap.begin || !seen.insert(cause).second) continue;
      open.push_back(cause);
      if (span.begin < gap.end) causes.push_back(cause);
    }
  }
  return causes;
}

/// Of two operations that hold the compute stream at the same instant, the one that answers for
/// it: the kind decides, then the later end, then the order of issue.
bool answers_before(const ClassView& view, Instance a, Instance b) {
  const auto kind_a = view.operation(a.op).kind, kind_b = view.operation(b.op).kind;
  if (kind_a != kind_b) return kind_a < kind_b;
  const Seconds end_a = view.span(a).end, end_b = view.span(b).end;
  if (end_a != end_b) return end_a > end_b;
  return a < b;
}

void attribute_gap(const ClassView& view, Instance waiting, Window gap, std::vector<Piece>& out) {
  const std::vector<Instance> causes = running_causes(view, waiting, gap);
  std::vector<Seconds> cuts = {gap.begin, gap.end};
  for (const Instance& cause : causes)
    for (const Seconds t : {view.span(cause).begin, view.span(cause).end})
      if (t > gap.begin && t < gap.end) cuts.push_back(t);
  std::ranges::sort(cuts);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    if (cuts[i] == cuts[i + 1]) continue;
    std::optional<Instance> best;
    for (const Instance& cause : causes) {
      const engine::Span& span = view.span(cause);
      if (span.begin > cuts[i] || span.end < cuts[i + 1]) continue;
      if (!best || answers_before(view, cause, *best)) best = cause;
    }
    Piece piece{.length = cuts[i + 1] - cuts[i], .op = std::nullopt};
    if (best) piece.op = best->op;
    out.push_back(piece);
  }
}

/// Operations of the compute stream that end after the window begins, in order of time.
std::vector<Instance> compute_stream(const ClassView& view, Window window) {
  std::vector<Instance> list;
  for (int step = 0; step < view.steps(); ++step)
    for (std::uint32_t i = 0; i < view.operations(); ++i)
      if (view.operation(OpId{i}).stream == graph::Stream::compute &&
          view.span({step, OpId{i}}).end > window.begin)
        list.push_back({step, OpId{i}});
  return list;
}

}  // namespace

const engine::Span& span_of(const graph::StepGraph& graph, const engine::Timeline& timeline,
                            int step, graph::RankClassId rank_class, graph::OpId op) {
  std::size_t per_step = 0, before = 0;
  for (std::size_t c = 0; c < graph.classes.size(); ++c) {
    if (c == index(rank_class)) before = per_step;
    per_step += graph.classes[c].operations.size();
  }
  const std::size_t position = static_cast<std::size_t>(step) * per_step + before + index(op);
  SCAPESIM_CHECK(position < timeline.spans.size(), "step {} class {} operation {}", step,
                 index(rank_class), index(op));
  const engine::Span& span = timeline.spans[position];
  SCAPESIM_CHECK(span.step == step && span.rank_class == rank_class && span.op == op,
                 "spans out of order at {}", position);
  return span;
}

Seconds overlap(const engine::Span& span, Window window) {
  const Seconds begin = std::max(span.begin, window.begin);
  const Seconds end = std::min(span.end, window.end);
  return end > begin ? end - begin : Seconds(0);
}

// [M72] The compute stream is swept once. While it runs an operation, the time is that operation's;
// while it is idle, the time goes to what its next operation waits for, directly or through others:
// of what runs on this rank class at that instant, compute before optimizer before communication
// before copy before host, else to nothing (a bubble: other ranks are waited for).
std::vector<Piece> attribute(const graph::StepGraph& graph, const engine::Timeline& timeline,
                             graph::RankClassId rank_class, Window window) {
  const ClassView view(graph, timeline, rank_class);
  std::vector<Piece> pieces;
  Seconds now = window.begin;
  for (const Instance& at : compute_stream(view, window)) {
    const engine::Span& span = view.span(at);
    const Seconds begin = std::min(span.begin, window.end);
    if (begin > now) attribute_gap(view, at, {now, begin}, pieces);
    now = std::max(now, begin);
    const Seconds end = std::min(span.end, window.end);
    if (end > now) pieces.push_back({end - now, at.op});
    now = std::max(now, end);
    if (now >= window.end) return pieces;
  }
  pieces.push_back({window.end - now, std::nullopt});
  return pieces;
}

}  // namespace scapesim::result
