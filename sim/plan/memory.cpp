// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/memory.hpp"

#include <algorithm>

#include "sim/plan/activation_offload.hpp"
#include "sim/plan/messages.hpp"
#include "sim/plan/stage_program.hpp"
#include "sim/strategy/share.hpp"

namespace scapesim::plan {

namespace {

/// What one micro-batch keeps per chunk of a stage.
std::vector<KeptByChunk> kept_by_chunk(const workload::Workload& workload,
                                       const spec::Training& training,
                                       const std::vector<Part>& parts, const Pipeline& pipeline,
                                       int stage) {
  std::vector<KeptByChunk> kept;
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk)
    kept.push_back(kept_by(workload, training,
                           parts[static_cast<std::size_t>(part_of(pipeline, stage, chunk))]));
  return kept;
}

/// Buffers of what a stage receives: one each way.
Bytes message_buffers(const spec::Scenario& scenario) {
  return scenario.parallelism.pp == 1 ? Bytes(0) : 2 * message_bytes(scenario);
}

}  // namespace

Bytes most_kept(const StageOrder& order, const std::vector<Bytes>& kept) {
  std::vector<KeptByChunk> chunks;
  for (const Bytes size : kept) chunks.push_back({.device = size});
  return most_kept(order, chunks).device;
}

namespace {

/// What stages of equal layers have in common.
struct StageState {
  std::vector<std::size_t> layers;  ///< the first like each, chunk by chunk
  strategy::StateMemory state;
  Bytes transient;
  std::vector<KeptByChunk> kept;  ///< of one micro-batch
};

std::vector<std::size_t> layers_of(const workload::Workload& workload,
                                   const std::vector<Part>& parts, const Pipeline& pipeline,
                                   int stage) {
  std::vector<std::size_t> layers;
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk) {
    const Part& part = parts[static_cast<std::size_t>(part_of(pipeline, stage, chunk))];
    for (std::size_t i = part.begin; i < part.end; ++i) layers.push_back(workload.layers[i].like);
  }
  return layers;
}

class StageMemories {
 public:
  StageMemories(const spec::Scenario& scenario, const workload::Workload& workload,
                const cost::Profile& profile)
      : scenario_(scenario),
        workload_(workload),
        profile_(profile),
        costs_(profile, scenario.cluster.gpu, scenario.training.precision),
        parts_(parts_of(workload, scenario)),
        pipeline_(pipeline_of(scenario)) {}

  MemoryNeed of(int stage) {
    const StageState& known = state_of(stage);
    const strategy::StateMemory& state = known.state;
    const spec::Schedule schedule = scenario_.parallelism.schedule;
    const MostKept kept =
        most_kept(stage_order(schedule, settled(pipeline_, schedule), stage), known.kept);
    MemoryNeed need{.parameters = state.parameters,
                    .gradients = state.gradients,
                    .optimizer = state.optimizer,
                    .strategy = state.strategy,
                    .activations = kept.device,
                    .temporary = std::max(known.transient, state.step_end - kept.device) +
                                 message_buffers(scenario_),
                    .total = {},
                    .context = Bytes(profile_.number("memory.context_B")),
                    .host = state.host + kept.host,
                    .stage = stage};
    need.temporary += fragmentation() * (need.activations + need.temporary);
    need.total = need.parameters + need.gradients + need.optimizer + need.strategy +
                 need.activations + need.temporary;
    return need;
  }

 private:
  /// [M424] Blocks that come and go leave holes; state is allocated once.
  double fragmentation() const {
    return profile_.has("memory.fragmentation") ? profile_.number("memory.fragmentation") : 0;
  }

  const StageState& state_of(int stage) {
    std::vector<std::size_t> layers = layers_of(workload_, parts_, pipeline_, stage);
    const auto known = std::ranges::find(states_, layers, &StageState::layers);
    if (known != states_.end()) return *known;
    const workload::Workload held = stage_workload(workload_, scenario_, parts_, stage);
    const strategy::Context context = context_of_stage(scenario_, held, profile_, costs_, stage);
    StageState& added = states_.emplace_back();
    added.layers = std::move(layers);
    added.state = strategy::method_of(scenario_.strategy.method).memory(context);
    added.state.parameters += strategy::frozen_memory(context);
    for (const workload::Layer& layer : held.layers)
      added.transient = std::max(added.transient, layer.transient);
    added.kept = kept_by_chunk(workload_, scenario_.training, parts_, pipeline_, stage);
    return added;
  }

  const spec::Scenario& scenario_;
  const workload::Workload& workload_;
  const cost::Profile& profile_;
  cost::KernelCosts costs_;
  std::vector<Part> parts_;
  Pipeline pipeline_;
  std::vector<StageState> states_;
};

}  // namespace

MemoryNeed stage_memory(const spec::Scenario& scenario, const workload::Workload& workload,
                        const cost::Profile& profile, int stage) {
  return StageMemories(scenario, workload, profile).of(stage);
}

MemoryNeed memory_need(const spec::Scenario& scenario, const workload::Workload& workload,
                       const cost::Profile& profile) {
  StageMemories stages(scenario, workload, profile);
  MemoryNeed fullest = stages.of(0);
  for (int stage = 1; stage < scenario.parallelism.pp; ++stage) {
    const MemoryNeed need = stages.of(stage);
    if (need.total > fullest.total) fullest = need;
  }
  return fullest;
}

}  // namespace scapesim::plan
