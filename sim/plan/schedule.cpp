// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/schedule.hpp"

#include <algorithm>
#include <utility>

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

/// Passes of a stage with two chunks, each chunk's micro-batches in order.
class TwoChunks {
 public:
  void forward(int chunk) { add(Pass::forward, chunk, forwards_[chunk]++); }
  void backward(int chunk) { add(Pass::backward, chunk, backwards_[chunk]++); }
  void input(int chunk) {
    put_off_.push_back({Pass::weight_gradient, chunk, backwards_[chunk]});
    add(Pass::input_gradient, chunk, backwards_[chunk]++);
  }
  /// The oldest that was put off.
  void weight() { order_.push_back(put_off_.at(made_++)); }
  StageOrder take() { return std::move(order_); }

 private:
  void add(Pass pass, int chunk, int micro_batch) { order_.push_back({pass, chunk, micro_batch}); }
  int forwards_[2] = {}, backwards_[2] = {};
  StageOrder order_, put_off_;
  std::size_t made_ = 0;
};

/// The bulk of DualPipe in its V form: until the forward passes are out.
void dualpipe_steady(TwoChunks& out, const Pipeline& pipeline, int stage) {
  const int behind = pipeline.stages - stage - 1;
  for (int i = 0; i < 2 * behind; ++i) out.forward(0);
  for (int i = 0; i <= stage; ++i) out.forward(0), out.forward(1);
  for (int i = 0; i < behind; ++i) out.input(1), out.weight(), out.forward(1);
  for (int i = 0; i < pipeline.micro_batches - 2 * pipeline.stages + stage + 1; ++i) {
    out.forward(0), out.backward(1);
    out.forward(1), out.backward(0);
  }
  for (int i = 0; i < behind; ++i) {
    out.backward(1);
    out.forward(1), out.backward(0);
  }
}

/// [M425] DualPipe cut in half (DeepSeek-V3 2024, sec. 3.2.1; DeepSeek's DualPipeV): stage s has
/// the parts s and 2p - 1 - s; the last weight gradients are put off to fill the bubbles of the
/// end.
StageOrder dualpipe(const Pipeline& pipeline, int stage) {
  TwoChunks out;
  dualpipe_steady(out, pipeline, stage);
  const int put_off_from = stage + 1;  // of the 2 (stage + 1) next backward passes
  for (int i = 0; i < 2 * (stage + 1); ++i) {
    const int chunk = 1 - i % 2;
    if (i < put_off_from)
      out.backward(chunk);
    else
      out.input(chunk);
  }
  for (int i = 0; i < pipeline.stages - stage - 1; ++i) out.weight(), out.input(0);
  for (int i = 0; i <= stage; ++i) out.weight();
  return out.take();
}

constexpr ScheduleRow kRows[] = {
    {spec::Schedule::gpipe, "all forward, then all backward", gpipe},
    {spec::Schedule::one_f_one_b, "one forward, one backward", one_f_one_b},
    {spec::Schedule::interleaved, "1f1b over several chunks of the model per stage", interleaved},
    {spec::Schedule::zb_h1, "1f1b whose weight gradients fill the bubbles", zb_h1},
    {spec::Schedule::dualpipe, "there and back over two chunks per stage (DualPipeV)", dualpipe},
};

}  // namespace

std::span<const ScheduleRow> schedules() { return kRows; }

Pipeline pipeline_of(const spec::Scenario& scenario) {
  return {.stages = scenario.parallelism.pp,
          .chunks = scenario.parallelism.virtual_stages,
          .micro_batches = static_cast<int>(spec::micro_batches(scenario)),
          .placement = placement_of(scenario.parallelism.schedule)};
}

Placement placement_of(spec::Schedule schedule) {
  return schedule == spec::Schedule::dualpipe ? Placement::vee : Placement::round;
}

// The first backward pass of the last stage is not joined: it waits for a forward pass just ended.
bool joins_next(const Pipeline& pipeline, const StageOrder& order, std::size_t position) {
  if (pipeline.placement != Placement::vee || position + 1 >= order.size()) return false;
  if (order[position].pass != Pass::forward || order[position + 1].pass != Pass::backward)
    return false;
  const auto turned =
      std::ranges::find_if(order, [](const Slot& slot) { return slot.pass != Pass::forward; });
  return turned - order.begin() < static_cast<std::ptrdiff_t>(position);
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
