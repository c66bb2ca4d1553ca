// SPDX-License-Identifier: Apache-2.0
// [M42] Received masks put together, masks OR-ed [M45], and the payload offset of each tile [M44].
#include "kernels/cuda/tile.cuh"

namespace scapesim::kernels {

namespace {

/// Tiles whose words a block makes, one word a thread.
inline constexpr unsigned kBlockTiles = kBlock / kTileWords;
inline constexpr unsigned kTileWarps = kTileWords / kWarp;

std::size_t word_blocks(std::size_t elements) {
  return (tiles_of(elements) + kBlockTiles - 1) / kBlockTiles;
}

__device__ inline std::size_t word_of_thread() {
  return static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
}

/// Selected of the block's tiles, from each thread's word; all threads must call it.
__device__ inline void store_counts(WarpSums<std::uint32_t>& sums, std::uint32_t word,
                                    std::size_t elements, std::uint32_t* tile_counts) {
  const std::uint32_t count = warp_sum(static_cast<std::uint32_t>(__popc(word)));
  if (threadIdx.x % kWarp == 0) sums.of[threadIdx.x / kWarp] = count;
  __syncthreads();
  const std::size_t tile = static_cast<std::size_t>(blockIdx.x) * kBlockTiles + threadIdx.x;
  if (threadIdx.x >= kBlockTiles || tile * kTile >= elements) return;
  std::uint32_t total = 0;
  for (unsigned warp = 0; warp < kTileWarps; ++warp)
    total += sums.of[threadIdx.x * kTileWarps + warp];
  tile_counts[tile] = total;
}

/// `count` bits (1 to 32) from bit `first` of a byte array.
__device__ inline std::uint32_t bits_from(const std::uint8_t* bytes, std::uint64_t first,
                                          unsigned count) {
  const unsigned shift = static_cast<unsigned>(first % 8);
  std::uint64_t bits = 0;
  for (unsigned byte = 0; byte * 8 < shift + count; ++byte)
    bits |= static_cast<std::uint64_t>(bytes[first / 8 + byte]) << (8 * byte);
  return static_cast<std::uint32_t>(bits >> shift & ((std::uint64_t{1} << count) - 1));
}

/// The last part that begins at or before an element: it holds it.
__device__ inline std::size_t part_of(const Stitch& a, std::uint64_t element) {
  std::size_t low = 0;
  std::size_t high = a.part_count;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    if (a.parts[middle].begin <= element)
      low = middle;
    else
      high = middle;
  }
  return low;
}

__device__ inline std::uint32_t stitched_word(const Stitch& a, std::uint64_t element) {
  const std::uint64_t left = a.elements - element;
  const auto length = static_cast<unsigned>(left < 32 ? left : 32);
  std::uint32_t word = 0;
  unsigned filled = 0;
  for (std::size_t part = part_of(a, element); filled < length; ++part) {
    const std::uint64_t position = element + filled - a.parts[part].begin;
    const std::uint64_t in_part = a.parts[part].numel - position;
    if (in_part == 0) continue;
    const auto count = static_cast<unsigned>(in_part < length - filled ? in_part : length - filled);
    word |= bits_from(a.wire + part * a.padded_bytes, position, count) << filled;
    filled += count;
  }
  return word;
}

__global__ void stitch_kernel(const Stitch a) {
  auto& sums = shared_memory<WarpSums<std::uint32_t>>();
  const std::size_t word = word_of_thread();
  std::uint32_t bits = 0;
  if (word * 32 < a.elements) {
    bits = stitched_word(a, word * 32);
    a.words[word] = bits;
  }
  store_counts(sums, bits, a.elements, a.tile_counts);
}

__global__ void or_kernel(const OrMasks a) {
  auto& sums = shared_memory<WarpSums<std::uint32_t>>();
  const std::size_t word = word_of_thread();
  std::uint32_t bits = 0;
  if (word * 32 < a.elements) {
    for (std::size_t mask = 0; mask < a.count; ++mask) bits |= a.masks[mask * a.stride + word];
    const std::size_t left = a.elements - word * 32;
    if (left < 32) bits &= (1U << left) - 1U;
    a.words[word] = bits;
  }
  store_counts(sums, bits, a.elements, a.tile_counts);
}

inline constexpr unsigned kScanPerThread = kScanChunk / kBlock;

/// Sum of each chunk of tiles.
__global__ void chunk_sums_kernel(const ScanTiles a) {
  auto& sums = shared_memory<WarpSums<std::uint32_t>>();
  std::uint32_t mine = 0;
  for (unsigned i = 0; i < kScanPerThread; ++i) {
    const std::size_t tile = blockIdx.x * kScanChunk + i * kBlock + threadIdx.x;
    if (tile < a.tiles) mine += a.tile_counts[tile];
  }
  const std::uint32_t total = block_sum(sums, mine).total;
  if (threadIdx.x == 0) a.scratch[blockIdx.x] = total;
}

/// Sums of the chunks before each, in place; one block.
__global__ void chunk_offsets_kernel(const ScanTiles a) {
  auto& sums = shared_memory<WarpSums<std::uint64_t>>();
  const std::size_t chunks = (a.tiles + kScanChunk - 1) / kScanChunk;
  std::uint64_t before = 0;
  for (std::size_t base = 0; base < chunks; base += kBlock) {
    const std::size_t chunk = base + threadIdx.x;
    const std::uint64_t mine = chunk < chunks ? a.scratch[chunk] : 0;
    const BlockSum<std::uint64_t> sum = block_sum(sums, mine);
    if (chunk < chunks) a.scratch[chunk] = before + sum.before;
    before += sum.total;
  }
  if (threadIdx.x == 0) a.offsets[a.tiles] = before;
}

__global__ void tile_offsets_kernel(const ScanTiles a) {
  auto& sums = shared_memory<WarpSums<std::uint32_t>>();
  const std::size_t first = blockIdx.x * kScanChunk + threadIdx.x * kScanPerThread;
  std::uint32_t counts[kScanPerThread];
  std::uint32_t mine = 0;
  for (unsigned i = 0; i < kScanPerThread; ++i) {
    counts[i] = first + i < a.tiles ? a.tile_counts[first + i] : 0;
    mine += counts[i];
  }
  std::uint64_t offset = a.scratch[blockIdx.x] + block_sum(sums, mine).before;
  for (unsigned i = 0; i < kScanPerThread; ++i) {
    if (first + i < a.tiles) a.offsets[first + i] = offset;
    offset += counts[i];
  }
}

}  // namespace

void stitch_masks(const Stitch& arguments, Stream stream) {
  launch<WarpSums<std::uint32_t>>("stitch_masks", stitch_kernel, word_blocks(arguments.elements),
                                  arguments, stream);
}

void or_masks(const OrMasks& arguments, Stream stream) {
  launch<WarpSums<std::uint32_t>>("or_masks", or_kernel, word_blocks(arguments.elements), arguments,
                                  stream);
}

void scan_tiles(const ScanTiles& arguments, Stream stream) {
  const std::size_t chunks = scan_scratch(arguments.tiles);
  launch<WarpSums<std::uint32_t>>("scan sums", chunk_sums_kernel, chunks, arguments, stream);
  launch<WarpSums<std::uint64_t>>("scan chunks", chunk_offsets_kernel, 1, arguments, stream);
  launch<WarpSums<std::uint32_t>>("scan tiles", tile_offsets_kernel, chunks, arguments, stream);
}

}  // namespace scapesim::kernels
