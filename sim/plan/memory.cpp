// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/memory.hpp"

#include <algorithm>

#include "sim/strategy/strategy.hpp"

namespace scapesim::plan {

MemoryNeed memory_need(const spec::Scenario& scenario, const workload::Workload& workload,
                       const cost::Profile& profile) {
  const cost::KernelCosts costs(profile, scenario.cluster.gpu, scenario.training.precision);
  const strategy::Context context = strategy::context_of(scenario, workload, profile, costs);
  const strategy::StateMemory state = strategy::method_of(scenario.strategy.method).memory(context);
  Bytes kept;
  Bytes transient;
  for (const workload::Layer& layer : workload.layers) {
    kept += layer.kept;
    transient = std::max(transient, layer.transient);
  }
  MemoryNeed need{.parameters = state.parameters,
                  .gradients = state.gradients,
                  .optimizer = state.optimizer,
                  .strategy = state.strategy,
                  .activations = kept,
                  .temporary = std::max(transient, state.step_end - kept),
                  .total = {},
                  .context = Bytes(profile.number("memory.context_B")),
                  .host = state.host};
  need.total = need.parameters + need.gradients + need.optimizer + need.strategy +
               need.activations + need.temporary;
  return need;
}

}  // namespace scapesim::plan
