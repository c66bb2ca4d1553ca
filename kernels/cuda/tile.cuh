// SPDX-License-Identifier: Apache-2.0
// How a thread block walks a tile: every thread takes four consecutive elements, twice, and finds
// where its selected ones stand in the payload. Accesses are of four elements at once where the
// array is aligned for it.
#pragma once

#include "kernels/cuda/device.cuh"

namespace scapesim::kernels {

using reference::magnitude_bits;
using reference::store;
using reference::to_bf16;
using reference::to_float;

struct Four {
  float at[4];
};

// Four elements in one access. The stores are intrinsics, because nvcc takes plain ones apart.
__device__ inline Four load_whole(const float* from) {
  const float4 v = *reinterpret_cast<const float4*>(from);
  return {{v.x, v.y, v.z, v.w}};
}
__device__ inline Four load_whole(const Bf16* from) {
  const ushort4 v = *reinterpret_cast<const ushort4*>(from);
  return {{to_float(Bf16{v.x}), to_float(Bf16{v.y}), to_float(Bf16{v.z}), to_float(Bf16{v.w})}};
}
__device__ inline void store_whole(float* to, const Four& v) {
  __stwb(reinterpret_cast<float4*>(to), make_float4(v.at[0], v.at[1], v.at[2], v.at[3]));
}
__device__ inline void store_whole(Bf16* to, const Four& v) {
  __stwb(reinterpret_cast<ushort4*>(to),
         make_ushort4(to_bf16(v.at[0]).bits, to_bf16(v.at[1]).bits, to_bf16(v.at[2]).bits,
                      to_bf16(v.at[3]).bits));
}

inline constexpr unsigned kPerThread = 4;
inline constexpr unsigned kRounds = kTile / (kBlock * kPerThread);

/// Four consecutive elements of which begin .. end-1 lie in a range.
struct Group {
  std::size_t element;
  unsigned begin;
  unsigned end;

  __device__ bool has(unsigned i) const { return i >= begin && i < end; }
};

__device__ inline Group group_of(std::size_t element, Range range) {
  const std::size_t last = range.first + range.count;
  const std::size_t begin = element < range.first ? range.first - element : 0;
  const std::size_t end = element < last ? last - element : 0;
  return {element, static_cast<unsigned>(begin < kPerThread ? begin : kPerThread),
          static_cast<unsigned>(end < kPerThread ? end : kPerThread)};
}

/// The group of a thread in a round; blocks begin at the tile that holds the range's first element.
__device__ inline std::size_t tile_of(Range range) { return range.first / kTile + blockIdx.x; }
__device__ inline Group group_of_thread(Range range, unsigned round) {
  const std::size_t in_tile = (round * kBlock + threadIdx.x) * kPerThread;
  return group_of(tile_of(range) * kTile + in_tile, range);
}
inline std::size_t tile_blocks(Range range) {
  if (range.count == 0) return 0;
  return (range.first + range.count - 1) / kTile - range.first / kTile + 1;
}

/// The whole group in one access, if it lies in the range and `array` is aligned there.
template <class T>
__device__ bool at_once(const T* array, std::size_t first, const Group& group) {
  if (group.begin != 0 || group.end != kPerThread) return false;
  return reinterpret_cast<std::uintptr_t>(array + (group.element - first)) % (4 * sizeof(T)) == 0;
}

/// Values of a group from an array that begins at element `first`; zeros outside the range.
template <class T>
__device__ Four load_four(const T* array, std::size_t first, const Group& group) {
  if (at_once(array, first, group)) return load_whole(array + (group.element - first));
  Four values{};
  SCAPESIM_UNROLL
  for (unsigned i = 0; i < kPerThread; ++i)
    if (group.has(i)) values.at[i] = to_float(array[group.element + i - first]);
  return values;
}

template <class T>
__device__ void store_four(T* array, std::size_t first, const Group& group, const Four& values) {
  if (at_once(array, first, group)) {
    store_whole(array + (group.element - first), values);
    return;
  }
  SCAPESIM_UNROLL
  for (unsigned i = 0; i < kPerThread; ++i)
    if (group.has(i)) store(array[group.element + i - first], values.at[i]);
}

/// Sum over the warp's lanes below this one.
template <class T>
__device__ T warp_sum_before(T value) {
  const unsigned lane = threadIdx.x % kWarp;
  T sum = value;
  for (unsigned step = 1; step < kWarp; step *= 2) {
    const T other = __shfl_up_sync(kFull, sum, step);
    if (lane >= step) sum += other;
  }
  return sum - value;
}

/// Sum over the warp, in lane 0 at least; the order of additions is fixed.
template <class T>
__device__ T warp_sum(T value) {
  for (unsigned step = kWarp / 2; step > 0; step /= 2)
    value += __shfl_down_sync(kFull, value, step);
  return value;
}

inline constexpr unsigned kWarps = kBlock / kWarp;

template <class T>
struct WarpSums {
  T of[kWarps];
};

template <class T>
struct BlockSum {
  T before;
  T total;
};

/// Sums over the block's threads below this one, and over all; all threads must call it.
template <class T>
__device__ BlockSum<T> block_sum(WarpSums<T>& sums, T value) {
  const T in_warp = warp_sum_before(value);
  const unsigned warp = threadIdx.x / kWarp;
  if (threadIdx.x % kWarp == kWarp - 1) sums.of[warp] = in_warp + value;
  __syncthreads();
  BlockSum<T> result{in_warp, 0};
  for (unsigned i = 0; i < kWarps; ++i) {
    if (i < warp) result.before += sums.of[i];
    result.total += sums.of[i];
  }
  __syncthreads();
  return result;
}

/// A tile's mask words, and the selected before each word within the tile.
struct TileMask {
  std::uint32_t words[kTileWords];
  std::uint32_t before[kTileWords];
};

/// By the first warp, two words a lane; all threads of the block must call it.
__device__ inline void load_tile(TileMask& tile, const MaskView& mask, std::size_t index) {
  if (threadIdx.x < kWarp) {
    const std::size_t words = (mask.elements + 31) / 32;
    const std::size_t first = index * kTileWords + 2 * threadIdx.x;
    const std::uint32_t low = first < words ? mask.words[first] : 0;
    const std::uint32_t high = first + 1 < words ? mask.words[first + 1] : 0;
    const auto count = static_cast<unsigned>(__popc(low));
    const unsigned before = warp_sum_before(count + static_cast<unsigned>(__popc(high)));
    tile.words[2 * threadIdx.x] = low;
    tile.words[2 * threadIdx.x + 1] = high;
    tile.before[2 * threadIdx.x] = before;
    tile.before[2 * threadIdx.x + 1] = before + count;
  }
  __syncthreads();
}

/// The four mask bits of a group, and the payload position of its first selected element.
struct Selection {
  unsigned bits;
  std::uint64_t position;

  __device__ bool has(unsigned i) const { return (bits >> i & 1U) != 0; }
  /// Position of element i, if it is selected.
  __device__ std::uint64_t position_of(unsigned i) const {
    return position + static_cast<unsigned>(__popc(bits & ((1U << i) - 1U)));
  }
};

__device__ inline Selection selection_of(const TileMask& tile, const MaskView& mask,
                                         const Group& group) {
  const auto in_tile = static_cast<unsigned>(group.element % kTile);
  const std::uint32_t word = tile.words[in_tile / 32];
  const unsigned shift = in_tile % 32;
  const auto before = static_cast<unsigned>(__popc(word & ((1U << shift) - 1U)));
  return {word >> shift & 0xfU,
          mask.offsets[group.element / kTile] + tile.before[in_tile / 32] + before};
}

}  // namespace scapesim::kernels
