// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/selection.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <type_traits>

#include "sim/base/check.hpp"

namespace scapesim::reference {

namespace {

/// Unsigned integers in the order of magnitudes.
template <class T>
auto magnitude(T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(value) & (std::numeric_limits<Bits>::max() >> 1U);
}

}  // namespace

std::size_t total_of(std::span<const Tensor> tensors) {
  std::size_t total = 0;
  for (const Tensor& tensor : tensors) total += tensor.numel;
  return total;
}

Ownership ownership(std::span<const Tensor> tensors, int ranks, Owners owners) {
  const auto parts = static_cast<std::size_t>(ranks);
  const std::size_t share = (total_of(tensors) + parts - 1) / parts;
  Ownership result(parts);
  std::size_t begin = 0;
  for (const Tensor& tensor : tensors) {
    const std::size_t end = begin + tensor.numel;
    while (begin < end) {
      const std::size_t owner = begin / share;
      const std::size_t cut = owners == Owners::even ? std::min(end, (owner + 1) * share) : end;
      result[owner].push_back({begin, cut - begin, tensor.always_selected});
      begin = cut;
    }
  }
  return result;
}

std::size_t size_of(std::span<const Piece> part) {
  std::size_t size = 0;
  for (const Piece& piece : part) size += piece.numel;
  return size;
}

std::size_t begin_of(std::span<const Piece> part) { return part.empty() ? 0 : part[0].begin; }

std::size_t top_count(const Piece& piece, double density) {
  if (piece.always_selected) return piece.numel;
  const auto share = static_cast<std::size_t>(density * static_cast<double>(piece.numel));
  return std::max<std::size_t>(1, share);
}

template <class T>
void mark_top(std::span<const T> scores, std::size_t k, std::span<std::uint8_t> mask) {
  SCAPESIM_CHECK(k <= scores.size() && mask.size() == scores.size(), "{} of {}", k, scores.size());
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto last = order.begin() + static_cast<std::ptrdiff_t>(k);
  std::nth_element(order.begin(), last, order.end(), [&](std::size_t a, std::size_t b) {
    const auto left = magnitude(scores[a]);
    const auto right = magnitude(scores[b]);
    return left != right ? left > right : a < b;
  });
  for (auto index = order.begin(); index != last; ++index) mask[*index] = 1;
}

template <class T>
Mask mask_of_part(std::span<const Piece> part, std::span<const T> scores, double density) {
  SCAPESIM_CHECK(size_of(part) == scores.size(), "{} scores", scores.size());
  Mask mask(scores.size());
  for (const Piece& piece : part) {
    const std::size_t begin = piece.begin - begin_of(part);
    mark_top(scores.subspan(begin, piece.numel), top_count(piece, density),
             std::span(mask).subspan(begin, piece.numel));
  }
  return mask;
}

std::vector<std::uint8_t> wire_of(std::span<const std::uint8_t> mask, MaskFormat format) {
  if (format == MaskFormat::byte) return {mask.begin(), mask.end()};
  std::vector<std::uint8_t> wire((mask.size() + 7) / 8);
  for (std::size_t i = 0; i < mask.size(); ++i)
    wire[i / 8] = static_cast<std::uint8_t>(wire[i / 8] | (mask[i] << (i % 8)));
  return wire;
}

Mask mask_of_wire(std::span<const std::uint8_t> wire, std::size_t elements, MaskFormat format) {
  Mask mask(elements);
  for (std::size_t i = 0; i < elements; ++i)
    mask[i] = format == MaskFormat::byte ? wire[i]
                                         : static_cast<std::uint8_t>((wire[i / 8] >> (i % 8)) & 1);
  return mask;
}

std::size_t count(std::span<const std::uint8_t> mask) {
  return static_cast<std::size_t>(std::ranges::count(mask, 1));
}

double density_at(double density, int warmup, int step) {
  return step >= warmup ? density : std::pow(density, static_cast<double>(step) / warmup);
}

template void mark_top(std::span<const float>, std::size_t, std::span<std::uint8_t>);
template void mark_top(std::span<const double>, std::size_t, std::span<std::uint8_t>);
template Mask mask_of_part(std::span<const Piece>, std::span<const float>, double);
template Mask mask_of_part(std::span<const Piece>, std::span<const double>, double);

}  // namespace scapesim::reference
