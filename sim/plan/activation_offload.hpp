// SPDX-License-Identifier: Apache-2.0
// Activations that wait in host memory: which layers', what is left on the device, and the copies
// of a step.
#pragma once

#include <map>
#include <vector>

#include "sim/plan/schedule.hpp"
#include "sim/plan/stages.hpp"
#include "sim/strategy/program.hpp"

namespace scapesim::plan {

/// Whether a layer of a part puts its activations into host memory: the first transformer layers of
/// the part do.
bool is_offloaded(const workload::Workload& workload, const spec::Training& training,
                  const Part& part, std::size_t layer);

/// What a micro-batch keeps between its passes through a chunk of a stage.
struct KeptByChunk {
  Bytes device = {};  ///< of layers that are not offloaded
  Bytes host = {};
  Bytes largest[2] = {};  ///< offloaded layers
};
KeptByChunk kept_by(const workload::Workload& workload, const spec::Training& training,
                    const Part& part);

/// Most that is kept at once.
struct MostKept {
  Bytes device;
  Bytes host;
};
/// [M427] Of offloaded layers two are on the device at most: the one that runs or waits for its
/// copy, and the next.
MostKept most_kept(const StageOrder& order, const std::vector<KeptByChunk>& kept);

/// [M427] Adds the copies of a stage's passes, in the order in which its layers run. Two buffers
/// take turns; one is free again when a copy out, or the backward pass of what was copied in, has
/// ended.
class ActivationCopies {
 public:
  explicit ActivationCopies(const strategy::Context& context) : context_(context) {}
  /// What an offloaded layer's pass must wait for; a backward pass for its copy in.
  strategy::Waits before(strategy::Program& program, const Slot& slot, std::size_t layer,
                         Bytes kept);
  /// The pass has run as `op`.
  void behind(strategy::Program& program, const Slot& slot, std::size_t layer, Bytes kept,
              graph::OpId op);

 private:
  strategy::Waits free_buffer() const;
  const strategy::Context& context_;
  std::vector<graph::OpId> freed_;                             ///< by uses of the buffers
  std::map<std::pair<std::size_t, int>, graph::OpId> stored_;  ///< by layer and micro-batch
};

}  // namespace scapesim::plan
