// SPDX-License-Identifier: Apache-2.0
// A batch that grows: how many steps run at each size.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/spec/spec.hpp"

namespace scapesim::spec {

/// Steps of one batch size before the final one.
struct RampStage {
  std::int64_t batch = 0;  ///< sequences
  std::int64_t steps = 0;
  std::int64_t sequences() const { return batch * steps; }
};

/// [M434] Stages below training.global_batch, first to last; those without a step are left out.
std::vector<RampStage> ramp_stages(const Training& training);

}  // namespace scapesim::spec
