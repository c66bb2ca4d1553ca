// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/plan.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "sim/strategy/strategy.hpp"
#include "topologies/placement.hpp"

namespace scapesim::plan {

namespace {

using graph::OpId;

/// Time and FLOPs of one layer's pass.
struct LayerCost {
  Seconds time;
  Flops flops;
};

/// [M11] A layer's pass: its kernels one after the other. [M177] Or as fast as the host launches
/// them.
LayerCost layer_cost(const std::vector<workload::Operation>& operations,
                     const cost::KernelCosts& costs) {
  LayerCost sum;
  int launches = 0;
  for (const workload::Operation& operation : operations) {
    sum.time += workload::time_of(operation, costs);
    sum.flops += workload::flops_of(operation);
    launches += workload::launches_of(operation);
  }
  sum.time = std::max(sum.time, costs.launch_time(launches));
  return sum;
}

struct LayerCosts {
  LayerCost forward;
  LayerCost backward;
};

std::vector<LayerCosts> costs_of(const workload::Workload& workload,
                                 const cost::KernelCosts& costs) {
  std::vector<LayerCosts> list;
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    const workload::Layer& layer = workload.layers[i];
    if (layer.like < i)
      list.push_back(list[layer.like]);
    else
      list.push_back({layer_cost(layer.forward, costs), layer_cost(layer.backward, costs)});
  }
  return list;
}

OpId append(strategy::Program& program, graph::Operation operation) {
  program.operations.push_back(std::move(operation));
  return OpId{static_cast<std::uint32_t>(program.operations.size() - 1)};
}

/// [M34] Host work that the GPU waits for: a constant of the profile.
OpId add_host(strategy::Program& program, std::string name, Seconds time, std::string key) {
  graph::Operation operation;
  operation.name = std::move(name);
  operation.kind = graph::Kind::host;
  operation.duration = time;
  operation.formula = "M34";
  operation.calibration = std::move(key);
  return append(program, std::move(operation));
}

OpId add_layer(strategy::Program& program, std::string name, const LayerCost& cost) {
  graph::Operation operation;
  operation.name = std::move(name);
  operation.duration = cost.time;
  operation.flops = cost.flops;
  operation.formula = "M11";
  operation.calibration = "gemm.*, attention.*, hbm.bandwidth_Bps, host.launch_s";
  return append(program, std::move(operation));
}

/// Forward and backward of all micro-batches with the strategy's hooks; returns the last backward.
OpId add_micro_batches(strategy::Program& program, const strategy::Context& context,
                       strategy::Communication& communication) {
  const auto& layers = context.workload.layers;
  const std::vector<LayerCosts> costs = costs_of(context.workload, context.costs);
  const std::int64_t count = spec::micro_batches(context.scenario);
  const Seconds host(context.profile.number("host.micro_batch_s"));
  OpId last{};
  for (std::int64_t batch = 0; batch < count; ++batch) {
    const std::string suffix = ": micro-batch " + std::to_string(batch);
    if (host > Seconds(0)) add_host(program, "host work" + suffix, host, "host.micro_batch_s");
    for (std::size_t i = 0; i < layers.size(); ++i)
      last = add_layer(program, "forward: " + layers[i].name + suffix, costs[i].forward);
    for (std::size_t i = layers.size(); i-- > 0;) {
      last = add_layer(program, "backward: " + layers[i].name + suffix, costs[i].backward);
      if (batch == count - 1) communication.gradient_ready(program, static_cast<int>(i), last);
    }
  }
  return last;
}

strategy::Program program_of(const strategy::Context& context) {
  strategy::Program program;
  const auto communication = strategy::method_of(context.scenario.strategy.method).make(context);
  const OpId first = add_host(program, "host work: step",
                              Seconds(context.profile.number("host.step_s")), "host.step_s");
  const OpId last = add_micro_batches(program, context, *communication);
  communication->step_end(program, last);
  auto& waits = program.operations[index(first)].waits_for;
  for (const graph::Dependency& wait : communication->parameters_needed()) waits.push_back(wait);
  return program;
}

/// What copies load, in the order of strategy::CopyResource; none when nothing is copied.
std::vector<graph::Resource> copy_resources(const strategy::Program& program,
                                            const spec::Cluster& cluster) {
  const auto is_copy = [](const graph::Operation& operation) {
    return operation.work == graph::Work::transfer;
  };
  if (std::ranges::none_of(program.operations, is_copy)) return {};
  const BytesPerSecond memory = cluster.host_memory_bandwidth / cluster.gpus_per_node;
  return {{"host link, to device", cluster.host_link.bandwidth},
          {"host link, from device", cluster.host_link.bandwidth},
          {"host memory, a GPU's share", memory}};
}

/// [M23] A few bytes up and down a binary tree: 2 ceil(log2 P) latencies.
graph::Phase scalar_phase(const cost::Profile& profile, const topology::Fabric& fabric, int ranks) {
  const Seconds fabric_latency =
      fabric.gpus() > 1
          ? fabric.latency(topology::GpuId{0},
                           topology::GpuId{static_cast<std::uint32_t>(fabric.gpus() - 1)})
          : Seconds(0);
  const Seconds hop = profile.has("network.scalar_latency_s")
                          ? Seconds(profile.number("network.scalar_latency_s"))
                          : fabric_latency;
  const int depth = std::bit_width(static_cast<unsigned>(ranks - 1));
  return {.latency = 2.0 * depth * hop, .bytes = Bytes(0), .rate_cap = {}, .loads = {}};
}

/// Turns the strategy's calls into collectives on links, after the copy resources.
void add_network(graph::StepGraph& graph, const strategy::Program& program,
                 const strategy::Context& context, const topology::Fabric& fabric) {
  std::vector<CollectiveCall> calls;
  for (const strategy::Call& call : program.calls)
    calls.push_back({.name = call.name,
                     .kind = call.kind,
                     .size = call.bytes,
                     .group = 0,
                     .members = {graph::RankClassId{0}},
                     .terms = network_terms(&context.profile, call.bytes)});
  NetworkPlan network = plan_collectives(
      fabric, {topology::node_by_node(fabric, topology::placement(context.scenario.cluster))},
      calls);
  const auto offset = static_cast<std::uint32_t>(graph.resources.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    graph::Collective& collective = network.collectives[i];
    if (program.calls[i].regime == strategy::Regime::scalar) {
      collective.algorithm = "tree";
      collective.phases = {scalar_phase(context.profile, fabric, context.ranks)};
    }
    for (graph::Phase& phase : collective.phases)
      for (graph::Load& load : phase.loads) load.resource.value += offset;
  }
  graph.collectives = std::move(network.collectives);
  graph.resources.insert(graph.resources.end(), network.resources.begin(), network.resources.end());
}

}  // namespace

NetworkTerms network_terms(const cost::Profile* profile, Bytes size) {
  return cost::modes_of(profile, graph::CollectiveKind::all_reduce, size, {}).front().terms;
}

graph::StepGraph step_graph(const spec::Scenario& scenario, const workload::Workload& workload,
                            const cost::Profile& profile, const topology::Fabric& fabric) {
  const cost::KernelCosts costs(profile, scenario.cluster.gpu, scenario.training.precision);
  const strategy::Context context = strategy::context_of(scenario, workload, profile, costs);
  strategy::Program program = program_of(context);
  graph::StepGraph graph;
  graph.resources = copy_resources(program, scenario.cluster);
  add_network(graph, program, context, fabric);
  graph.classes.push_back({.name = "all ranks",
                           .ranks = scenario.cluster.gpus,
                           .operations = std::move(program.operations)});
  return graph;
}

}  // namespace scapesim::plan
