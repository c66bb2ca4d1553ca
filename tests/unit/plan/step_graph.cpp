// SPDX-License-Identifier: Apache-2.0
// From workload and strategy to the step graph: order of the passes, [M11] layer times, [M34] host
// work, [M23] scalar collectives, resources.
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/cost/network_terms.hpp"
#include "sim/plan/plan.hpp"
#include "tests/support/strategy.hpp"

using namespace scapesim;
using namespace scapesim::test;
using graph::Kind;
using graph::Operation;
using graph::StepGraph;
using graph::Stream;

namespace {

// Sums of a few hundred kernel times in double precision.
constexpr double kRounding = 1e-12;

StepGraph graph_of(const spec::Scenario& scenario, const cost::Profile& profile = round_profile()) {
  const auto workload = workload::workload_of(scenario.model, scenario.training);
  const auto fabric = topology::build_fabric(scenario.cluster, scenario.cluster.nodes);
  return plan::step_graph(scenario, workload, profile, fabric);
}

std::vector<Operation> operations_of(const StepGraph& graph) {
  REQUIRE(graph.classes.size() == 1);
  return graph.classes[0].operations;
}

const Operation& operation_named(const std::vector<Operation>& operations,
                                 const std::string& name) {
  const auto found = std::ranges::find(operations, name, &Operation::name);
  REQUIRE(found != operations.end());
  return *found;
}

/// Latency of the scalar all-reduce of the gradient norm.
double norm_latency(int ranks, const cost::Profile& profile) {
  spec::Scenario scenario = scenario_of(llama_500m(), ranks);
  scenario.strategy.sharding = spec::Sharding::zero1;
  for (const graph::Collective& collective : graph_of(scenario, profile).collectives)
    if (collective.name == "gradient norm all-reduce") {
      REQUIRE(collective.phases.size() == 1);
      CHECK(collective.algorithm == "tree");
      CHECK(collective.phases[0].bytes == Bytes(0));
      CHECK(collective.phases[0].loads.empty());
      return collective.phases[0].latency.si();
    }
  FAIL("no scalar all-reduce");
  return 0;
}

}  // namespace

TEST_CASE("micro-batches go forward and back, one after the other") {
  spec::Scenario scenario = scenario_of(llama_500m(), 2);
  scenario.training.global_batch = 2 * 3;
  cost::Profile profile = round_profile();
  set(profile, "host.micro_batch_s", 1e-3);
  const StepGraph graph = graph_of(scenario, profile);
  std::vector<std::string> expected = {"host work: step"};
  for (int batch = 0; batch < 3; ++batch)
    for (const char* what : {"host work", "forward", "backward"})
      expected.push_back(std::string(what) + ": micro-batch " + std::to_string(batch));
  std::vector<std::string> found;
  for (const Operation& operation : operations_of(graph)) found.push_back(operation.name);
  REQUIRE(found.size() > expected.size());
  found.resize(expected.size());
  CHECK(found == expected);
}

TEST_CASE("[M11] [M235] a pass takes its layers' kernels one after the other, and counts FLOPs") {
  spec::Scenario scenario = scenario_of(llama_1_8b(), 2);
  scenario.training.overlap_gradients = true;  // issues the last backward pass by layer
  const cost::Profile profile = round_profile();
  const cost::KernelCosts costs(profile, scenario.cluster.gpu, scenario.training.precision);
  const auto layers = workload::workload_of(scenario.model, scenario.training).layers;
  const auto time_of = [&](const std::vector<workload::Operation>& list) {
    double sum = 0;
    for (const workload::Operation& operation : list)
      sum += workload::time_of(operation, costs).si();
    return sum;
  };
  const StepGraph graph = graph_of(scenario, profile);
  const auto operations = operations_of(graph);
  double forward = 0;
  Flops forward_flops;
  for (const auto& layer : layers) {
    forward += time_of(layer.forward);
    forward_flops += flops_of(layer.forward);
  }
  CHECK(operations[1].duration.si() == Approx(forward).epsilon(kRounding));
  CHECK(operations[1].flops.si() == Approx(forward_flops.si()).epsilon(kRounding));
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const Operation& backward =
        operation_named(operations, "backward: " + layers[i].name + ": micro-batch 0");
    CHECK(backward.duration.si() == Approx(time_of(layers[i].backward)).epsilon(kRounding));
    CHECK(backward.flops == flops_of(layers[i].backward));
    CHECK(backward.kind == Kind::compute);
    CHECK(backward.stream == Stream::compute);
  }
}

TEST_CASE("[M34] the host costs a constant per step and one per micro-batch") {
  spec::Scenario scenario = scenario_of(llama_500m(), 2);
  scenario.training.global_batch = 2 * 5;
  cost::Profile profile = round_profile();
  set(profile, "host.step_s", 0.02);
  set(profile, "host.micro_batch_s", 0.003);
  double host = 0;
  for (const Operation& operation : operations_of(graph_of(scenario, profile)))
    if (operation.kind == Kind::host) host += operation.duration.si();
  CHECK(host == Approx(0.02 + 5 * 0.003).epsilon(kRounding));
}

TEST_CASE("[M23] a few bytes go up and down a binary tree: 2 ceil(log2 P) latencies") {
  cost::Profile profile = round_profile();
  set(profile, "network.scalar_latency_s", 10e-6);
  CHECK(norm_latency(2, profile) == Approx(2 * 1 * 10e-6).epsilon(kRounding));
  CHECK(norm_latency(3, profile) == Approx(2 * 2 * 10e-6).epsilon(kRounding));
  CHECK(norm_latency(4, profile) == Approx(2 * 2 * 10e-6).epsilon(kRounding));
  CHECK(norm_latency(5, profile) == Approx(2 * 3 * 10e-6).epsilon(kRounding));
  CHECK(norm_latency(64, profile) == Approx(2 * 6 * 10e-6).epsilon(kRounding));
  profile.numbers.erase("network.scalar_latency_s");
  CHECK(norm_latency(64, profile) == Approx(2 * 6 * 5e-6).epsilon(kRounding));  // the fabric's
}

TEST_CASE("a bulk latency of many hops is never charged to a scalar") {
  cost::Profile profile = round_profile();
  set(profile, "network.hop_latency_s", 1.1e-3);
  set(profile, "network.scalar_latency_s", 25e-6);
  CHECK(norm_latency(64, profile) < 1e-3);
}

TEST_CASE("copies load the host link and memory, collectives only the network") {
  spec::Scenario scenario = scape_scenario(llama_500m(), 8, 0.01);
  scenario.strategy.offload.residual = true;
  scenario.cluster.host_memory_bandwidth = BytesPerSecond(5e11);
  const StepGraph graph = graph_of(scenario);
  CHECK(graph.resources[0].name == "host link, to device");
  CHECK(graph.resources[0].capacity == scenario.cluster.host_link.bandwidth);
  CHECK(graph.resources[1].name == "host link, from device");
  CHECK(graph.resources[2].capacity == BytesPerSecond(5e11));
  for (const Operation& operation : operations_of(graph))
    for (const graph::Load& load : operation.transfer.loads) CHECK(load.resource.value < 3);
  std::size_t loads = 0;
  for (const graph::Collective& collective : graph.collectives)
    for (const graph::Phase& phase : collective.phases)
      for (const graph::Load& load : phase.loads) {
        ++loads;
        REQUIRE(load.resource.value < graph.resources.size());
        CHECK(graph.resources[load.resource.value].capacity == BytesPerSecond(50e9));
      }
  CHECK(loads > 0);
}

TEST_CASE("GPUs of a node share its host memory") {
  spec::Scenario scenario = scenario_of(llama_500m(), 8);
  scenario.cluster.nodes = 2;
  scenario.cluster.gpus_per_node = 4;
  scenario.cluster.node_link_bandwidth = BytesPerSecond(300e9);
  scenario.cluster.host_memory_bandwidth = BytesPerSecond(400e9);
  scenario.training.optimizer = spec::Optimizer::adams;
  scenario.strategy.method = spec::Method::scape;
  scenario.strategy.density = 0.1;
  scenario.strategy.offload.residual = true;
  CHECK(graph_of(scenario).resources[2].capacity == BytesPerSecond(100e9));
}

TEST_CASE("without copies a cluster needs no host bandwidth") {
  spec::Scenario scenario = scenario_of(llama_500m(), 8);
  scenario.cluster.host_link.bandwidth = BytesPerSecond(0);
  scenario.cluster.host_memory_bandwidth = BytesPerSecond(0);
  for (const graph::Resource& resource : graph_of(scenario).resources)
    CHECK(resource.capacity > BytesPerSecond(0));
}

TEST_CASE("all ranks are one class that runs one program") {
  const StepGraph graph = graph_of(scenario_of(llama_500m(), 8));
  REQUIRE(graph.classes.size() == 1);
  CHECK(graph.classes[0].ranks == 8);
  CHECK(graph.period == 1);
  for (const graph::Collective& collective : graph.collectives) {
    CHECK(collective.group_size == 8);
    CHECK(collective.members == std::vector{graph::RankClassId{0}});
  }
}

TEST_CASE("a job of one GPU has nothing to communicate") {
  const StepGraph graph = graph_of(scenario_of(llama_500m(), 1));
  CHECK(graph.collectives.empty());
  for (const Operation& operation : operations_of(graph))
    CHECK(operation.work != graph::Work::collective);
}

TEST_CASE("network terms are the profile's, and without a profile those of raw links") {
  cost::Profile profile = round_profile();
  set(profile, "network.efficiency", 0.9);
  set(profile, "network.hop_latency_s", 7e-6);
  profile.numbers["network.transport_cap_Bps"] = exactly(4e9, cost::Factor::network);
  const auto terms_of = [](const cost::Profile* known, Bytes size) {
    return cost::modes_of(known, graph::CollectiveKind::all_reduce, size, {}).front().terms;
  };
  const cost::NetworkTerms terms = terms_of(&profile, Bytes(1e9));
  CHECK(terms.efficiency == 0.9);
  CHECK(terms.transport_cap == BytesPerSecond(4e9));
  CHECK(terms.hop_latency == Seconds(7e-6));
  profile.numbers.erase("network.hop_latency_s");
  profile.numbers.erase("network.transport_cap_Bps");
  CHECK_FALSE(terms_of(&profile, Bytes(1e9)).hop_latency.has_value());
  CHECK(terms_of(&profile, Bytes(1e9)).transport_cap == BytesPerSecond(0));
  // [M29] A smaller collective than the break runs in the regime of its own.
  profile.numbers["network.small_below_B"].value = 1e6;
  profile.numbers["network.small_efficiency"].value = 0.25;
  CHECK(terms_of(&profile, Bytes(999'999)).efficiency == 0.25);
  CHECK(terms_of(&profile, Bytes(1e6)).efficiency == profile.number("network.efficiency"));
  CHECK(terms_of(nullptr, Bytes(1e9)).efficiency == 1);
  CHECK_FALSE(terms_of(nullptr, Bytes(1e9)).hop_latency.has_value());
}

TEST_CASE("every operation names its formula and what it rests on") {
  spec::Scenario scenario = scape_scenario(llama_500m(), 8, 0.01);
  scenario.strategy.sharding = spec::Sharding::zero1;
  scenario.strategy.offload = {.residual = true, .replica = true};
  for (const Operation& operation : operations_of(graph_of(scenario))) {
    INFO(operation.name);
    CHECK(operation.formula.starts_with("M"));
    CHECK_FALSE(operation.calibration.empty());
  }
}

TEST_CASE("gradients are reduced in the last micro-batch, when they have all been added up") {
  spec::Scenario scenario = scenario_of(llama_500m(), 2);
  scenario.training.global_batch = 2 * 3;
  scenario.training.overlap_gradients = true;
  scenario.training.bucket = Bytes(1e6);
  const StepGraph graph = graph_of(scenario);
  bool last_micro_batch = false;
  std::size_t reductions = 0;
  for (const Operation& operation : operations_of(graph)) {
    last_micro_batch = last_micro_batch || operation.name == "forward: micro-batch 2";
    if (operation.work != graph::Work::collective) continue;
    CHECK(last_micro_batch);
    ++reductions;
  }
  // A layer's gradients are more than 1 MB: embedding, layers and head, once each.
  CHECK(reductions == workload::workload_of(scenario.model, scenario.training).layers.size());
}
