// SPDX-License-Identifier: Apache-2.0
// Pipeline schedules as tables: which pass of which micro-batch a stage runs next. No time in here;
// when a pass begins follows from what it waits for.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sim/spec/spec.hpp"

namespace scapesim::plan {

enum class Pass {
  forward,
  backward,         ///< whole
  input_gradient,   ///< the half that the stage before waits for
  weight_gradient,  ///< the half that nobody waits for
};

/// A pass of a micro-batch through one of the stage's chunks of the model.
struct Slot {
  Pass pass = Pass::forward;
  int chunk = 0;
  int micro_batch = 0;
  auto operator<=>(const Slot&) const = default;
};
using StageOrder = std::vector<Slot>;

/// How chunks lie over the stages.
enum class Placement {
  round,  ///< each chunk from the first stage to the last
  vee,    ///< there and back: the last stage hands on to itself
};

struct Pipeline {
  int stages = 1;
  int chunks = 1;  ///< of the model per stage
  int micro_batches = 1;
  Placement placement = Placement::round;
};
Placement placement_of(spec::Schedule schedule);
Pipeline pipeline_of(const spec::Scenario& scenario);

/// One schedule: its row in the table.
struct ScheduleRow {
  spec::Schedule schedule;
  std::string_view help;
  StageOrder (*order)(const Pipeline& pipeline, int stage);
};
std::span<const ScheduleRow> schedules();

/// [M231] What a stage runs, in order: every micro-batch once forward and once backward (whole, or
/// both halves) through each chunk.
StageOrder stage_order(spec::Schedule schedule, const Pipeline& pipeline, int stage);

/// [M425] Whether a pass and the one behind it are one chunk of work: it begins when both can, and
/// what they hand on leaves when both have ended.
bool joins_next(const Pipeline& pipeline, const StageOrder& order, std::size_t position);

/// A pipeline of fewer micro-batches, if that is enough for every stage to hold as many at once as
/// it ever does.
Pipeline settled(Pipeline pipeline, spec::Schedule schedule);

inline int mirrored(const Pipeline& pipeline, int stage, int chunk) {
  const bool back = pipeline.placement == Placement::vee && chunk % 2 == 1;
  return back ? pipeline.stages - 1 - stage : stage;
}
/// Chunk c of stage s is part c * stages + s of the model; on the way back of a V the stages count
/// from the last.
inline int part_of(const Pipeline& pipeline, int stage, int chunk) {
  return chunk * pipeline.stages + mirrored(pipeline, stage, chunk);
}
inline int chunk_of(const Pipeline& pipeline, int part) { return part / pipeline.stages; }
inline int stage_of(const Pipeline& pipeline, int part) {
  return mirrored(pipeline, part % pipeline.stages, chunk_of(pipeline, part));
}
inline int parts(const Pipeline& pipeline) { return pipeline.stages * pipeline.chunks; }

}  // namespace scapesim::plan
