// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/memory.hpp"

#include <algorithm>

#include "sim/plan/messages.hpp"
#include "sim/plan/stage_program.hpp"

namespace scapesim::plan {

namespace {

/// Activations of one micro-batch per chunk of a stage.
std::vector<Bytes> kept_by_chunk(const workload::Workload& workload, const std::vector<Part>& parts,
                                 const Pipeline& pipeline, int stage) {
  std::vector<Bytes> kept(static_cast<std::size_t>(pipeline.chunks));
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk) {
    const Part& part = parts[static_cast<std::size_t>(part_of(pipeline, stage, chunk))];
    for (std::size_t i = part.begin; i < part.end; ++i)
      kept[static_cast<std::size_t>(chunk)] += workload.layers[i].kept;
  }
  return kept;
}

/// Buffers of what a stage receives: one each way.
Bytes message_buffers(const spec::Scenario& scenario) {
  return scenario.parallelism.pp == 1 ? Bytes(0) : 2 * message_bytes(scenario);
}

}  // namespace

// [M237] The second half of a backward pass still needs the inputs of its GEMMs, so that what a
// micro-batch keeps is free only behind its weight gradients.
Bytes most_kept(const StageOrder& order, const std::vector<Bytes>& kept) {
  Bytes now, most;
  for (const Slot& slot : order) {
    const Bytes size = kept[static_cast<std::size_t>(slot.chunk)];
    if (slot.pass == Pass::forward) now += size;
    most = std::max(most, now);
    if (slot.pass == Pass::backward || slot.pass == Pass::weight_gradient) now -= size;
  }
  return most;
}

MemoryNeed stage_memory(const spec::Scenario& scenario, const workload::Workload& workload,
                        const cost::Profile& profile, int stage) {
  const cost::KernelCosts costs(profile, scenario.cluster.gpu, scenario.training.precision);
  const std::vector<Part> parts = parts_of(workload, scenario);
  const workload::Workload held = stage_workload(workload, scenario, parts, stage);
  const strategy::Context context = context_of_stage(scenario, held, profile, costs, stage);
  const strategy::StateMemory state = strategy::method_of(scenario.strategy.method).memory(context);
  const Pipeline pipeline = pipeline_of(scenario);
  const Bytes kept = most_kept(stage_order(scenario.parallelism.schedule, pipeline, stage),
                               kept_by_chunk(workload, parts, pipeline, stage));
  Bytes transient;
  for (const workload::Layer& layer : held.layers) transient = std::max(transient, layer.transient);
  MemoryNeed need{
      .parameters = state.parameters,
      .gradients = state.gradients,
      .optimizer = state.optimizer,
      .strategy = state.strategy,
      .activations = kept,
      .temporary = std::max(transient, state.step_end - kept) + message_buffers(scenario),
      .total = {},
      .context = Bytes(profile.number("memory.context_B")),
      .host = state.host,
      .stage = stage};
  need.total = need.parameters + need.gradients + need.optimizer + need.strategy +
               need.activations + need.temporary;
  return need;
}

MemoryNeed memory_need(const spec::Scenario& scenario, const workload::Workload& workload,
                       const cost::Profile& profile) {
  MemoryNeed fullest = stage_memory(scenario, workload, profile, 0);
  for (int stage = 1; stage < scenario.parallelism.pp; ++stage) {
    const MemoryNeed need = stage_memory(scenario, workload, profile, stage);
    if (need.total > fullest.total) fullest = need;
  }
  return fullest;
}

}  // namespace scapesim::plan
