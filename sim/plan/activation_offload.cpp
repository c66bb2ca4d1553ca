// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/activation_offload.hpp"

#include <algorithm>

namespace scapesim::plan {

namespace {

using graph::OpId;
using graph::Stream;
using strategy::Waits;

/// The larger two of four.
void merge(Bytes (&largest)[2], Bytes first, Bytes second) {
  for (const Bytes size : {first, second}) {
    if (size > largest[0]) {
      largest[1] = largest[0];
      largest[0] = size;
    } else {
      largest[1] = std::max(largest[1], size);
    }
  }
}

/// Buffers for so many micro-batches of every chunk.
Bytes buffers(const std::vector<KeptByChunk>& kept, const std::vector<int>& alive) {
  Bytes largest[2];
  for (std::size_t chunk = 0; chunk < kept.size(); ++chunk) {
    const Bytes(&own)[2] = kept[chunk].largest;
    if (alive[chunk] == 1) merge(largest, own[0], own[1]);
    if (alive[chunk] > 1) merge(largest, own[0], own[0]);
  }
  return largest[0] + largest[1];
}

}  // namespace

bool is_offloaded(const workload::Workload& workload, const spec::Training& training,
                  const Part& part, std::size_t layer) {
  const workload::Layer& one = workload.layers[layer];
  if (!training.activation_offload || one.role != workload::Role::block || one.kept == Bytes(0))
    return false;
  if (!training.offload_layers) return true;
  std::size_t first = part.begin;
  while (workload.layers[first].role != workload::Role::block) ++first;
  return layer < first + static_cast<std::size_t>(*training.offload_layers);
}

KeptByChunk kept_by(const workload::Workload& workload, const spec::Training& training,
                    const Part& part) {
  KeptByChunk kept;
  for (std::size_t i = part.begin; i < part.end; ++i) {
    const Bytes size = workload.layers[i].kept;
    if (!is_offloaded(workload, training, part, i)) {
      kept.device += size;
      continue;
    }
    kept.host += size;
    merge(kept.largest, size, Bytes(0));
  }
  return kept;
}

// [M237] The second half of a backward pass still needs the inputs of its GEMMs, so that what a
// micro-batch keeps is free only behind its weight gradients.
MostKept most_kept(const StageOrder& order, const std::vector<KeptByChunk>& kept) {
  Bytes device, host;
  MostKept most;
  std::vector<int> alive(kept.size());
  const bool offloads =
      std::ranges::any_of(kept, [](const KeptByChunk& chunk) { return chunk.host > Bytes(0); });
  for (const Slot& slot : order) {
    const auto chunk = static_cast<std::size_t>(slot.chunk);
    if (slot.pass == Pass::forward) {
      device += kept[chunk].device;
      host += kept[chunk].host;
      ++alive[chunk];
    }
    most.device = std::max(most.device, offloads ? device + buffers(kept, alive) : device);
    most.host = std::max(most.host, host);
    if (slot.pass != Pass::backward && slot.pass != Pass::weight_gradient) continue;
    device -= kept[chunk].device;
    host -= kept[chunk].host;
    --alive[chunk];
  }
  return most;
}

Waits ActivationCopies::free_buffer() const {
  if (freed_.size() < 2) return {};
  return {{freed_[freed_.size() - 2]}};
}

Waits ActivationCopies::before(strategy::Program& program, const Slot& slot, std::size_t layer,
                               Bytes kept) {
  if (slot.pass == Pass::forward) return free_buffer();
  Waits waits = free_buffer();
  waits.push_back({stored_.at({layer, slot.micro_batch})});
  return {{strategy::add_copy(program, context_,
                              {.name = "activations copy in",
                               .stream = Stream::copy_in,
                               .bytes = kept,
                               .rate_key = "copy.h2d_Bps",
                               .formula = "M427"},
                              std::move(waits))}};
}

void ActivationCopies::behind(strategy::Program& program, const Slot& slot, std::size_t layer,
                              Bytes kept, OpId op) {
  if (slot.pass != Pass::forward) {
    freed_.push_back(op);
    return;
  }
  const OpId out = strategy::add_copy(program, context_,
                                      {.name = "activations copy out",
                                       .stream = Stream::copy_out,
                                       .bytes = kept,
                                       .rate_key = "copy.d2h_Bps",
                                       .formula = "M427"},
                                      {{op}});
  stored_[{layer, slot.micro_batch}] = out;
  freed_.push_back(out);
}

}  // namespace scapesim::plan
