// SPDX-License-Identifier: Apache-2.0
// The kernels of SCAPE (arXiv 2607.01678) and of its baselines: one function per phase, over all
// parameters flattened into one buffer. Pointers are to device memory, of any alignment that their
// type allows; 16-byte accesses are made where they are aligned to 16 bytes. A function enqueues on
// the stream and returns; it throws CudaError when CUDA refuses. Ranges may be empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/reference/arithmetic.hpp"
#include "kernels/reference/bf16.hpp"

struct CUstream_st;

namespace scapesim::kernels {

using reference::Bf16;
using reference::Coefficients;
using Stream = CUstream_st*;  ///< a cudaStream_t

class CudaError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Elements of a tile: what one thread block handles, and 64 words of a packed mask.
inline constexpr std::size_t kTile = 2048;

constexpr std::size_t tiles_of(std::size_t elements) { return (elements + kTile - 1) / kTile; }
/// 32-bit words of a packed mask.
constexpr std::size_t words_of(std::size_t elements) { return (elements + 31) / 32; }

/// Elements first .. first + count - 1 of the flat buffer. Arrays "of the range" begin at `first`,
/// so that a chunk staged from host memory is a range; arrays "of all" begin at element 0.
struct Range {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// A mask over all elements with the payload positions that follow from it.
struct MaskView {
  const std::uint32_t* words = nullptr;  ///< lowest bit first; zero beyond the last element
  const std::uint64_t* offsets =
      nullptr;  ///< selected before each tile; tiles + 1, the last is all
  std::size_t elements = 0;
};

// ---- Local pass -------------------------------------------------------------------------------

/// mt = b1 m + (1-b1) g + r. On the mask mt goes to the payload and r becomes 0; off it r becomes
/// mt. Without a mask (no words) r becomes mt everywhere and there is no payload: the step whose
/// mask is made from mt itself. mt of `owned` is kept as scores where an array is given.
/// Gradient and Sent: float or Bf16.
template <class Gradient, class Sent>
struct Accumulate {
  Range range = {};
  const float* moment = nullptr;       ///< of all
  const Gradient* gradient = nullptr;  ///< of all
  float* residual = nullptr;           ///< of the range
  MaskView mask = {};
  Sent* payload = nullptr;         ///< of all selected
  Range owned = {};                ///< any part of the flat buffer
  float* scores = nullptr;         ///< of owned, or none
  Bf16* rounded_scores = nullptr;  ///< of owned, or none
  Coefficients<float> coefficients = {};
};
template <class Gradient, class Sent>
void accumulate(const Accumulate<Gradient, Sent>& arguments, Stream stream);

enum class Gathered { kept, cleared };

/// Values on the mask, in their order, and their indices in the flat buffer where an array is
/// given: the residual's release after a mask of the same step; top-k with indices (DGC).
template <class Sent>
struct Gather {
  Range range = {};
  float* values = nullptr;  ///< of the range; on the mask kept or set to 0
  Gathered gathered = Gathered::kept;
  MaskView mask = {};
  Sent* payload = nullptr;           ///< of all selected
  std::uint32_t* indices = nullptr;  ///< of all selected, or none; below 2^32 elements only
};
template <class Sent>
void gather(const Gather<Sent>& arguments, Stream stream);

/// dense[index] += value for the pairs of one rank, whose indices differ; one call after the other
/// for several ranks adds in the same order everywhere. An index not below `elements` is left out.
struct ScatterAdd {
  const std::uint32_t* indices = nullptr;
  const float* values = nullptr;
  std::size_t count = 0;
  float* dense = nullptr;
  std::size_t elements = 0;
};
void scatter_add(const ScatterAdd& arguments, Stream stream);

// ---- Selection --------------------------------------------------------------------------------

/// Consecutive elements of one tensor that this rank owns; positions count from the part's begin.
/// wanted = numel selects all without reading a score.
struct SelectPiece {
  std::uint64_t begin = 0;
  std::uint64_t numel = 0;
  std::uint64_t wanted = 0;  ///< 1 .. numel
};

/// What one thread block reads of one piece.
struct SelectChunk {
  std::uint64_t begin = 0;
  std::uint32_t count = 0;
  std::uint32_t piece = 0;
  std::uint32_t earlier = 0;  ///< chunks of the piece before this one
};

/// Elements of a chunk: enough to make the flush of a block's histogram cheap.
inline constexpr std::uint32_t kSelectChunk = 1U << 15U;
inline constexpr std::uint32_t kRoundedSelectChunk = 1U << 19U;

/// Chunks of all pieces in order, none across two pieces. On the host. chunk_elements: a multiple
/// of 32, else std::invalid_argument; a piece of 2^32 elements or more: std::length_error.
std::vector<SelectChunk> select_chunks(std::span<const SelectPiece> pieces,
                                       std::uint32_t chunk_elements);

/// What selection finds for a piece.
struct SelectState {
  std::uint32_t threshold = 0;  ///< smallest selected magnitude: 31 bits of a float, 15 of a Bf16
  std::uint32_t wanted = 0;     ///< how many elements at the threshold are selected
  std::uint32_t ties = 0;       ///< how many there are
  std::uint32_t all = 0;        ///< 1: every element is selected, the rest is void
};

/// Bins of a histogram: of the largest of three digits of a float's 31 bits (11, 10 and 10), of all
/// 15 bits of a Bf16.
inline constexpr std::size_t kSelectBins = 1U << 11U;
inline constexpr std::size_t kRoundedSelectBins = 1U << 15U;

/// The top `wanted` of every piece by magnitude; among equals the lowest index; NaN above infinity
/// above every number. Score: float (three passes, exact) or Bf16 (one pass, exact on the rounded
/// scores). Afterwards `mask` holds the part's bits from bit 0 on, zero beyond the last element,
/// and `tile_counts` the selected of each tile of the part.
template <class Score>
struct Select {
  const Score* scores = nullptr;        ///< of the part
  std::size_t elements = 0;             ///< of the part: the pieces' sum
  const SelectPiece* pieces = nullptr;  ///< each begins where the one before ends
  std::size_t piece_count = 0;
  const SelectChunk* chunks = nullptr;
  std::size_t chunk_count = 0;
  std::uint32_t* histograms = nullptr;   ///< scratch: piece_count x bins of the score
  SelectState* states = nullptr;         ///< piece_count
  std::uint32_t* chunk_ties = nullptr;   ///< scratch: chunk_count
  std::uint32_t* mask = nullptr;         ///< words_of(elements)
  std::uint32_t* tile_counts = nullptr;  ///< tiles_of(elements)
};
/// Thresholds and tie quotas; then the mask from them.
template <class Score>
void select_threshold(const Select<Score>& arguments, Stream stream);
template <class Score>
void select_mask(const Select<Score>& arguments, Stream stream);

// ---- Masks ------------------------------------------------------------------------------------

/// A rank's part of the flat buffer; each begins where the one before ends, and may be empty.
struct MaskPart {
  std::uint64_t begin = 0;
  std::uint64_t numel = 0;
};

/// Puts the owners' packed masks together: part i's bits begin at byte i x padded_bytes of `wire`.
/// Writes the words and the selected of each tile.
struct Stitch {
  const std::uint8_t* wire = nullptr;
  std::size_t padded_bytes = 0;
  const MaskPart* parts = nullptr;
  std::size_t part_count = 0;
  std::size_t elements = 0;
  std::uint32_t* words = nullptr;
  std::uint32_t* tile_counts = nullptr;
};
void stitch_masks(const Stitch& arguments, Stream stream);

/// ORs `count` masks that lie `stride` words apart; writes the words and the selected of each tile.
/// words may be the first of the masks. count = 1 counts tiles.
struct OrMasks {
  const std::uint32_t* masks = nullptr;
  std::size_t count = 0;
  std::size_t stride = 0;
  std::size_t elements = 0;
  std::uint32_t* words = nullptr;
  std::uint32_t* tile_counts = nullptr;
};
void or_masks(const OrMasks& arguments, Stream stream);

/// Tiles that a block of the scan sums.
inline constexpr std::size_t kScanChunk = 2048;
constexpr std::size_t scan_scratch(std::size_t tiles) {
  return (tiles + kScanChunk - 1) / kScanChunk;
}

/// offsets[i] = sum of tile_counts before i; offsets[tiles] = all.
struct ScanTiles {
  const std::uint32_t* tile_counts = nullptr;
  std::size_t tiles = 0;
  std::uint64_t* scratch = nullptr;  ///< scan_scratch(tiles)
  std::uint64_t* offsets = nullptr;  ///< tiles + 1
};
void scan_tiles(const ScanTiles& arguments, Stream stream);

// ---- Norm and clipping ------------------------------------------------------------------------

struct Clip {
  double norm = 0;   ///< of the unclipped gradient
  float factor = 1;  ///< 1 when the norm is not above the limit, or NaN
  std::uint32_t fired = 0;
};

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// Partial sums of a norm, at most; their number follows from that of the elements, so that every
/// rank adds in the same order.
inline constexpr std::size_t kNormBlocks = 1024;

/// Norm of g_hat = (payload - b1 m) / (1-b1) on the mask, and the factor that clips it.
template <class Sent>
struct SelectedNorm {
  MaskView mask = {};
  const Sent* payload = nullptr;
  const float* moment = nullptr;  ///< of all, of the step before
  Coefficients<float> coefficients = {};
  double limit = kNoLimit;    ///< largest norm
  double* partial = nullptr;  ///< scratch: kNormBlocks
  Clip* clip = nullptr;       ///< result
};
template <class Sent>
void selected_norm(const SelectedNorm<Sent>& arguments, Stream stream);

/// Norm of a dense gradient.
template <class Gradient>
struct DenseNorm {
  const Gradient* gradient = nullptr;
  std::size_t elements = 0;
  double limit = kNoLimit;
  double* partial = nullptr;
  Clip* clip = nullptr;
};
template <class Gradient>
void dense_norm(const DenseNorm<Gradient>& arguments, Stream stream);

// ---- Updates ----------------------------------------------------------------------------------

/// all: every weight decays, as the method asks. selected: only weights on the mask; without weight
/// decay the same, and only sectors with selected elements are touched.
enum class Decay { all, selected };
/// replace: m becomes the payload on the mask and 0 elsewhere. keep: it is left for write_back.
enum class MomentUpdate { replace, keep };

/// Scatter and AdamS with the second moment rebuilt from old moment and payload.
template <class Sent>
struct ScatterAdamS {
  Range range = {};
  MaskView mask = {};
  const std::uint32_t* previous_mask = nullptr;  ///< of all; where m is not 0; Decay::selected only
  const Sent* payload = nullptr;                 ///< of all selected: averaged moments
  float* moment = nullptr;                       ///< of all
  float* weights = nullptr;                      ///< of the range
  Bf16* copy = nullptr;                          ///< of the range, or none: weights rounded
  float* sent_weights = nullptr;                 ///< of all selected, or none: the second payload
  const Clip* clip = nullptr;                    ///< none: no clipping
  Coefficients<float> coefficients = {};
  Decay decay = Decay::all;
  MomentUpdate moment_update = MomentUpdate::replace;
};
template <class Sent>
void scatter_adams(const ScatterAdamS<Sent>& arguments, Stream stream);

/// The replica of the distributed optimizer: updated weights on the mask, decay off it, and the
/// moment's replacement on every rank.
template <class Sent>
struct WriteBack {
  Range range = {};
  MaskView mask = {};
  const float* updated = nullptr;  ///< of all selected: the second payload
  const Sent* payload = nullptr;   ///< of all selected: averaged moments
  float* moment = nullptr;         ///< of all, or none: left alone
  float* replica = nullptr;        ///< of the range
  Bf16* copy = nullptr;            ///< of the range, or none
  const Clip* clip = nullptr;
  Coefficients<float> coefficients = {};
};
template <class Sent>
void write_back(const WriteBack<Sent>& arguments, Stream stream);

enum class DenseMethod { adams, adamw };

template <class Gradient>
struct DenseUpdate {
  DenseMethod method = DenseMethod::adams;
  std::size_t elements = 0;
  const Gradient* gradient = nullptr;
  float* moment = nullptr;
  float* second = nullptr;  ///< AdamW only
  float* weights = nullptr;
  Bf16* copy = nullptr;  ///< or none
  const Clip* clip = nullptr;
  Coefficients<float> coefficients = {};
};
template <class Gradient>
void dense_update(const DenseUpdate<Gradient>& arguments, Stream stream);

// ---- Quantisation -----------------------------------------------------------------------------

/// Elements that share a scale.
inline constexpr std::size_t kQuantBlock = 256;
constexpr std::size_t scales_of(std::size_t elements) {
  return (elements + kQuantBlock - 1) / kQuantBlock;
}

/// int8: one code per byte. int4: two per byte, the lower half first.
enum class Code { int8, int4 };
constexpr std::size_t code_bytes(Code code, std::size_t elements) {
  return code == Code::int8 ? elements : (elements + 1) / 2;
}

/// scale = largest magnitude of a block / 127 (int8) or 7 (int4); code = value / scale, rounded to
/// even. A block with a value that is not finite gets scale NaN: all of it comes back as NaN.
template <class Value>
struct Quantise {
  Code code = Code::int8;
  const Value* values = nullptr;
  std::size_t elements = 0;
  std::uint8_t* codes = nullptr;  ///< code_bytes(code, elements)
  float* scales = nullptr;        ///< scales_of(elements)
};
template <class Value>
void quantise(const Quantise<Value>& arguments, Stream stream);

/// values = factor x the sum over `count` contributions of code x scale, added in their order.
/// Contribution i has its codes at i x code_stride bytes and its scales at i x scale_stride.
/// count = 1 dequantises; factor 1 / count averages.
template <class Value>
struct Dequantise {
  Code code = Code::int8;
  const std::uint8_t* codes = nullptr;
  const float* scales = nullptr;
  std::size_t count = 1;
  std::size_t code_stride = 0;
  std::size_t scale_stride = 0;
  std::size_t elements = 0;
  float factor = 1;
  Value* values = nullptr;
};
template <class Value>
void dequantise(const Dequantise<Value>& arguments, Stream stream);

// ---- Memory and device ------------------------------------------------------------------------

/// Why there is no device to run on, or empty.
std::string missing_device();
/// Name, compute capability, multiprocessors.
std::string device_name();
void* device_allocate(std::size_t bytes);
void device_free(void* pointer) noexcept;
void copy_to_device(void* device, const void* host, std::size_t bytes, Stream stream);
void copy_to_host(void* host, const void* device, std::size_t bytes, Stream stream);
/// Waits for everything on the stream and reports what went wrong on it.
void wait_for(Stream stream);

}  // namespace scapesim::kernels
