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

/// Training steps within the steady window.
double steps_of_window(const StepGraph& graph) {
  return static_cast<double>(graph.period) * graph.training_steps;
}

Shares shares_of(const StepGraph& graph, const Timeline& timeline, RankClassId rank_class) {
  Shares shares{.of_op = std::vector<Seconds>(graph.classes[index(rank_class)].operations.size()),
                .bubble = Seconds(0)};
  const Window window = steady_window(timeline, graph.period);
  for (const Piece& piece : attribute(graph, timeline, rank_class, window)) {
    const Seconds length = piece.length / steps_of_window(graph);
    (piece.op ? shares.of_op[index(*piece.op)] : shares.bubble) += length;
  }
  return shares;
}

/// [M238] What the exchanges within local work hold of its share of the critical path.
Seconds exposed_inside(const Operation& operation, const graph::Inside& inside, Seconds share) {
  return operation.duration > Seconds(0) ? share * (inside.exposed / operation.duration)
                                         : Seconds(0);
}

Seconds exposed_inside(const Operation& operation, Seconds share) {
  Seconds sum;
  for (const graph::Inside& inside : operation.inside)
    sum += exposed_inside(operation, inside, share);
  return sum;
}

Breakdown breakdown_of(const std::vector<Operation>& operations, const Shares& shares) {
  Breakdown breakdown{};
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Seconds exchanged = exposed_inside(operations[i], shares.of_op[i]);
    part_of(breakdown, operations[i].kind) += shares.of_op[i] - exchanged;
    breakdown.exposed_communication += exchanged;
  }
  breakdown.bubble = shares.bubble;
  return breakdown;
}

/// Adds to the term of that name, formula and calibration.
void add_term(std::vector<Term>& terms, std::string name, const Operation& op, Seconds time) {
  if (time <= Seconds(0)) return;
  const auto same = [&](const Term& term) {
    return term.name == name && term.formula == op.formula && term.calibration == op.calibration;
  };
  if (const auto found = std::ranges::find_if(terms, same); found != terms.end())
    found->time += time;
  else
    terms.push_back({std::move(name), time, op.formula, op.calibration});
}

// [M75] The step as a sum: operations of one name, formula and calibration are one term; each
// counts what it holds of the critical path, so that the terms sum to the step.
std::vector<Term> terms_of(const std::vector<Operation>& operations, const Shares& shares) {
  std::vector<Term> terms;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Operation& op = operations[i];
    const Seconds share = shares.of_op[i];
    if (share <= Seconds(0)) continue;
    add_term(terms, term_name(op.name), op, share - exposed_inside(op, share));
    for (const graph::Inside& inside : op.inside)
      add_term(terms, term_name(inside.name), op, exposed_inside(op, inside, share));
  }
  if (shares.bubble > Seconds(0))
    terms.push_back({std::string(kWaiting), shares.bubble, "M72", ""});
  std::ranges::stable_sort(terms, std::greater{}, &Term::time);
  return terms;
}

/// The row of the communication table for calls that have name, kind, group and size in common.
Communication& row_of(std::vector<Communication>& rows, Communication wanted) {
  const auto row = std::ranges::find_if(rows, [&](const Communication& r) {
    return r.name == wanted.name && r.collective == wanted.collective &&
           r.group_size == wanted.group_size && r.bytes == wanted.bytes &&
           r.algorithm == wanted.algorithm && r.protocol == wanted.protocol;
  });
  if (row != rows.end()) return *row;
  rows.push_back(std::move(wanted));
  return rows.back();
}

/// An empty row for a collective, or for exchanges within local work.
template <class Calls>
Communication row_for(const Calls& calls, graph::CollectiveKind kind) {
  return {.name = term_name(calls.name),
          .collective = std::string(name_of(kind)),
          .group_size = calls.group_size,
          .count = 0,
          .bytes = calls.bytes,
          .busbw = BytesPerSecond(0),
          .time = Seconds(0),
          .exposed = Seconds(0),
          .algorithm = calls.algorithm,
          .protocol = calls.protocol};
}

Seconds time_in_window(const StepGraph& graph, const Timeline& timeline, RankClassId rank_class,
                       OpId op) {
  const Window window = steady_window(timeline, graph.period);
  Seconds time(0);
  for (int step = 0; step < static_cast<int>(timeline.step_end.size()); ++step)
    time += overlap(span_of(graph, timeline, step, rank_class, op), window);
  return time / steps_of_window(graph);
}

/// Calls of their own.
void add_collectives(std::vector<Communication>& rows, const StepGraph& graph,
                     const Timeline& timeline, RankClassId rank_class, const Shares& shares) {
  const std::vector<Operation>& operations = graph.classes[index(rank_class)].operations;
  for (std::uint32_t i = 0; i < operations.size(); ++i) {
    if (operations[i].work != graph::Work::collective) continue;
    const graph::Collective& collective = graph.collectives[index(operations[i].collective)];
    Communication& row = row_of(rows, row_for(collective, collective.kind));
    row.count += 1.0 / graph.training_steps;
    row.time += time_in_window(graph, timeline, rank_class, OpId{i});
    row.exposed += shares.of_op[i];
  }
}

/// Calls within local work.
void add_exchanges(std::vector<Communication>& rows, const StepGraph& graph, RankClassId rank_class,
                   const Shares& shares) {
  const std::vector<Operation>& operations = graph.classes[index(rank_class)].operations;
  const double steps = graph.training_steps;
  for (std::size_t i = 0; i < operations.size(); ++i)
    for (const graph::Inside& inside : operations[i].inside) {
      Communication& row = row_of(rows, row_for(inside, inside.kind));
      row.count += inside.count / steps;
      row.time += inside.time / steps;
      row.exposed += exposed_inside(operations[i], inside, shares.of_op[i]);
    }
}

// [M70] Bus bandwidth of a row: factor * bytes of all calls / their time, as nccl-tests counts.
std::vector<Communication> communication_of(const StepGraph& graph, const Timeline& timeline,
                                            RankClassId rank_class, const Shares& shares) {
  std::vector<Communication> rows;
  add_collectives(rows, graph, timeline, rank_class, shares);
  add_exchanges(rows, graph, rank_class, shares);
  for (Communication& row : rows) {
    const auto kind = find_named<graph::CollectiveKind>(row.collective);
    if (kind && row.time > Seconds(0))
      row.busbw = busbw_factor(*kind, row.group_size) * row.count * row.bytes / row.time;
  }
  return rows;
}

}  // namespace

Seconds step_time(const Timeline& timeline, int period) {
  const Window window = steady_window(timeline, period);
  return (window.end - window.begin) / period;
}

Seconds step_time(const StepGraph& graph, const Timeline& timeline) {
  return step_time(timeline, graph.period) / graph.training_steps;
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
  StepMetrics metrics{.step_time = step_time(graph, timeline),
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
