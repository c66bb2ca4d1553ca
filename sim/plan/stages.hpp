// SPDX-License-Identifier: Apache-2.0
// The model cut into parts for pipeline stages.
#pragma once

#include <vector>

#include "sim/plan/schedule.hpp"
#include "sim/workload/workload.hpp"

namespace scapesim::plan {

/// Layers [begin, end) of a workload.
struct Part {
  std::size_t begin = 0;
  std::size_t end = 0;
  auto operator<=>(const Part&) const = default;
};

/// [M232] Transformer layers in equal shares or as parallelism.stage_layers says; what stands
/// before them belongs to the first part, what stands behind them to the last.
std::vector<Part> parts_of(const workload::Workload& workload, const spec::Scenario& scenario);

/// What one stage holds: the layers of its chunks one after the other, without operations.
workload::Workload stage_workload(const workload::Workload& workload,
                                  const spec::Scenario& scenario, const std::vector<Part>& parts,
                                  int stage);

}  // namespace scapesim::plan
