// SPDX-License-Identifier: Apache-2.0
// Gradient norms in double, added in an order that depends on the number of elements only: every
// rank finds the same factor.
#include <cmath>

#include "kernels/cuda/tile.cuh"

namespace scapesim::kernels {

namespace {

struct NormShared {
  TileMask tile;
  WarpSums<double> sums;
};

/// At least four tiles each, while there are.
std::size_t norm_blocks(std::size_t elements) {
  const std::size_t blocks = (tiles_of(elements) + 3) / 4;
  return blocks < kNormBlocks ? blocks : kNormBlocks;
}

/// Sum over the block in thread 0.
__device__ inline double block_total(WarpSums<double>& sums, double value) {
  const double warp = warp_sum(value);
  if (threadIdx.x % kWarp == 0) sums.of[threadIdx.x / kWarp] = warp;
  __syncthreads();
  double total = 0;
  if (threadIdx.x == 0)
    for (unsigned i = 0; i < kWarps; ++i) total += sums.of[i];
  return total;
}

__device__ inline double square(float value) {
  return static_cast<double>(value) * static_cast<double>(value);
}

__device__ inline Group group_in_tile(std::size_t tile, unsigned round, std::size_t elements) {
  const std::size_t in_tile = (round * kBlock + threadIdx.x) * kPerThread;
  return group_of(tile * kTile + in_tile, {0, elements});
}

template <class Sent>
__global__ void selected_squares_kernel(const SelectedNorm<Sent> a) {
  auto& shared = shared_memory<NormShared>();
  double squares = 0;
  for (std::size_t tile = blockIdx.x; tile * kTile < a.mask.elements; tile += gridDim.x) {
    load_tile(shared.tile, a.mask, tile);
    for (unsigned round = 0; round < kRounds; ++round) {
      const Group group = group_in_tile(tile, round, a.mask.elements);
      if (group.begin >= group.end) continue;
      const Selection selection = selection_of(shared.tile, a.mask, group);
      for (unsigned i = 0; i < kPerThread; ++i) {
        if (!group.has(i) || !selection.has(i)) continue;
        const float now = to_float(a.payload[selection.position_of(i)]);
        squares +=
            square(reference::gradient_behind(a.coefficients, a.moment[group.element + i], now));
      }
    }
    __syncthreads();
  }
  const double total = block_total(shared.sums, squares);
  if (threadIdx.x == 0) a.partial[blockIdx.x] = total;
}

template <class Gradient>
__global__ void dense_squares_kernel(const DenseNorm<Gradient> a) {
  auto& sums = shared_memory<WarpSums<double>>();
  double squares = 0;
  for (std::size_t tile = blockIdx.x; tile * kTile < a.elements; tile += gridDim.x)
    for (unsigned round = 0; round < kRounds; ++round) {
      const Four gradient = load_four(a.gradient, 0, group_in_tile(tile, round, a.elements));
      for (unsigned i = 0; i < kPerThread; ++i) squares += square(gradient.at[i]);
    }
  const double total = block_total(sums, squares);
  if (threadIdx.x == 0) a.partial[blockIdx.x] = total;
}

struct Finish {
  const double* partial;
  std::size_t count;
  double limit;
  Clip* clip;
};

/// One block.
__global__ void finish_kernel(const Finish a) {
  auto& sums = shared_memory<WarpSums<double>>();
  double mine = 0;
  for (std::size_t i = threadIdx.x; i < a.count; i += kBlock) mine += a.partial[i];
  const double total = block_total(sums, mine);
  if (threadIdx.x != 0) return;
  const double norm = std::sqrt(total);
  const double factor = reference::clip_factor(a.limit, norm);
  *a.clip = {norm, static_cast<float>(factor), factor != 1 ? 1U : 0U};
}

void finish(const double* partial, std::size_t count, double limit, Clip* clip, Stream stream) {
  launch<WarpSums<double>>("norm", finish_kernel, 1, Finish{partial, count, limit, clip}, stream);
}

}  // namespace

template <class Sent>
void selected_norm(const SelectedNorm<Sent>& arguments, Stream stream) {
  const std::size_t blocks = norm_blocks(arguments.mask.elements);
  launch<NormShared>("selected_norm", selected_squares_kernel<Sent>, blocks, arguments, stream);
  finish(arguments.partial, blocks, arguments.limit, arguments.clip, stream);
}
template void selected_norm(const SelectedNorm<float>&, Stream);
template void selected_norm(const SelectedNorm<Bf16>&, Stream);

template <class Gradient>
void dense_norm(const DenseNorm<Gradient>& arguments, Stream stream) {
  const std::size_t blocks = norm_blocks(arguments.elements);
  launch<WarpSums<double>>("dense_norm", dense_squares_kernel<Gradient>, blocks, arguments, stream);
  finish(arguments.partial, blocks, arguments.limit, arguments.clip, stream);
}
template void dense_norm(const DenseNorm<float>&, Stream);
template void dense_norm(const DenseNorm<Bf16>&, Stream);

}  // namespace scapesim::kernels
