// SPDX-License-Identifier: Apache-2.0
// What holds for the replay of any step graph, tried on random ones.
#include "sim/engine/replay.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "tests/support/random_graph.hpp"

using namespace scapesim;
using namespace scapesim::test;
using engine::Driver;
using engine::Span;
using engine::Timeline;

namespace {

Timeline alone(const graph::StepGraph& graph) {
  return engine::replay(graph, {.driver = Driver::standalone});
}

/// Spans by (step, class, operation), which is their order.
class Spans {
 public:
  Spans(const graph::StepGraph& graph, const Timeline& timeline) : timeline_(timeline) {
    for (const graph::RankClass& rank_class : graph.classes) {
      first_.push_back(per_step_);
      per_step_ += rank_class.operations.size();
    }
  }
  const Span& at(int step, graph::RankClassId rank_class, graph::OpId op) const {
    const std::size_t in_step = first_[index(rank_class)] + index(op);
    return timeline_.spans.at(static_cast<std::size_t>(step) * per_step_ + in_step);
  }
  std::size_t per_step() const { return per_step_; }

 private:
  const Timeline& timeline_;
  std::vector<std::size_t> first_;
  std::size_t per_step_ = 0;
};

/// When an operation could begin at the earliest: the end of the one before it in its stream, and
/// of what it waits for. Equal to Span::ready to the last bit.
Seconds earliest(const graph::StepGraph& graph, const Spans& spans, const Span& span) {
  const auto& operations = graph.classes[index(span.rank_class)].operations;
  const graph::Operation& operation = operations[index(span.op)];
  Seconds time = 0_s;
  const auto after = [&](int step, graph::OpId op) {
    if (step >= 0) time = std::max(time, spans.at(step, span.rank_class, op).end);
  };
  for (const graph::Dependency& wait : operation.waits_for)
    after(span.step - wait.steps_back, wait.op);
  std::uint32_t last = 0;
  for (std::uint32_t op = 0; op < operations.size(); ++op) {
    if (operations[op].stream != operation.stream) continue;
    if (op < span.op.value) after(span.step, {op});
    last = op;
  }
  after(span.step - 1, {last});
  return time;
}

/// The same member's span in another class of the same collective, or its own.
std::vector<const Span*> together(const graph::StepGraph& graph, const Spans& spans,
                                  const Span& span) {
  const graph::Operation& operation =
      graph.classes[index(span.rank_class)].operations[index(span.op)];
  std::vector<const Span*> list = {&span};
  if (operation.work != graph::Work::collective) return list;
  for (const graph::RankClassId member : graph.collectives[index(operation.collective)].members) {
    const auto& operations = graph.classes[index(member)].operations;
    for (std::uint32_t op = 0; op < operations.size(); ++op)
      if (operations[op].work == graph::Work::collective &&
          operations[op].collective == operation.collective)
        list.push_back(&spans.at(span.step, member, {op}));
  }
  return list;
}

graph::StepGraph scaled_times(graph::StepGraph graph, double factor) {
  const auto scale = [&](graph::Phase& phase) {
    phase.latency *= factor;
    phase.bytes *= factor;
  };
  for (graph::Collective& collective : graph.collectives)
    for (graph::Phase& phase : collective.phases) scale(phase);
  for (graph::RankClass& rank_class : graph.classes)
    for (graph::Operation& operation : rank_class.operations) {
      operation.duration *= factor;
      scale(operation.transfer);
    }
  return graph;
}

graph::StepGraph scaled_bandwidths(graph::StepGraph graph, double factor) {
  for (graph::Resource& resource : graph.resources) resource.capacity *= factor;
  for (graph::Collective& collective : graph.collectives)
    for (graph::Phase& phase : collective.phases) phase.rate_cap *= factor;
  return graph;
}

/// Classes in another order: class i becomes class place[i].
graph::StepGraph relabelled(const graph::StepGraph& graph,
                            const std::vector<std::uint32_t>& place) {
  graph::StepGraph out = graph;
  for (std::size_t i = 0; i < place.size(); ++i) out.classes[place[i]] = graph.classes[i];
  for (graph::Collective& collective : out.collectives)
    for (graph::RankClassId& member : collective.members) member = {place[index(member)]};
  return out;
}

/// Class 0 as two classes of half the ranks; the second has a copy engine like the first's.
graph::StepGraph split(graph::StepGraph graph) {
  const graph::RankClassId twin{static_cast<std::uint32_t>(graph.classes.size())};
  const graph::ResourceId engine = RandomResources{}.copy_engine(0);
  const graph::ResourceId twin_engine{static_cast<std::uint32_t>(graph.resources.size())};
  graph.resources.push_back(graph.resources[index(engine)]);
  graph.classes.push_back(graph.classes[0]);
  for (graph::Operation& operation : graph.classes.back().operations)
    for (graph::Load& load : operation.transfer.loads)
      if (load.resource == engine) load.resource = twin_engine;
  for (graph::Collective& collective : graph.collectives)
    if (std::ranges::count(collective.members, graph::RankClassId{0}) > 0)
      collective.members.push_back(twin);
  return graph;
}

/// Rounding in another order of sums, over some hundred events.
Approx same(Seconds expected) { return Approx(expected.si()).epsilon(1e-11).margin(1e-12); }

constexpr int kGraphs = 150;

}  // namespace

// SimGrid rounds its own clock to 1e-9 s and lets it go on from one engine to the next; neither may
// show, be the steps nanoseconds or days long.
TEST_CASE("both drivers give the same timeline to the last bit") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(0, kGraphs)));
  const double factor = GENERATE(1.0, 1e-9, 1e5);
  const auto graph = scaled_times(random_graph(seed), factor);
  const Timeline simgrid = engine::replay(graph, {.driver = Driver::simgrid});
  const Timeline standalone = alone(graph);
  REQUIRE(simgrid.step_end == standalone.step_end);
  REQUIRE(simgrid.spans.size() == standalone.spans.size());
  for (std::size_t i = 0; i < simgrid.spans.size(); ++i) {
    REQUIRE(simgrid.spans[i].ready == standalone.spans[i].ready);
    REQUIRE(simgrid.spans[i].begin == standalone.spans[i].begin);
    REQUIRE(simgrid.spans[i].end == standalone.spans[i].end);
  }
}

TEST_CASE("every operation is ready exactly when its stream and all it waits for are done") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(0, kGraphs)));
  const auto graph = random_graph(seed);
  const Timeline timeline = alone(graph);
  const Spans spans(graph, timeline);
  REQUIRE(timeline.spans.size() == timeline.step_end.size() * spans.per_step());
  for (const Span& span : timeline.spans) {
    REQUIRE(&spans.at(span.step, span.rank_class, span.op) == &span);
    REQUIRE(span.ready == earliest(graph, spans, span));
  }
}

TEST_CASE(
    "work begins when ready, a collective when its last member is, and ends for all at once") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(0, kGraphs)));
  const auto graph = random_graph(seed);
  const Timeline timeline = alone(graph);
  const Spans spans(graph, timeline);
  for (const Span& span : timeline.spans) {
    Seconds last_ready = 0_s;
    for (const Span* member : together(graph, spans, span)) {
      last_ready = std::max(last_ready, member->ready);
      REQUIRE(member->end == span.end);
    }
    REQUIRE(span.begin == last_ready);
    const graph::Operation& operation =
        graph.classes[index(span.rank_class)].operations[index(span.op)];
    if (operation.work == graph::Work::local) REQUIRE(span.end == span.begin + operation.duration);
    REQUIRE(span.end >= span.begin);
  }
}

TEST_CASE("a step ends with the compute stream of the slowest class") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(0, kGraphs)));
  const auto graph = random_graph(seed);
  const Timeline timeline = alone(graph);
  std::vector<Seconds> ends(timeline.step_end.size());
  for (const Span& span : timeline.spans) {
    const auto& operation = graph.classes[index(span.rank_class)].operations[index(span.op)];
    Seconds& end = ends[static_cast<std::size_t>(span.step)];
    if (operation.stream == graph::Stream::compute) end = std::max(end, span.end);
  }
  REQUIRE(timeline.step_end == ends);
  REQUIRE(timeline.step_begin[0] == 0_s);
  for (std::size_t i = 1; i < ends.size(); ++i) REQUIRE(timeline.step_begin[i] == ends[i - 1]);
}

TEST_CASE("scaling all times by k scales the result by k") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(0, kGraphs)));
  const double factor = GENERATE(0.001, 3.0);
  const auto graph = random_graph(seed);
  const Timeline before = alone(graph);
  const Timeline after = alone(scaled_times(graph, factor));
  for (std::size_t i = 0; i < std::min(before.step_end.size(), after.step_end.size()); ++i)
    REQUIRE(after.step_end[i].si() == same(factor * before.step_end[i]));
}

TEST_CASE("more bandwidth never slows a graph with one collective at a time") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(0, kGraphs)));
  const double factor = GENERATE(1.0, 1.5, 100.0);
  const auto graph = random_graph(seed, {.one_collective_at_a_time = true});
  const Timeline before = alone(graph);
  const Timeline after = alone(scaled_bandwidths(graph, factor));
  for (std::size_t i = 0; i < std::min(before.step_end.size(), after.step_end.size()); ++i)
    REQUIRE(after.step_end[i].si() <= before.step_end[i].si() * (1 + 1e-12));  // rounding
}

TEST_CASE("the order of rank classes changes nothing") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(0, kGraphs)));
  const auto graph = random_graph(seed);
  std::vector<std::uint32_t> place(graph.classes.size());
  for (std::uint32_t i = 0; i < place.size(); ++i) place[i] = i;
  Random random(seed);
  shuffle(place, random);
  const auto other = relabelled(graph, place);
  const Timeline before = alone(graph);
  const Timeline after = alone(other);
  const Spans spans(other, after);
  REQUIRE(before.step_end.size() == after.step_end.size());
  for (const Span& span : before.spans) {
    const Span& same_span = spans.at(span.step, {place[index(span.rank_class)]}, span.op);
    REQUIRE(same_span.begin.si() == same(span.begin));
    REQUIRE(same_span.end.si() == same(span.end));
  }
}

TEST_CASE("splitting a rank class into two equal ones changes nothing") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(0, kGraphs)));
  const auto graph = random_graph(seed);
  const auto other = split(graph);
  const Timeline before = alone(graph);
  const Timeline after = alone(other);
  const Spans spans(other, after);
  const graph::RankClassId twin{static_cast<std::uint32_t>(graph.classes.size())};
  REQUIRE(before.step_end.size() == after.step_end.size());
  for (const Span& span : before.spans) {
    REQUIRE(spans.at(span.step, span.rank_class, span.op).end.si() == same(span.end));
    if (span.rank_class.value == 0)
      REQUIRE(spans.at(span.step, twin, span.op).end.si() == same(span.end));
  }
}

TEST_CASE("a steady timeline goes on as it repeats: more steps would change nothing") {
  const auto seed = static_cast<std::uint64_t>(GENERATE(range(0, kGraphs)));
  auto graph = random_graph(seed);
  const Timeline timeline = alone(graph);
  if (!timeline.steady) return;
  // A period of twice the length needs twice as many steps; the mean step must be the same.
  const auto mean = [](const Timeline& t) {
    const Seconds from = t.step_begin[static_cast<std::size_t>(t.warmup)];
    return (t.step_end.back() - from) / (static_cast<double>(t.step_end.size()) - t.warmup);
  };
  graph.period *= 2;
  const Timeline longer = engine::replay(graph, {.driver = Driver::standalone, .most_steps = 24});
  REQUIRE(longer.steady);
  REQUIRE(mean(longer).si() == Approx(mean(timeline).si()).epsilon(1e-8));  // steady to 1e-9
}
