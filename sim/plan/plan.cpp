// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/plan.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "sim/plan/groups.hpp"
#include "sim/plan/messages.hpp"
#include "sim/plan/pass_cost.hpp"
#include "sim/plan/stage_program.hpp"
#include "sim/plan/step_plan.hpp"
#include "topologies/placement.hpp"
#include "topologies/summary.hpp"

namespace scapesim::plan {

namespace {

/// What copies load, in the order of strategy::CopyResource; none when nothing is copied.
std::vector<graph::Resource> copy_resources(const std::vector<StageProgram>& stages,
                                            const spec::Cluster& cluster) {
  const auto copies = [](const StageProgram& stage) {
    return std::ranges::any_of(stage.program.operations, [](const graph::Operation& operation) {
      return operation.work == graph::Work::transfer;
    });
  };
  const bool staged = cluster.nic_path == spec::NicPath::host;
  if (!staged && std::ranges::none_of(stages, copies)) return {};
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

/// What the network is planned from.
struct NetworkInputs {
  const Seats& seats;
  const cost::Profile& profile;
  const topology::Fabric& fabric;
  const spec::Collectives& forced;
};

/// Calls of all stages -> collectives: those of one name on an axis that joins stages are one.
class CallTable {
 public:
  explicit CallTable(const NetworkInputs& inputs) : inputs_(inputs) {}

  graph::CollectiveId add(const strategy::Call& call, int stage) {
    const graph::RankClassId member{static_cast<std::uint32_t>(stage)};
    const graph::CollectiveId next{static_cast<std::uint32_t>(calls_.size())};
    if (joins_stages(call.axis)) {
      const auto [known, is_new] = joined_.try_emplace(call.name, next);
      if (!is_new) {
        calls_[index(known->second)].members.push_back(member);
        return known->second;
      }
    }
    calls_.push_back(forced({.name = call.name,
                             .kind = call.kind,
                             .size = call.bytes,
                             .group = set_of(call, stage),
                             .members = {member},
                             .profile = &inputs_.profile},
                            inputs_.forced));
    scalar_.push_back(call.regime == strategy::Regime::scalar);
    axes_.push_back(call.axis);
    return next;
  }

  NetworkPlan plan() const {
    NetworkPlan network = plan_collectives(inputs_.fabric, sets_, calls_);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      network.collectives[i].axis = axes_[i];
      if (!scalar_[i]) continue;
      network.collectives[i].algorithm = "tree";
      network.collectives[i].lower_bound = Seconds(0);
      network.collectives[i].phases = {
          scalar_phase(inputs_.profile, inputs_.fabric, network.collectives[i].group_size)};
    }
    return network;
  }

 private:
  static bool joins_stages(graph::Axis axis) {
    return axis == graph::Axis::world || axis == graph::Axis::embedding ||
           axis == graph::Axis::pipeline;
  }

  std::size_t set_of(const strategy::Call& call, int stage) {
    const bool is_pair = call.axis == graph::Axis::pipeline;
    const std::tuple key{call.axis, is_pair ? call.from_stage : stage, call.to_stage};
    const auto [known, is_new] = set_of_.try_emplace(key, sets_.size());
    if (is_new)
      sets_.push_back(is_pair ? stage_pairs(inputs_.seats, call.from_stage, call.to_stage)
                              : stage_groups(inputs_.seats, call.axis, stage));
    return known->second;
  }

  NetworkInputs inputs_;
  std::vector<GroupSet> sets_;
  std::map<std::tuple<graph::Axis, int, int>, std::size_t> set_of_;
  std::vector<CollectiveCall> calls_;
  std::vector<bool> scalar_;
  std::vector<graph::Axis> axes_;
  std::unordered_map<std::string, graph::CollectiveId> joined_;
};

/// Flows of a phase over the fullest adapter.
double nic_flows(const graph::Phase& phase, const std::vector<graph::Resource>& resources) {
  double most = 0;
  for (const graph::Load& load : phase.loads)
    if (resources[index(load.resource)].name == name_of(topology::LinkKind::nic))
      most = std::max(most, load.flows);
  return most;
}

/// [M346] Without GPUDirect what an adapter carries is copied from and to the GPU, and crosses host
/// memory four times: written and read on the way out, and again on the way in.
void stage_in_hosts(graph::StepGraph& graph, const spec::Cluster& cluster,
                    const cost::Profile& profile) {
  const double nics_per_gpu = static_cast<double>(cluster.nics_per_node) / cluster.gpus_per_node;
  const auto id = [](strategy::CopyResource resource) {
    return graph::ResourceId{static_cast<std::uint32_t>(resource)};
  };
  for (graph::Collective& collective : graph.collectives)
    for (graph::Phase& phase : collective.phases) {
      // Loads of adapters hold 1 / efficiency of the bytes.
      const double occupied = nic_flows(phase, graph.resources);
      const double flows = occupied * profile.number("network.efficiency") * nics_per_gpu;
      if (flows == 0) continue;
      phase.loads.push_back({id(strategy::CopyResource::host_to_device), flows});
      phase.loads.push_back({id(strategy::CopyResource::device_to_host), flows});
      phase.loads.push_back({id(strategy::CopyResource::host_memory), 4 * flows});
    }
}

/// Turns the stages' calls into collectives on links, after the copy resources.
void add_network(graph::StepGraph& graph, std::vector<StageProgram>& stages,
                 const NetworkInputs& inputs) {
  CallTable table(inputs);
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    strategy::Program& program = stages[stage].program;
    std::vector<graph::CollectiveId> ids;
    for (const strategy::Call& call : program.calls)
      ids.push_back(table.add(call, static_cast<int>(stage)));
    for (graph::Operation& operation : program.operations)
      if (operation.work == graph::Work::collective)
        operation.collective = ids[index(operation.collective)];
  }
  NetworkPlan network = table.plan();
  const auto offset = static_cast<std::uint32_t>(graph.resources.size());
  for (graph::Collective& collective : network.collectives)
    for (graph::Phase& phase : collective.phases)
      for (graph::Load& load : phase.loads) load.resource.value += offset;
  graph.collectives = std::move(network.collectives);
  graph.resources.insert(graph.resources.end(), network.resources.begin(), network.resources.end());
}

}  // namespace

StepPlan step_plan(const spec::Scenario& scenario, const workload::Workload& workload,
                   const cost::Profile& profile, const topology::Fabric& fabric, Purpose purpose) {
  const cost::KernelCosts costs(profile, scenario.cluster.gpu, scenario.training.precision,
                                cost::fleet_of(profile, scenario.cluster));
  const graph::Mesh mesh = graph::mesh_of(scenario);
  const Seats seats{mesh, fabric, topology::placement(scenario.cluster)};
  const ExchangeTimes exchanges(workload, seats, profile, scenario.collectives);
  LayerCosts layer_costs(workload, costs, exchanges);
  const std::vector<Part> parts = parts_of(workload, scenario);
  const StepInputs inputs{scenario, workload, profile, costs, layer_costs, parts, purpose};
  std::vector<StageProgram> stages;
  for (int stage = 0; stage < mesh.pp; ++stage) stages.push_back(stage_program(inputs, stage));
  add_messages(stages, scenario);

  std::vector<std::vector<PassOp>> passes;
  for (StageProgram& stage : stages) passes.push_back(std::move(stage.passes));
  graph::StepGraph graph;
  graph.training_steps = stages.front().training_steps;
  graph.resources = copy_resources(stages, scenario.cluster);
  add_network(graph, stages, {seats, profile, fabric, scenario.collectives});
  if (scenario.cluster.nic_path == spec::NicPath::host)
    stage_in_hosts(graph, scenario.cluster, profile);
  for (int stage = 0; stage < mesh.pp; ++stage)
    graph.classes.push_back(
        {.name = mesh.pp == 1 ? "all ranks" : "stage " + std::to_string(stage),
         .ranks = mesh.stage_ranks(),
         .operations = std::move(stages[static_cast<std::size_t>(stage)].program.operations)});
  return {std::move(graph), std::move(layer_costs), std::move(passes), mesh};
}

graph::StepGraph step_graph(const spec::Scenario& scenario, const workload::Workload& workload,
                            const cost::Profile& profile, const topology::Fabric& fabric) {
  return step_plan(scenario, workload, profile, fabric).graph;
}

std::vector<Seconds> StepPlan::durations(std::size_t rank_class, double slowdown) const {
  std::vector<Seconds> list;
  for (const graph::Operation& operation : graph.classes[rank_class].operations) {
    const bool slows =
        operation.kind == graph::Kind::compute || operation.kind == graph::Kind::optimizer;
    list.push_back(operation.work == graph::Work::local
                       ? (slows ? slowdown : 1.0) * operation.duration
                       : Seconds(0));
  }
  if (slowdown == 1) return list;
  std::map<std::tuple<std::size_t, std::size_t, Pass, std::optional<Pair>>, Seconds> known;
  for (const PassOp& pass : passes[rank_class]) {
    const auto [entry, is_new] = known.try_emplace({pass.begin, pass.end, pass.pass, pass.pair});
    const auto at = [&](double factor) {
      return layers.slowed(pass.begin, pass.end, pass.pass, factor,
                           pass.pair ? layers.hidden_share(*pass.pair, factor) : 0);
    };
    if (is_new) entry->second = at(slowdown) - at(1);
    // [M406] The duration holds what collectives beside the pass add.
    list[index(pass.op)] =
        graph.classes[rank_class].operations[index(pass.op)].duration + entry->second;
  }
  return list;
}

}  // namespace scapesim::plan
