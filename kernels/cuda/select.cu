// SPDX-License-Identifier: Apache-2.0
// [M43] Exact top-k of every piece at once: radix select of the threshold, most significant digit
// first, then threshold to packed mask. Ties beyond the quota are counted chunk by chunk, in pieces
// that have more of them than are wanted, and taken by index.
#include <algorithm>
#include <stdexcept>

#include "kernels/cuda/tile.cuh"

namespace scapesim::kernels {

namespace {

template <class Score>
constexpr unsigned kBins = std::is_same_v<Score, float> ? kSelectBins : kRoundedSelectBins;

template <class Score>
struct Bins {
  std::uint32_t count[kBins<Score>];
};

/// One digit: `bits` bits of the magnitude above `shift` lower ones.
template <class Score>
struct Digit {
  Select<Score> select;
  unsigned shift;
  unsigned bits;
};

/// Magnitude bits as the score stores them.
template <class Score>
__device__ std::uint32_t magnitude(float value) {
  return magnitude_bits(value) >> (std::is_same_v<Score, float> ? 0U : 16U);
}

__device__ inline bool has_surplus(const SelectState& state) {
  return state.all == 0 && state.ties > state.wanted;
}

__device__ inline Range range_of(const SelectChunk& chunk) { return {chunk.begin, chunk.count}; }

/// State of each piece, and zeros in the mask's words that pieces share or do not fill: a piece
/// clears the word of its end unless the next one ends in it too.
template <class Score>
__global__ void prepare_kernel(const Select<Score> a) {
  const std::size_t index = static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (index >= a.piece_count) return;
  const SelectPiece piece = a.pieces[index];
  a.states[index] = {0, static_cast<std::uint32_t>(piece.wanted), 0,
                     piece.wanted >= piece.numel ? 1U : 0U};
  const std::uint64_t end = piece.begin + piece.numel;
  const std::uint64_t next = index + 1 < a.piece_count ? end + a.pieces[index + 1].numel : end + 32;
  if (end % 32 != 0 && next / 32 != end / 32) a.mask[end / 32] = 0;
}

template <class Score>
__global__ void histogram_kernel(const Digit<Score> a) {
  auto& bins = shared_memory<Bins<Score>>();
  const SelectChunk chunk = a.select.chunks[blockIdx.x];
  const SelectState state = a.select.states[chunk.piece];
  if (state.all != 0) return;
  for (unsigned bin = threadIdx.x; bin < kBins<Score>; bin += kBlock) bins.count[bin] = 0;
  __syncthreads();
  const std::size_t end = chunk.begin + chunk.count;
  std::size_t element = chunk.begin / kPerThread * kPerThread + threadIdx.x * kPerThread;
  for (; element < end; element += kBlock * kPerThread) {
    const Group group = group_of(element, range_of(chunk));
    const Four scores = load_four(a.select.scores, 0, group);
    SCAPESIM_UNROLL
    for (unsigned i = 0; i < kPerThread; ++i) {
      const std::uint32_t score = magnitude<Score>(scores.at[i]);
      if (group.has(i) && score >> (a.shift + a.bits) == state.threshold >> (a.shift + a.bits))
        atomicAdd(&bins.count[score >> a.shift & ((1U << a.bits) - 1U)], 1U);
    }
  }
  __syncthreads();
  std::uint32_t* all = a.select.histograms + std::size_t{chunk.piece} * kBins<Score>;
  for (unsigned bin = threadIdx.x; bin < kBins<Score>; bin += kBlock)
    if (bins.count[bin] != 0) atomicAdd(&all[bin], bins.count[bin]);
}

/// Finds the digit of the wanted-th largest, a block per piece; clears the histogram for the next.
template <class Score>
__global__ void digit_kernel(const Digit<Score> a) {
  auto& sums = shared_memory<WarpSums<std::uint32_t>>();
  SelectState& state = a.select.states[blockIdx.x];
  const std::uint32_t wanted = state.wanted;
  if (state.all != 0) return;
  constexpr unsigned kMine = kBins<Score> / kBlock;
  std::uint32_t* mine = a.select.histograms + (std::size_t{blockIdx.x} + 1) * kBins<Score> -
                        (threadIdx.x + 1) * kMine;
  std::uint32_t count = 0;
  for (unsigned bin = 0; bin < kMine; ++bin) count += mine[bin];
  std::uint32_t larger = block_sum(sums, count).before;
  if (larger < wanted && wanted <= larger + count) {
    unsigned bin = kMine - 1;
    while (larger + mine[bin] < wanted) larger += mine[bin--];
    const unsigned digit = kBins<Score> - (threadIdx.x + 1) * kMine + bin;
    state.threshold |= digit << a.shift;
    state.wanted = wanted - larger;
    state.ties = mine[bin];
  }
  for (unsigned bin = 0; bin < kMine; ++bin) mine[bin] = 0;
}

template <class Score>
__global__ void count_ties_kernel(const Select<Score> a) {
  auto& sums = shared_memory<WarpSums<std::uint32_t>>();
  const SelectChunk chunk = a.chunks[blockIdx.x];
  const SelectState state = a.states[chunk.piece];
  if (!has_surplus(state)) return;
  std::uint32_t ties = 0;
  const std::size_t end = chunk.begin + chunk.count;
  std::size_t element = chunk.begin / kPerThread * kPerThread + threadIdx.x * kPerThread;
  for (; element < end; element += kBlock * kPerThread) {
    const Group group = group_of(element, range_of(chunk));
    const Four scores = load_four(a.scores, 0, group);
    SCAPESIM_UNROLL
    for (unsigned i = 0; i < kPerThread; ++i)
      ties += group.has(i) && magnitude<Score>(scores.at[i]) == state.threshold ? 1U : 0U;
  }
  const std::uint32_t total = block_sum(sums, ties).total;
  if (threadIdx.x == 0) a.chunk_ties[blockIdx.x] = total;
}

/// Of a group: which are above the threshold, which at it.
struct Flags {
  unsigned above = 0;
  unsigned tied = 0;
};

template <class Score>
__device__ Flags flags_of(const Select<Score>& a, const SelectState& state, const Group& group) {
  Flags flags;
  const Four scores = load_four(a.scores, 0, group);
  SCAPESIM_UNROLL
  for (unsigned i = 0; i < kPerThread; ++i) {
    if (!group.has(i)) continue;
    const std::uint32_t score = magnitude<Score>(scores.at[i]);
    if (score > state.threshold) flags.above |= 1U << i;
    if (score == state.threshold) flags.tied |= 1U << i;
  }
  return flags;
}

/// The lowest `count` set bits.
__device__ inline unsigned lowest_bits(unsigned bits, unsigned count) {
  unsigned taken = 0;
  for (unsigned i = 0; i < kPerThread; ++i)
    if ((bits >> i & 1U) != 0 && static_cast<unsigned>(__popc(taken)) < count) taken |= 1U << i;
  return taken;
}

/// Four bits of each of eight lanes make a word, which the first of the eight stores; other pieces
/// may have bits in the words at the chunk's ends.
template <class Score>
__device__ void store_bits(const Select<Score>& a, const SelectChunk& chunk, std::size_t element,
                           unsigned bits) {
  std::uint32_t word = bits << threadIdx.x % 8 * kPerThread;
  for (unsigned step = 1; step < 8; step *= 2) word |= __shfl_xor_sync(kFull, word, step);
  const unsigned selected = warp_sum(static_cast<unsigned>(__popc(bits)));
  if (threadIdx.x % kWarp == 0 && selected > 0)
    atomicAdd(&a.tile_counts[element / kTile], selected);
  if (threadIdx.x % 8 != 0) return;
  if (element >= chunk.begin && element + 32 <= chunk.begin + chunk.count)
    a.mask[element / 32] = word;
  else if (word != 0)
    atomicOr(&a.mask[element / 32], word);
}

template <class Score>
__global__ void mask_kernel(const Select<Score> a) {
  auto& sums = shared_memory<WarpSums<std::uint32_t>>();
  const SelectChunk chunk = a.chunks[blockIdx.x];
  const SelectState state = a.states[chunk.piece];
  const bool surplus = has_surplus(state);
  std::uint32_t taken = 0;  // ties before the block's next elements
  if (surplus) {
    std::uint32_t earlier = 0;
    for (unsigned i = threadIdx.x; i < chunk.earlier; i += kBlock)
      earlier += a.chunk_ties[blockIdx.x - 1 - i];
    taken = block_sum(sums, earlier).total;
  }
  constexpr unsigned kWarpElements = kWarp * kPerThread;  // within one tile
  std::size_t base = chunk.begin / kWarpElements * kWarpElements;
  for (; base < chunk.begin + chunk.count; base += kBlock * kPerThread) {
    const std::size_t element = base + threadIdx.x * kPerThread;
    const Group group = group_of(element, range_of(chunk));
    unsigned bits = group.begin < group.end ? (1U << group.end) - (1U << group.begin) : 0;
    if (state.all == 0) {
      const Flags flags = flags_of(a, state, group);
      unsigned tied = flags.tied;
      if (surplus) {
        const BlockSum<std::uint32_t> ties =
            block_sum(sums, static_cast<std::uint32_t>(__popc(tied)));
        const std::uint32_t before = taken + ties.before;
        tied = lowest_bits(tied, before < state.wanted ? state.wanted - before : 0);
        taken += ties.total;
      }
      bits = flags.above | tied;
    }
    store_bits(a, chunk, element, bits);
  }
}

template <class Score>
void find_digit(const Select<Score>& select, unsigned shift, unsigned bits, Stream stream) {
  const Digit<Score> digit{select, shift, bits};
  launch<Bins<Score>>("select histogram", histogram_kernel<Score>, select.chunk_count, digit,
                      stream);
  launch<WarpSums<std::uint32_t>>("select digit", digit_kernel<Score>, select.piece_count, digit,
                                  stream);
}

}  // namespace

template <class Score>
void select_threshold(const Select<Score>& arguments, Stream stream) {
  zero(arguments.histograms, arguments.piece_count * kBins<Score> * sizeof(std::uint32_t), stream);
  launch("select prepare", prepare_kernel<Score>, (arguments.piece_count + kBlock - 1) / kBlock,
         arguments, stream);
  if constexpr (std::is_same_v<Score, float>) {
    find_digit(arguments, 20, 11, stream);
    find_digit(arguments, 10, 10, stream);
    find_digit(arguments, 0, 10, stream);
  } else {
    find_digit(arguments, 0, 15, stream);
  }
}
template void select_threshold(const Select<float>&, Stream);
template void select_threshold(const Select<Bf16>&, Stream);

template <class Score>
void select_mask(const Select<Score>& arguments, Stream stream) {
  zero(arguments.tile_counts, tiles_of(arguments.elements) * sizeof(std::uint32_t), stream);
  launch<WarpSums<std::uint32_t>>("select ties", count_ties_kernel<Score>, arguments.chunk_count,
                                  arguments, stream);
  launch<WarpSums<std::uint32_t>>("select mask", mask_kernel<Score>, arguments.chunk_count,
                                  arguments, stream);
}
template void select_mask(const Select<float>&, Stream);
template void select_mask(const Select<Bf16>&, Stream);

}  // namespace scapesim::kernels
