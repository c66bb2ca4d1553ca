// SPDX-License-Identifier: Apache-2.0
#include "sim/study/parameters.hpp"

#include <algorithm>
#include <array>

#include "sim/base/check.hpp"
#include "sim/scenario/alter.hpp"

namespace scapesim::study {
namespace {

/// Numbers whose names begin and end so, times a factor.
void scale_numbers(Inputs& inputs, std::string_view begin, std::string_view end, double factor) {
  for (auto& [key, number] : inputs.profile.numbers)
    if (key.starts_with(begin) && key.ends_with(end)) number.value *= factor;
}

void scale_curves(Inputs& inputs, std::string_view begin, double factor) {
  for (auto& [key, curve] : inputs.profile.curves)
    if (key.starts_with(begin))
      for (auto& point : curve.points) point[1] *= factor;
}

void faster_adapters(Inputs& inputs, double factor) {
  inputs.scenario.cluster.nic_bandwidth *= factor;
  scale_numbers(inputs, "network.transport_cap", "_Bps", factor);
  scale_numbers(inputs, "network.crossing_cap", "_Bps", factor);
}

void faster_trunks(Inputs& inputs, double factor) {
  spec::Fabric& fabric = inputs.scenario.cluster.fabric;
  for (BytesPerSecond* rate : {&fabric.local_bandwidth, &fabric.global_bandwidth,
                               &fabric.cable_bandwidth, &fabric.wan_bandwidth})
    *rate *= factor;
  for (spec::GraphEdge& edge : fabric.graph.edges) edge.capacity *= factor;
}

void faster_node_links(Inputs& inputs, double factor) {
  inputs.scenario.cluster.node_link_bandwidth *= factor;
  inputs.scenario.cluster.socket_bandwidth *= factor;
}

void shorter_latency(Inputs& inputs, double factor) {
  inputs.scenario.cluster.fabric.latency /= factor;
  inputs.scenario.cluster.fabric.wan_latency /= factor;
  scale_numbers(inputs, "network.", "latency_s", 1 / factor);
}

void faster_products(Inputs& inputs, double factor) {
  scale_numbers(inputs, "gemm.scale", "", factor);
  scale_numbers(inputs, "gemm.unaligned_efficiency", "", factor);
  scale_numbers(inputs, "gemm.group_launch_s", "", 1 / factor);
}

void faster_attention(Inputs& inputs, double factor) { scale_curves(inputs, "attention.", factor); }

void faster_memory(Inputs& inputs, double factor) {
  scale_numbers(inputs, "hbm.bandwidth_Bps", "", factor);
  scale_numbers(inputs, "hbm.scatter_add_per_s", "", factor);
}

void faster_launches(Inputs& inputs, double factor) {
  scale_numbers(inputs, "hbm.launch_s", "", 1 / factor);
  scale_numbers(inputs, "host.launch_s", "", 1 / factor);
}

void faster_host(Inputs& inputs, double factor) {
  scale_numbers(inputs, "host.step_s", "", 1 / factor);
  scale_numbers(inputs, "host.micro_batch_s", "", 1 / factor);
}

void faster_copies(Inputs& inputs, double factor) {
  scale_numbers(inputs, "copy.", "_Bps", factor);
  scale_numbers(inputs, "copy.", "latency_s", 1 / factor);
  inputs.scenario.cluster.host_link.bandwidth *= factor;
  inputs.scenario.cluster.host_memory_bandwidth *= factor;
}

constexpr Machine kMachines[] = {
    {"matrix products", "GEMM rate of the GPU", faster_products},
    {"attention", "rate of the attention kernels", faster_attention},
    {"GPU memory", "bandwidth that element-wise kernels reach", faster_memory},
    {"kernel launches", "launch gaps, and host time per kernel", faster_launches},
    {"adapters", "NICs and their transport", faster_adapters},
    {"links between switches", "local, global, cable and wide-area links", faster_trunks},
    {"links in a node", "NVLink or PCIe between GPUs", faster_node_links},
    {"network latency", "per step and per call, in nodes and between", shorter_latency},
    {"host copies", "GPU to host and back", faster_copies},
    {"host work", "per step and per micro-batch", faster_host},
};

bool is_hardware(const scenario::KeyValue& key) {
  static constexpr std::string_view kTypes[] = {"bytes/s", "seconds", "FLOP/s", "number"};
  return (key.key.starts_with("cluster.") || key.key.starts_with("strategy.") ||
          key.key.starts_with("model.")) &&
         std::ranges::find(kTypes, key.type) != std::end(kTypes);
}

/// Numbers of rates and times; not of what else a profile holds, whole counts and limits of size.
bool moves_steps(std::string_view key) {
  static constexpr std::string_view kElse[] = {"power.", "memory.", "model.", "gemm.tile_"};
  static constexpr std::string_view kCounts[] = {"from_B", "below_B", "_fitted_B", "_ranks"};
  return std::ranges::none_of(kElse, [&](auto begin) { return key.starts_with(begin); }) &&
         std::ranges::none_of(kCounts, [&](auto end) { return key.ends_with(end); });
}

}  // namespace

std::span<const Machine> machines() { return kMachines; }

std::vector<Parameter> parameters_of(const Inputs& inputs) {
  std::vector<Parameter> list;
  for (const Machine& machine : kMachines)
    list.push_back({std::string(machine.name), ParameterKind::resource, std::nullopt, ""});
  for (const scenario::KeyValue& key : scenario::key_values(inputs.scenario)) {
    if (!is_hardware(key)) continue;
    const auto read = scenario::number_of(key.text);
    if (const auto* found = std::get_if<scenario::NumberText>(&read);
        found != nullptr && found->number != 0)
      list.push_back({key.key, ParameterKind::scenario, found->number, found->unit});
  }
  for (const auto& [key, number] : inputs.profile.numbers)
    if (moves_steps(key) && number.value != 0)
      list.push_back({key, ParameterKind::profile, number.value, ""});
  for (const auto& [key, curve] : inputs.profile.curves)
    list.push_back({key, ParameterKind::curve, std::nullopt, ""});
  return list;
}

std::optional<Inputs> multiplied(const Inputs& inputs, const Parameter& parameter, double factor) {
  Inputs other = inputs;
  switch (parameter.kind) {
    case ParameterKind::resource: {
      const auto* machine = std::ranges::find(kMachines, parameter.name, &Machine::name);
      SCAPESIM_CHECK(machine != std::end(kMachines), "resource {}", parameter.name);
      machine->faster(other, factor);
      return other;
    }
    case ParameterKind::scenario: {
      auto altered = scenario::multiplied(inputs.scenario, parameter.name, factor);
      auto* scenario = std::get_if<spec::Scenario>(&altered);
      if (scenario == nullptr) return std::nullopt;
      other.scenario = std::move(*scenario);
      return other;
    }
    case ParameterKind::profile:
      other.profile.numbers.at(parameter.name).value *= factor;
      return other;
    case ParameterKind::curve:
      for (auto& point : other.profile.curves.at(parameter.name).points) point[1] *= factor;
      return other;
  }
  throw InternalError("unknown kind of parameter");
}

}  // namespace scapesim::study
