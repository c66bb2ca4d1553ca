// SPDX-License-Identifier: Apache-2.0
// [M232] The model cut into stages, [M236] [M418] messages between them, [M233] [M234] exchanges
// within a pass, [M237] memory per stage.
#include "sim/plan/stages.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "sim/plan/memory.hpp"
#include "sim/plan/messages.hpp"
#include "tests/support/strategy.hpp"

using namespace scapesim;
using namespace scapesim::test;
using graph::StepGraph;
using graph::Stream;

namespace {

constexpr double kRounding = 1e-12;

/// So many copies of a model over nodes of 8 GPUs.
spec::Scenario split(spec::Parallelism parallelism, int micro_batches, int copies = 1) {
  spec::Scenario scenario = scenario_of(llama_1_8b(), 8);
  scenario.cluster.gpus_per_node = 8;
  scenario.cluster.nics_per_node = 8;
  scenario.cluster.node_link_bandwidth = BytesPerSecond(300e9);
  scenario.cluster.gpus = copies * parallelism.tp * parallelism.pp * parallelism.cp;
  scenario.cluster.nodes = (scenario.cluster.gpus + 7) / 8;
  scenario.parallelism = std::move(parallelism);
  scenario.training.global_batch = std::int64_t{copies} * micro_batches;
  return scenario;
}

workload::Workload workload_for(const spec::Scenario& s) {
  return workload::workload_of(s.model, s.training, s.parallelism);
}

StepGraph graph_of(const spec::Scenario& scenario, const cost::Profile& profile = round_profile()) {
  return plan::step_graph(scenario, workload_for(scenario), profile,
                          topology::build_fabric(scenario.cluster, scenario.cluster.nodes));
}

std::vector<std::size_t> layers_per_part(const spec::Scenario& scenario) {
  std::vector<std::size_t> counts;
  for (const plan::Part& part : plan::parts_of(workload_for(scenario), scenario))
    counts.push_back(part.end - part.begin);
  return counts;
}

double compute_time(const graph::RankClass& rank_class) {
  double sum = 0;
  for (const graph::Operation& operation : rank_class.operations)
    if (operation.kind == graph::Kind::compute) sum += operation.duration.si();
  return sum;
}

}  // namespace

TEST_CASE("[M232] equal shares of the layers; the ends have embedding and head besides") {
  CHECK(layers_per_part(split({.pp = 4}, 4)) == std::vector<std::size_t>{7, 6, 6, 7});
  CHECK(layers_per_part(split({.pp = 2, .stage_layers = {10, 14}}, 4)) ==
        std::vector<std::size_t>{11, 15});
  CHECK(layers_per_part(
            split({.pp = 2, .virtual_stages = 3, .schedule = spec::Schedule::interleaved}, 4)) ==
        std::vector<std::size_t>{5, 4, 4, 4, 4, 5});
}

TEST_CASE("[M232] stages hold all parameters of the model, tied embeddings twice") {
  for (const bool tied : {false, true}) {
    spec::Scenario scenario = split({.pp = 4}, 4);
    scenario.model.tied_embeddings = tied;
    const workload::Workload workload = workload_for(scenario);
    const auto parts = plan::parts_of(workload, scenario);
    std::int64_t sum = 0;
    for (int stage = 0; stage < 4; ++stage)
      sum += plan::stage_workload(workload, scenario, parts, stage).parameters;
    CHECK(sum == workload.parameters + (tied ? std::int64_t{32'000} * 2560 : 0));
  }
}

TEST_CASE("stages together compute what one GPU computes") {
  const spec::Scenario whole = split({}, 4);
  const double alone = compute_time(graph_of(whole).classes.at(0));
  for (const spec::Schedule schedule :
       {spec::Schedule::gpipe, spec::Schedule::one_f_one_b, spec::Schedule::zb_h1}) {
    double sum = 0;
    const StepGraph graph = graph_of(split({.pp = 4, .schedule = schedule}, 4));
    REQUIRE(graph.classes.size() == 4);
    for (const graph::RankClass& stage : graph.classes) sum += compute_time(stage);
    CHECK(sum == Approx(alone).epsilon(1e-9));
  }
}

TEST_CASE(
    "[M236] b s h elements each way per micro-batch and border, a tp-th in parallel sequences") {
  const double bytes = 1024 * 2560 * 2.0;
  CHECK(plan::message_bytes(split({.pp = 2}, 4)).si() == bytes);
  CHECK(plan::message_bytes(split({.tp = 2, .pp = 2}, 4)).si() == bytes);
  CHECK(plan::message_bytes(split({.tp = 2, .pp = 2, .sequence_parallel = true}, 4)).si() ==
        bytes / 2);
  for (const int p : {2, 4}) {
    const StepGraph graph = graph_of(split({.pp = p}, 6));
    int messages = 0;
    for (const graph::Collective& collective : graph.collectives)
      if (collective.kind == graph::CollectiveKind::send_recv) {
        ++messages;
        CHECK(collective.members.size() == 2);
        CHECK(collective.bytes.si() == bytes);
      }
    CHECK(messages == 2 * (p - 1) * 6);
  }
}

TEST_CASE("[M418] a tensor rank sends a tp-th of a message, and the group gathers all of it") {
  const double bytes = 1024 * 2560 * 2.0;
  const auto sent = [&](spec::Parallelism parallelism) {
    std::map<graph::CollectiveKind, std::vector<double>> of_kind;
    for (const graph::Collective& collective : graph_of(split(parallelism, 6)).collectives)
      if (collective.name.starts_with("activation"))
        of_kind[collective.kind].push_back(collective.bytes.si());
    return of_kind;
  };
  using enum graph::CollectiveKind;
  const std::size_t messages = 2 * 6;  // forward and backward over one border
  const auto whole = sent({.tp = 4, .pp = 2});
  CHECK(whole.at(send_recv) == std::vector<double>(messages, bytes));
  CHECK_FALSE(whole.contains(all_gather));
  const auto parts = sent({.tp = 4, .pp = 2, .split_messages = true});
  CHECK(parts.at(send_recv) == std::vector<double>(messages, bytes / 4));
  CHECK(parts.at(all_gather) == std::vector<double>(messages, bytes));
  // Ranks that hold different tokens send them as they are, and so does one rank alone.
  const auto sequences =
      sent({.tp = 4, .pp = 2, .sequence_parallel = true, .split_messages = true});
  CHECK(sequences.at(send_recv) == std::vector<double>(messages, bytes / 4));
  CHECK_FALSE(sequences.contains(all_gather));
  CHECK(sent({.pp = 2, .split_messages = true}).at(send_recv) ==
        std::vector<double>(messages, bytes));
}

TEST_CASE("[M418] a pass waits for the gathered message") {
  const StepGraph graph = graph_of(split({.tp = 4, .pp = 2, .split_messages = true}, 2));
  int gathers = 0;
  for (const graph::Operation& operation : graph.classes[1].operations)
    if (operation.formula == "M418") {
      ++gathers;
      CHECK(operation.waits_for.size() == 1);
      CHECK(operation.stream == Stream::receive_forward);
    }
  CHECK(gathers == 2);
}

TEST_CASE("[M236] chunks of interleaved stages pass through every border, and from last to first") {
  const StepGraph graph =
      graph_of(split({.pp = 2, .virtual_stages = 3, .schedule = spec::Schedule::interleaved}, 4));
  int messages = 0;
  for (const graph::Collective& collective : graph.collectives)
    messages += collective.kind == graph::CollectiveKind::send_recv ? 1 : 0;
  CHECK(messages == 2 * (2 * 3 - 1) * 4);
}

TEST_CASE("[M425] a V crosses every border four times per micro-batch, and loses no work") {
  for (const int p : {2, 4}) {
    const StepGraph graph =
        graph_of(split({.pp = p, .virtual_stages = 2, .schedule = spec::Schedule::dualpipe}, 8));
    int messages = 0;
    for (const graph::Collective& collective : graph.collectives)
      messages += collective.kind == graph::CollectiveKind::send_recv ? 1 : 0;
    CHECK(messages == 4 * (p - 1) * 8);
    double sum = 0;
    for (const graph::RankClass& stage : graph.classes) sum += compute_time(stage);
    CHECK(sum == Approx(compute_time(graph_of(split({}, 8)).classes.at(0))).epsilon(1e-9));
  }
}

TEST_CASE("[M236] blocking stages post what they receive behind the pass before") {
  for (const auto overlap : {spec::StageOverlap::blocking, spec::StageOverlap::overlapped}) {
    const StepGraph graph = graph_of(split({.pp = 2, .stage_overlap = overlap}, 4));
    std::size_t posted = 0;
    for (const graph::Operation& operation : graph.classes[1].operations)
      if (operation.stream == Stream::receive_forward) posted += operation.waits_for.size();
    CHECK(posted == (overlap == spec::StageOverlap::blocking ? 3 : 0));
  }
}

TEST_CASE("[M233] [M234] a pass holds its exchanges, each for its time alone") {
  cost::Profile profile = round_profile();
  const spec::Scenario scenario = split({.tp = 4}, 2);
  const StepGraph graph = graph_of(scenario, profile);
  const auto& operations = graph.classes.at(0).operations;
  const graph::Operation& forward = operations[1];
  REQUIRE(forward.name == "forward: micro-batch 0");
  // Embedding, two per layer: T h in bf16 by a ring of 4 inside the node.
  int calls = 0;
  Seconds exchanged;
  for (const graph::Inside& inside : forward.inside) {
    if (inside.bytes.si() != 1024 * 2560 * 2.0) continue;
    calls += inside.count;
    exchanged += inside.time;
    CHECK(inside.group_size == 4);
    CHECK(inside.exposed == inside.time);
  }
  CHECK(calls == 1 + 2 * 24);
  const double one = 2 * 3.0 / 4 * 1024 * 2560 * 2 / 300e9;
  CHECK(exchanged.si() == Approx(49 * one).epsilon(1e-9));
}

TEST_CASE("[M237] early stages of 1F1B are fullest, and GPipe keeps all micro-batches") {
  const spec::Scenario scenario = split({.pp = 4}, 16);
  const auto workload = workload_for(scenario);
  const auto kept = [&](spec::Schedule schedule, int stage) {
    spec::Scenario s = scenario;
    s.parallelism.schedule = schedule;
    return plan::stage_memory(s, workload, round_profile(), stage).activations;
  };
  const Bytes layer = workload.layers[1].kept;
  CHECK(kept(spec::Schedule::one_f_one_b, 0).si() == Approx((4 * 6 * layer).si()));
  CHECK(kept(spec::Schedule::one_f_one_b, 1).si() == Approx((3 * 6 * layer).si()));
  CHECK(kept(spec::Schedule::gpipe, 1).si() == Approx((16 * 6 * layer).si()));
  const plan::MemoryNeed fullest = plan::memory_need(scenario, workload, round_profile());
  for (int stage = 0; stage < 4; ++stage)
    CHECK(plan::stage_memory(scenario, workload, round_profile(), stage).total <= fullest.total);
}
