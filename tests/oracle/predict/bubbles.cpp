// SPDX-License-Identifier: Apache-2.0
// Uniform stages with free communication: what a replay of each schedule leaves idle is the
// published formula.
#include <catch2/catch.hpp>
#include <map>

#include "sim/engine/replay.hpp"
#include "sim/plan/messages.hpp"
#include "sim/result/metrics.hpp"

using namespace scapesim;
using plan::Pass;
using plan::Pipeline;
using plan::StageProgram;
using spec::Schedule;

namespace {

/// A replay adds a few hundred times.
constexpr double kFormula = 1e-6;

/// Times of a micro-batch in one chunk of a stage.
struct Uniform {
  double forward = 1, input = 1, weight = 1;
  double hidden = 0;  ///< of a forward and a backward pass that run as one
  double of(Pass pass) const {
    switch (pass) {
      case Pass::forward:
        return forward;
      case Pass::backward:
        return input + weight;
      case Pass::input_gradient:
        return input;
      case Pass::weight_gradient:
        return weight;
    }
    return 0;
  }
  double all() const { return forward + input + weight; }
};

graph::OpId append(StageProgram& stage, graph::Operation operation) {
  stage.program.operations.push_back(std::move(operation));
  return {static_cast<std::uint32_t>(stage.program.operations.size() - 1)};
}

StageProgram stage_of(Schedule schedule, const Pipeline& pipeline, int number,
                      const Uniform& times) {
  StageProgram stage;
  stage.order = plan::stage_order(schedule, pipeline, number);
  for (std::size_t i = 0; i < stage.order.size(); ++i) {
    const bool second = i > 0 && plan::joins_next(pipeline, stage.order, i - 1);
    graph::Operation pass;
    pass.name = "pass";
    pass.duration = Seconds(times.of(stage.order[i].pass) - (second ? times.hidden : 0));
    const graph::OpId op = append(stage, pass);
    stage.ops.push_back({op, op});
  }
  // Nobody begins the next step before all have ended this one.
  graph::Operation barrier;
  barrier.name = "barrier";
  barrier.kind = graph::Kind::communication;
  barrier.stream = graph::Stream::communication;
  barrier.work = graph::Work::collective;
  barrier.collective = {static_cast<std::uint32_t>(stage.program.calls.size())};
  barrier.waits_for = {{stage.ops.back().last}};
  stage.program.calls.push_back({.name = "barrier", .bytes = {}, .axis = graph::Axis::world});
  graph::Operation end;
  end.name = "end";
  end.waits_for = {{append(stage, barrier)}};
  append(stage, end);
  return stage;
}

/// Calls of one name are one collective that takes no time.
graph::StepGraph free_of_charge(std::vector<StageProgram> stages) {
  graph::StepGraph graph;
  std::map<std::string, graph::CollectiveId> known;
  for (std::uint32_t s = 0; s < stages.size(); ++s) {
    strategy::Program& program = stages[s].program;
    for (graph::Operation& operation : program.operations) {
      if (operation.work != graph::Work::collective) continue;
      const std::string& name = program.calls[index(operation.collective)].name;
      const graph::CollectiveId next{static_cast<std::uint32_t>(graph.collectives.size())};
      const auto [entry, is_new] = known.try_emplace(name, next);
      if (is_new) graph.collectives.emplace_back().name = name;
      graph.collectives[index(entry->second)].members.push_back({s});
      operation.collective = entry->second;
    }
    graph.classes.push_back({.name = "stage", .ranks = 1, .operations = program.operations});
  }
  return graph;
}

struct Case {
  Schedule schedule = Schedule::one_f_one_b;
  Pipeline pipeline;
  Uniform times;
  spec::StageOverlap overlap = spec::StageOverlap::automatic;
};

graph::StepGraph graph_of(const Case& c) {
  spec::Scenario scenario;
  scenario.cluster.gpus = c.pipeline.stages;
  scenario.parallelism.pp = c.pipeline.stages;
  scenario.parallelism.virtual_stages = c.pipeline.chunks;
  scenario.parallelism.schedule = c.schedule;
  scenario.parallelism.stage_overlap = c.overlap;
  scenario.training.micro_batch = 1;
  scenario.training.sequence = 1;
  scenario.training.global_batch = c.pipeline.micro_batches;
  std::vector<StageProgram> stages;
  for (int stage = 0; stage < c.pipeline.stages; ++stage)
    stages.push_back(stage_of(c.schedule, c.pipeline, stage, c.times));
  plan::add_messages(stages, scenario);
  return free_of_charge(std::move(stages));
}

double step_of(const Case& c) {
  const engine::Timeline timeline =
      engine::replay(graph_of(c), {.driver = engine::Driver::standalone});
  CHECK(timeline.steady);
  return result::step_time(timeline, 1).si();
}

double bubble_fraction(const Case& c) {
  const double work = c.pipeline.micro_batches * c.pipeline.chunks * c.times.all();
  return (step_of(c) - work) / work;
}

}  // namespace

TEST_CASE("[M231] GPipe and 1F1B leave (p-1)/m of the work idle") {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b})
    for (const auto overlap : {spec::StageOverlap::overlapped, spec::StageOverlap::blocking})
      for (const int p : {2, 3, 4, 8})
        for (const int m : {p, 2 * p, 3 * p + 1, 32}) {
          const Case c{schedule, {p, 1, m}, {.forward = 1, .input = 1.3, .weight = 0.7}, overlap};
          INFO(name_of(schedule) << " p " << p << " m " << m << " " << name_of(overlap));
          CHECK(bubble_fraction(c) == Approx((p - 1.0) / m).epsilon(kFormula));
        }
}

TEST_CASE("[M231] interleaved stages leave (p-1)/(v m)") {
  for (const int p : {2, 4, 8})
    for (const int v : {2, 3, 4})
      for (const int m : {2 * p, 4 * p}) {
        const Case c{Schedule::interleaved, {p, v, m}, {}};
        INFO("p " << p << " v " << v << " m " << m);
        CHECK(bubble_fraction(c) == Approx((p - 1.0) / (v * m)).epsilon(kFormula));
      }
}

TEST_CASE("[M231] ZB-H1 leaves (p-1)(F + B - W), a third of 1F1B's when all are equal") {
  for (const int p : {2, 4, 8})
    for (const int m : {2 * p, 4 * p})
      for (const Uniform times : {Uniform{1, 1, 1}, Uniform{1, 1.2, 1}, Uniform{1.1, 1.1, 0.9}}) {
        const Case c{Schedule::zb_h1, {p, 1, m}, times};
        const double idle = (p - 1) * (times.forward + times.input - times.weight);
        INFO("p " << p << " m " << m << " F " << times.forward << " B " << times.input);
        CHECK(bubble_fraction(c) * m * times.all() == Approx(idle).epsilon(kFormula));
      }
}

TEST_CASE(
    "[M425] DualPipe cut in half leaves (p-1)(F&B + B - 3W), B whole and F as long as its half") {
  for (const int p : {2, 3, 4, 8})
    for (const int m : {2 * p, 2 * p + 1, 5 * p})
      for (const Uniform times :
           {Uniform{1, 1, 1}, Uniform{1, 1, 0.8}, Uniform{1.5, 1.5, 0.6}, Uniform{1, 1, 1, 0.5},
            Uniform{1, 1, 0.8, 0.7}, Uniform{1.2, 1.2, 0.6, 0.5}}) {
        const Case c{Schedule::dualpipe, {p, 2, m, plan::Placement::vee}, times};
        const double both = times.all() - times.hidden, back = times.input + times.weight;
        const double idle = (p - 1) * (both + back - 3 * times.weight);
        const int pairs = 2 * (m - p) - 1;  // of the last stage; the others have less, and wait
        const double work = m * 2 * times.all() - pairs * times.hidden;
        INFO("p " << p << " m " << m << " F " << times.forward << " W " << times.weight << " F&B "
                  << both);
        CHECK(step_of(c) - work == Approx(idle).epsilon(kFormula));
      }
}

TEST_CASE("what a stage waits for its neighbours is a bubble, and the parts sum to the step") {
  const Case c{Schedule::one_f_one_b, {4, 1, 8}, {}};
  const graph::StepGraph graph = graph_of(c);
  const auto timeline = engine::replay(graph, {.driver = engine::Driver::standalone});
  const result::StepMetrics metrics = result::metrics_of(graph, timeline);
  CHECK(metrics.breakdown.compute.si() == Approx(8 * 3).epsilon(kFormula));
  CHECK(metrics.breakdown.bubble.si() == Approx(3 * 3).epsilon(kFormula));
  CHECK(metrics.step_time.si() == Approx(33).epsilon(kFormula));
}
