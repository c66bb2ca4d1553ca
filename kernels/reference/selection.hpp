// SPDX-License-Identifier: Apache-2.0
// Who owns which elements, which of them a mask selects, and masks as they travel. The kernels'
// own statement of the rules; the simulator's stands in sim/strategy, tests hold the two together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace scapesim::reference {

/// A parameter tensor of the flat buffer; norm weights and biases are always selected whole.
struct Tensor {
  std::size_t numel = 0;
  bool always_selected = false;
};

/// Consecutive elements of one tensor that one rank owns.
struct Piece {
  std::size_t begin = 0;  ///< in the flat buffer
  std::size_t numel = 0;
  bool always_selected = false;
};

/// Parts of all ranks in rank order; the pieces of a part follow each other; a part may be empty.
using Ownership = std::vector<std::vector<Piece>>;

/// even: N/P elements each, rounded up; tensor: whole tensors.
enum class Owners { even, tensor };

/// packed: 1 bit per element, lowest bit first; byte: 1 byte.
enum class MaskFormat { packed, byte };

/// One byte per element, 0 or 1.
using Mask = std::vector<std::uint8_t>;

std::size_t total_of(std::span<const Tensor> tensors);

/// [M40] even: part i is elements [i c, (i+1) c), c = ceil(N/P). tensor: a tensor's owner is the
/// rank whose even part holds its first element.
Ownership ownership(std::span<const Tensor> tensors, int ranks, Owners owners);

/// Elements of a part, and its first element (0 when empty).
std::size_t size_of(std::span<const Piece> part);
std::size_t begin_of(std::span<const Piece> part);

/// [M41] Elements selected of a piece: max(1, floor(d numel)), or all.
std::size_t top_count(const Piece& piece, double density);

/// Marks exactly k scores: the largest magnitudes, among equals the lowest index. Magnitudes are
/// compared as bit patterns without the sign: NaN above infinity above every finite value, so an
/// owner selects first what is not finite.
template <class T>
void mark_top(std::span<const T> scores, std::size_t k, std::span<std::uint8_t> mask);

/// Mask of a part from the scores of that part alone.
template <class T>
Mask mask_of_part(std::span<const Piece> part, std::span<const T> scores, double density);

/// A mask as it travels, and back; packed bits beyond the last element are zero.
std::vector<std::uint8_t> wire_of(std::span<const std::uint8_t> mask, MaskFormat format);
Mask mask_of_wire(std::span<const std::uint8_t> wire, std::size_t elements, MaskFormat format);

std::size_t count(std::span<const std::uint8_t> mask);

/// [M46] Density of step t (from 0): d^(t/W) for t < W, then d.
double density_at(double density, int warmup, int step);

}  // namespace scapesim::reference
