// SPDX-License-Identifier: Apache-2.0
// [M51] Accumulate, residual and gather in one pass: the mask is one step old, so that payload
// positions exist before the gradient does. [M52] Residual and gather apart, DGC's indices.
#include "kernels/cuda/tile.cuh"

namespace scapesim::kernels {

namespace {

template <class Gradient, class Sent>
__device__ void keep_scores(const Accumulate<Gradient, Sent>& a, const Group& group,
                            const Four& moments) {
  SCAPESIM_UNROLL
  for (unsigned i = 0; i < kPerThread; ++i) {
    const std::size_t element = group.element + i;
    if (!group.has(i) || element < a.owned.first || element >= a.owned.first + a.owned.count)
      continue;
    if (a.scores != nullptr) a.scores[element - a.owned.first] = moments.at[i];
    if (a.rounded_scores != nullptr)
      a.rounded_scores[element - a.owned.first] = to_bf16(moments.at[i]);
  }
}

template <class Gradient, class Sent>
__global__ void accumulate_kernel(const Accumulate<Gradient, Sent> a) {
  auto& tile = shared_memory<TileMask>();
  Four local[kRounds];
  SCAPESIM_UNROLL
  for (unsigned round = 0; round < kRounds; ++round) {
    const Group group = group_of_thread(a.range, round);
    const Four moment = load_four(a.moment, 0, group);
    const Four gradient = load_four(a.gradient, 0, group);
    const Four residual = load_four(a.residual, a.range.first, group);
    SCAPESIM_UNROLL
    for (unsigned i = 0; i < kPerThread; ++i)
      local[round].at[i] =
          reference::moment(a.coefficients, moment.at[i], gradient.at[i]) + residual.at[i];
  }
  const bool masked = a.mask.words != nullptr;
  if (masked) load_tile(tile, a.mask, tile_of(a.range));
  SCAPESIM_UNROLL
  for (unsigned round = 0; round < kRounds; ++round) {
    const Group group = group_of_thread(a.range, round);
    if (group.begin >= group.end) continue;
    if (a.scores != nullptr || a.rounded_scores != nullptr) keep_scores(a, group, local[round]);
    Four residual = local[round];
    if (masked) {
      const Selection selection = selection_of(tile, a.mask, group);
      SCAPESIM_UNROLL
      for (unsigned i = 0; i < kPerThread; ++i) {
        if (!group.has(i) || !selection.has(i)) continue;
        store(a.payload[selection.position_of(i)], residual.at[i]);
        residual.at[i] = 0;
      }
    }
    store_four(a.residual, a.range.first, group, residual);
  }
}

template <class Sent>
__global__ void gather_kernel(const Gather<Sent> a) {
  auto& tile = shared_memory<TileMask>();
  load_tile(tile, a.mask, tile_of(a.range));
  SCAPESIM_UNROLL
  for (unsigned round = 0; round < kRounds; ++round) {
    const Group group = group_of_thread(a.range, round);
    if (group.begin >= group.end) continue;
    const Selection selection = selection_of(tile, a.mask, group);
    SCAPESIM_UNROLL
    for (unsigned i = 0; i < kPerThread; ++i) {
      if (!group.has(i) || !selection.has(i)) continue;
      float& value = a.values[group.element + i - a.range.first];
      const std::uint64_t position = selection.position_of(i);
      store(a.payload[position], value);
      if (a.indices != nullptr) a.indices[position] = static_cast<std::uint32_t>(group.element + i);
      if (a.gathered == Gathered::cleared) value = 0;
    }
  }
}

__global__ void scatter_add_kernel(const ScatterAdd a) {
  const std::size_t pair = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (pair >= a.count || a.indices[pair] >= a.elements) return;
  a.dense[a.indices[pair]] += a.values[pair];
}

}  // namespace

template <class Gradient, class Sent>
void accumulate(const Accumulate<Gradient, Sent>& arguments, Stream stream) {
  launch<TileMask>("accumulate", accumulate_kernel<Gradient, Sent>, tile_blocks(arguments.range),
                   arguments, stream);
}
template void accumulate(const Accumulate<float, float>&, Stream);
template void accumulate(const Accumulate<float, Bf16>&, Stream);
template void accumulate(const Accumulate<Bf16, float>&, Stream);
template void accumulate(const Accumulate<Bf16, Bf16>&, Stream);

template <class Sent>
void gather(const Gather<Sent>& arguments, Stream stream) {
  launch<TileMask>("gather", gather_kernel<Sent>, tile_blocks(arguments.range), arguments, stream);
}
template void gather(const Gather<float>&, Stream);
template void gather(const Gather<Bf16>&, Stream);

void scatter_add(const ScatterAdd& arguments, Stream stream) {
  launch("scatter_add", scatter_add_kernel, (arguments.count + kBlock - 1) / kBlock, arguments,
         stream);
}

}  // namespace scapesim::kernels
