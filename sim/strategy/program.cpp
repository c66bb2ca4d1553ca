// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/program.hpp"

#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"

namespace scapesim::strategy {

using graph::Operation;
using graph::OpId;

namespace {

OpId append(Program& program, Operation operation) {
  program.operations.push_back(std::move(operation));
  return OpId{static_cast<std::uint32_t>(program.operations.size() - 1)};
}

graph::Load one_flow(CopyResource resource) {
  return {graph::ResourceId{static_cast<std::uint32_t>(resource)}, 1.0};
}

}  // namespace

Context context_of(const spec::Scenario& scenario, const workload::Workload& workload,
                   const cost::Profile& profile, const cost::KernelCosts& costs) {
  return {.scenario = scenario,
          .workload = workload,
          .profile = profile,
          .costs = costs,
          .tensors = workload::tensors_of(workload),
          .ranks = spec::data_parallel_size(scenario) * scenario.parallelism.cp,
          .mesh = graph::mesh_of(scenario)};
}

void refuse_too_many(const std::string& key, std::int64_t pieces, const std::string& name) {
  if (pieces <= kMostPieces) return;
  Problems problems;
  problems.add({}, key, "cuts this model into " + std::to_string(pieces) + " " + name,
               "take larger ones: at most " + std::to_string(kMostPieces) + " are simulated");
  problems.raise();
}

void repeat(graph::Operation& operation, int times) {
  SCAPESIM_CHECK(operation.work == graph::Work::local, "{} is no local work", operation.name);
  operation.duration *= times;
  operation.flops *= times;
  operation.bytes *= times;
  for (graph::Inside& inside : operation.inside) {
    inside.count *= times;
    inside.time *= times;
    inside.exposed *= times;
  }
}

void also_wait(Waits& waits, std::optional<OpId> op, int steps_back) {
  if (op) waits.push_back({*op, steps_back});
}

OpId add_pass(Program& program, const Context& context, PassSpec spec, Waits waits) {
  const cost::Pass pass{.traffic = spec.traffic, .launches = spec.launches, .kernel = spec.kernel};
  const std::string curve = "kernel." + std::string(spec.kernel);
  Operation operation;
  operation.name = std::move(spec.name);
  operation.kind = spec.kind;
  operation.stream = spec.stream;
  operation.duration = context.costs.time(pass);
  operation.waits_for = std::move(waits);
  operation.formula = std::move(spec.formula);
  operation.calibration = "hbm.bandwidth_Bps, hbm.launch_s";
  if (context.profile.curves.contains(curve))
    operation.calibration = curve + ", " + operation.calibration;
  operation.bytes = spec.traffic;
  return append(program, std::move(operation));
}

std::optional<OpId> add_call(Program& program, const Context& context, Call call,
                             graph::Stream stream, std::string formula, Waits waits) {
  if (graph::group_size(context.mesh, call.axis) == 1) return std::nullopt;
  Operation operation;
  operation.name = call.name;
  operation.kind = graph::Kind::communication;
  operation.stream = stream;
  operation.work = graph::Work::collective;
  operation.collective = graph::CollectiveId{static_cast<std::uint32_t>(program.calls.size())};
  operation.waits_for = std::move(waits);
  operation.formula = std::move(formula);
  operation.calibration = call.regime == Regime::bulk
                              ? "network.efficiency, network.transport_cap_Bps, "
                                "network.hop_latency_s, network.small_*, network.node_*"
                              : "network.scalar_latency_s";
  operation.bytes = call.bytes;
  program.calls.push_back(std::move(call));
  return append(program, std::move(operation));
}

// [M33] A copy holds its direction of the host link and host memory at the common max-min rate, and
// never exceeds the profile's rate for its kind.
OpId add_copy(Program& program, const Context& context, CopySpec spec, Waits waits) {
  const bool inward = spec.stream == graph::Stream::copy_in;
  Operation operation;
  operation.name = std::move(spec.name);
  operation.kind = graph::Kind::copy;
  operation.stream = spec.stream;
  operation.work = graph::Work::transfer;
  operation.transfer = {
      .latency = Seconds(context.profile.number("copy.latency_s")),
      .bytes = spec.bytes,
      .rate_cap = BytesPerSecond(context.profile.number(spec.rate_key)),
      .loads = {one_flow(inward ? CopyResource::host_to_device : CopyResource::device_to_host),
                one_flow(CopyResource::host_memory)}};
  operation.waits_for = std::move(waits);
  operation.formula = std::move(spec.formula);
  operation.calibration = std::string(spec.rate_key) + ", copy.latency_s";
  operation.bytes = spec.bytes;
  return append(program, std::move(operation));
}

}  // namespace scapesim::strategy
