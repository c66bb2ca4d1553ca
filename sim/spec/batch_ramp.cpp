// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/batch_ramp.hpp"

#include <algorithm>
#include <cmath>

namespace scapesim::spec {

namespace {

/// Steps at one batch from so many consumed sequences until `end` of them or more are.
std::int64_t steps_until(double end, std::int64_t consumed, std::int64_t batch) {
  const double left = end - static_cast<double>(consumed);
  return left <= 0 ? 0 : static_cast<std::int64_t>(std::ceil(left / static_cast<double>(batch)));
}

void add_stage(std::vector<RampStage>& list, std::int64_t& consumed, std::int64_t batch,
               double end) {
  const std::int64_t steps = steps_until(end, consumed, batch);
  if (steps == 0) return;
  list.push_back({batch, steps});
  consumed += batch * steps;
}

}  // namespace

// [M434] A step has the batch of what was consumed before it. Megatron-LM: (global - start) /
// increment stages of equal shares of the samples; the final batch once more than all of them are
// consumed. The tokens of a stage count computed sequences.
std::vector<RampStage> ramp_stages(const Training& training) {
  const BatchRamp& ramp = training.batch_ramp;
  std::vector<RampStage> list;
  std::int64_t consumed = 0;
  if (ramp.start > 0) {
    const std::int64_t increments = (training.global_batch - ramp.start) / ramp.increment;
    const double each = static_cast<double>(ramp.samples) / static_cast<double>(increments);
    for (std::int64_t i = 0; i < increments; ++i)
      add_stage(list, consumed, ramp.start + i * ramp.increment, static_cast<double>(i + 1) * each);
    return list;
  }
  for (const BatchStage& stage : ramp.stages)
    add_stage(list, consumed, stage.batch, stage.until / static_cast<double>(training.sequence));
  return list;
}

}  // namespace scapesim::spec
