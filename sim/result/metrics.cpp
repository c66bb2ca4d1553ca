// SPDX-License-Identifier: Apache-2.0
#include "sim/result/metrics.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/result/attribution.hpp"

namespace scapesim::result {
namespace {

using engine::Timeline;
using graph::Kind;
using graph::Operation;
using graph::OpId;
using graph::RankClassId;
using graph::StepGraph;

constexpr std::string_view kWaiting = "waiting for other ranks";

/// The last `period` steps.
Window steady_window(const Timeline& timeline, int period) {
  const std::size_t steps = timeline.step_end.size();
  SCAPESIM_CHECK(period >= 1 && steps >= static_cast<std::size_t>(period), "period {}, {} steps",
                 period, steps);
  return {timeline.step_begin[steps - static_cast<std::size_t>(period)], timeline.step_end.back()};
}

/// The rank class whose compute stream ends the last step last; of those that end together, the
/// one with most work on it.
RankClassId slowest_class(const StepGraph& graph, const Timeline& timeline) {
  const int step = static_cast<int>(timeline.step_end.size()) - 1;
  RankClassId slowest{0};
  Seconds latest(-1), most(-1);
  for (std::uint32_t c = 0; c < graph.classes.size(); ++c) {
    Seconds end(0), work(0);
    for (std::uint32_t i = 0; i < graph.classes[c].operations.size(); ++i) {
      if (graph.classes[c].operations[i].stream != graph::Stream::compute) continue;
      const engine::Span& span = span_of(graph, timeline, step, RankClassId{c}, OpId{i});
      end = std::max(end, span.end);
      work += span.end - span.begin;
    }
    if (end < latest || (end == latest && work <= most)) continue;
    slowest = RankClassId{c}, latest = end, most = work;
  }
  return slowest;
}

Seconds& part_of(Breakdown& breakdown, Kind kind) {
  switch (kind) {
    case Kind::compute:
      return breakdown.compute;
    case Kind::optimizer:
      return breakdown.optimizer;
    case Kind::communication:
      return breakdown.exposed_communication;
    case Kind::copy:
      return breakdown.copy;
    case Kind::host:
      return breakdown.host;
  }
  throw InternalError("unknown kind of operation");
}

/// Time of every operation along the critical path, and that of nothing.
struct Shares {
  std::vector<Seconds> of_op;
  Seconds bubble;
};

Shares shares_of(const StepGraph& graph, const Timeline& timeline, RankClassId rank_class) {
  Shares shares{.of_op = std::vector<Seconds>(graph.classes[index(rank_class)].operations.size()),
                .bubble = Seconds(0)};
  const Window window = steady_window(timeline, graph.period);
  for (const Piece& piece : attribute(graph, timeline, rank_class, window)) {
    const Seconds length = piece.length / graph.period;
    (piece.op ? shares.of_op[index(*piece.op)] : shares.bubble) += length;
  }
  return shares;
}

Breakdown breakdown_of(const std::vector<Operation>& operations, const Shares& shares) {
  Breakdown breakdown{};
  for (std::size_t i = 0; i < operations.size(); ++i)
    part_of(breakdown, operations[i].kind) += shares.of_op[i];
  breakdown.bubble = shares.bubble;
  return breakdown;
}

// [M75] The step as a sum: operations of one name, formula and calibration are one term; each
// counts what it holds of the critical path, so that the terms sum to the step.
std::vector<Term> terms_of(const std::vector<Operation>& operations, const Shares& shares) {
  std::vector<Term> terms;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& op = operations[i];
    const std::string name = term_name(op.name);
    const auto same = [&](const Term& term) {
      return term.name == name && term.formula == op.formula && term.calibration == op.calibration;
    };
    if (shares.of_op[i] <= Seconds(0)) continue;
    if (const auto found = std::ranges::find_if(terms, same); found != terms.end())
      found->time += shares.of_op[i];
    else
      terms.push_back({name, shares.of_op[i], op.formula, op.calibration});
  }
  if (shares.bubble > Seconds(0))
    terms.push_back({std::string(kWaiting), shares.bubble, "M72", ""});
  std::ranges::stable_sort(terms, std::greater{}, &Term::time);
  return terms;
}

/// What the calls of one row of the communication table have in common.
bool same_row(const Communication& row, const graph::Collective& collective,
              const std::string& name) {
  return row.name == name && row.collective == name_of(collective.kind) &&
         row.group_size == collective.group_size && row.bytes == collective.bytes &&
         row.algorithm == collective.algorithm && row.protocol == collective.protocol;
}

Seconds time_in_window(const StepGraph& graph, const Timeline& timeline, RankClassId rank_class,
                       OpId op) {
  const Window window = steady_window(timeline, graph.period);
  Seconds time(0);
  for (int step = 0; step < static_cast<int>(timeline.step_end.size()); ++step)
    time += overlap(span_of(graph, timeline, step, rank_class, op), window);
  return time / graph.period;
}

// [M70] Bus bandwidth of a row: factor * bytes of all calls / their time, as nccl-tests counts.
std::vector<Communication> communication_of(const StepGraph& graph, const Timeline& timeline,
                                            RankClassId rank_class, const Shares& shares) {
  std::vector<Communication> rows;
  const std::vector<Operation>& operations = graph.classes[index(rank_class)].operations;
  for (std::uint32_t i = 0; i < operations.size(); ++i) {
    if (operations[i].work != graph::Work::collective) continue;
    const graph::Collective& collective = graph.collectives[index(operations[i].collective)];
    const std::string name = term_name(collective.name);
    auto row = std::ranges::find_if(
        rows, [&](const Communication& r) { return same_row(r, collective, name); });
    if (row == rows.end()) {
      rows.push_back({.name = name,
                      .collective = std::string(name_of(collective.kind)),
                      .group_size = collective.group_size,
                      .count = 0,
                      .bytes = collective.bytes,
                      .busbw = BytesPerSecond(0),
                      .time = Seconds(0),
                      .exposed = Seconds(0),
                      .algorithm = collective.algorithm,
                      .protocol = collective.protocol});
      row = rows.end() - 1;
    }
    row->count += 1;
    row->time += time_in_window(graph, timeline, rank_class, OpId{i});
    row->exposed += shares.of_op[i];
    if (row->time > Seconds(0))
      row->busbw = busbw_factor(collective.kind, collective.group_size) * row->count * row->bytes /
                   row->time;
  }
  return rows;
}

}  // namespace

Seconds step_time(const Timeline& timeline, int period) {
  const Window window = steady_window(timeline, period);
  return (window.end - window.begin) / period;
}

std::string term_name(std::string_view operation) {
  const auto drop_tail = [&](auto unwanted) {
    while (!operation.empty() && unwanted(static_cast<unsigned char>(operation.back())))
      operation.remove_suffix(1);
  };
  operation = operation.substr(0, operation.find(':'));
  operation = operation.substr(0, operation.find('['));
  const std::string_view whole = operation;
  drop_tail([](unsigned char c) { return std::isdigit(c) != 0; });
  if (!operation.empty() && operation.back() != ' ' && operation.back() != '#')
    return std::string(whole);
  drop_tail([](unsigned char c) { return c == ' ' || c == '#'; });
  return std::string(operation.empty() ? whole : operation);
}

// [M70] nccl-tests, doc/PERFORMANCE.md: what the wire of one rank carries over what the call is
// said to carry. 2(n-1)/n all-reduce, (n-1)/n reduce-scatter, all-gather and all-to-all, 1 else.
double busbw_factor(graph::CollectiveKind kind, int group_size) {
  const double n = group_size;
  switch (kind) {
    case graph::CollectiveKind::all_reduce:
      return 2 * (n - 1) / n;
    case graph::CollectiveKind::reduce_scatter:
    case graph::CollectiveKind::all_gather:
    case graph::CollectiveKind::all_to_all:
      return (n - 1) / n;
    case graph::CollectiveKind::broadcast:
    case graph::CollectiveKind::send_recv:
      return 1;
  }
  throw InternalError("unknown collective");
}

// [M71] Model FLOPs utilisation, Chowdhery et al. 2022 (PaLM) appendix B, with causal attention
// counted half: FLOPs of the step over what the GPUs could do in its time.
double model_flops_utilisation(Flops model_flops, Seconds step_time, int gpus,
                               FlopsPerSecond peak_per_gpu) {
  const Flops possible = step_time * peak_per_gpu * gpus;
  return model_flops / possible;
}

// [M74] Quantiles (1-level)/2 and (1+level)/2 of the drawn step times, linear between order
// statistics (Hyndman and Fan 1996, type 7).
Interval interval_of(std::vector<Seconds> drawn, Seconds predicted, double level) {
  if (drawn.empty()) return {predicted, predicted};
  std::ranges::sort(drawn);
  const auto quantile = [&](double q) {
    const double position = q * static_cast<double>(drawn.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(position));
    const std::size_t above = std::min(below + 1, drawn.size() - 1);
    return drawn[below] + (position - static_cast<double>(below)) * (drawn[above] - drawn[below]);
  };
  return {std::min(predicted, quantile((1 - level) / 2)),
          std::max(predicted, quantile((1 + level) / 2))};
}

// [M73] overlap_fraction = 1 - exposed / total communication of the slowest rank class.
StepMetrics metrics_of(const StepGraph& graph, const Timeline& timeline) {
  const RankClassId slowest = slowest_class(graph, timeline);
  const std::vector<Operation>& operations = graph.classes[index(slowest)].operations;
  const Shares shares = shares_of(graph, timeline, slowest);
  StepMetrics metrics{.step_time = step_time(timeline, graph.period),
                      .slowest = slowest,
                      .breakdown = breakdown_of(operations, shares),
                      .communication = communication_of(graph, timeline, slowest, shares),
                      .overlap_fraction = std::nullopt,
                      .terms = terms_of(operations, shares)};
  Seconds total(0), exposed(0);
  for (const Communication& row : metrics.communication) total += row.time, exposed += row.exposed;
  if (total > Seconds(0)) metrics.overlap_fraction = 1 - exposed / total;
  return metrics;
}

}  // namespace scapesim::result
