// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/schedule.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace scapesim::plan {

namespace {

/// All forward, then all backward (Huang 2019).
StageOrder gpipe(const Pipeline& pipeline, int /*stage*/) {
  StageOrder order;
  for (int i = 0; i < pipeline.micro_batches; ++i) order.push_back({Pass::forward, 0, i});
  for (int i = 0; i < pipeline.micro_batches; ++i) order.push_back({Pass::backward, 0, i});
  return order;
}

/// A stage warms up with one forward pass per stage behind it, then alternates (Narayanan 2021,
/// PipeDream-Flush).
StageOrder one_f_one_b(const Pipeline& pipeline, int stage) {
  const int warm_up = std::min(pipeline.stages - stage - 1, pipeline.micro_batches);
  StageOrder order;
  for (int i = 0; i < warm_up; ++i) order.push_back({Pass::forward, 0, i});
  for (int i = 0; i < pipeline.micro_batches; ++i) {
    if (warm_up + i < pipeline.micro_batches) order.push_back({Pass::forward, 0, warm_up + i});
    order.push_back({Pass::backward, 0, i});
  }
  return order;
}

/// Position k of the interleaved order: `stages` micro-batches through one chunk, then through the
/// next; after all chunks the next `stages` micro-batches.
Slot interleaved_slot(const Pipeline& pipeline, Pass pass, int k) {
  const int round = pipeline.stages * pipeline.chunks;
  const int in_round = k % round;
  const int chunk = in_round / pipeline.stages;
  return {.pass = pass,
          .chunk = pass == Pass::forward ? chunk : pipeline.chunks - 1 - chunk,
          .micro_batch = k / round * pipeline.stages + in_round % pipeline.stages};
}

/// 1F1B over chunks (Narayanan 2021, sec. 2.2; Megatron-LM's order).
StageOrder interleaved(const Pipeline& pipeline, int stage) {
  const int total = pipeline.micro_batches * pipeline.chunks;
  const int behind = 2 * (pipeline.stages - stage - 1);
  const int warm_up = std::min(behind + (pipeline.chunks - 1) * pipeline.stages, total);
  StageOrder order;
  for (int k = 0; k < warm_up; ++k) order.push_back(interleaved_slot(pipeline, Pass::forward, k));
  for (int k = 0; k < total; ++k) {
    if (warm_up + k < total)
      order.push_back(interleaved_slot(pipeline, Pass::forward, warm_up + k));
    order.push_back(interleaved_slot(pipeline, Pass::backward, k));
  }
  return order;
}

/// 1F1B with the backward pass in halves: stage s puts its weight gradients off by s micro-batches
/// and fills its last bubbles with them (Qi 2023, ZB-H1).
StageOrder zb_h1(const Pipeline& pipeline, int stage) {
  StageOrder order;
  int weights = 0;
  for (const Slot& slot : one_f_one_b(pipeline, stage)) {
    if (slot.pass == Pass::forward) {
      order.push_back(slot);
      continue;
    }
    order.push_back({Pass::input_gradient, 0, slot.micro_batch});
    if (slot.micro_batch >= stage) order.push_back({Pass::weight_gradient, 0, weights++});
  }
  while (weights < pipeline.micro_batches) order.push_back({Pass::weight_gradient, 0, weights++});
  return order;
}

constexpr ScheduleRow kRows[] = {
    {spec::Schedule::gpipe, "all forward, then all backward", gpipe},
    {spec::Schedule::one_f_one_b, "one forward, one backward", one_f_one_b},
    {spec::Schedule::interleaved, "1f1b over several chunks of the model per stage", interleaved},
    {spec::Schedule::zb_h1, "1f1b whose weight gradients fill the bubbles", zb_h1},
};

}  // namespace

std::span<const ScheduleRow> schedules() { return kRows; }

Pipeline pipeline_of(const spec::Scenario& scenario) {
  return {.stages = scenario.parallelism.pp,
          .chunks = scenario.parallelism.virtual_stages,
          .micro_batches = static_cast<int>(spec::micro_batches(scenario))};
}

StageOrder stage_order(spec::Schedule schedule, const Pipeline& pipeline, int stage) {
  for (const ScheduleRow& row : schedules())
    if (row.schedule == schedule) return row.order(pipeline, stage);
  throw InternalError("schedule without a row");
}

// Behind a warm-up of less than 2 micro-batches per stage a schedule repeats itself with every
// micro-batch, or every round of one per stage.
Pipeline settled(Pipeline pipeline, spec::Schedule schedule) {
  if (schedule != spec::Schedule::gpipe)
    pipeline.micro_batches = std::min(pipeline.micro_batches, 4 * pipeline.stages);
  return pipeline;
}

}  // namespace scapesim::plan
