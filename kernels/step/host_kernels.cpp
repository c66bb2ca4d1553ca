// SPDX-License-Identifier: Apache-2.0
#include "kernels/step/host_kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "kernels/reference/selection.hpp"
#include "sim/base/check.hpp"

namespace scapesim::step {

using kernels::kTile;
using kernels::MaskView;
using kernels::Range;

namespace {

bool selected(const std::uint32_t* words, std::size_t i) {
  return ((words[i / 32] >> (i % 32)) & 1U) != 0;
}

/// Selected elements before position i: its place in the payload.
std::size_t place_of(const MaskView& mask, std::size_t i) {
  std::size_t place = mask.offsets[i / kTile];
  for (std::size_t j = i / kTile * kTile; j < i; ++j) place += selected(mask.words, j) ? 1 : 0;
  return place;
}

/// visit(element, selected, place in the payload) for the elements of a range; the place counts
/// where the element is selected. A mask that is not there yet does not pass for one.
template <class Visit>
void for_each(const Range& range, const MaskView& mask, Visit visit) {
  if (range.count == 0) return;
  const std::uint64_t all = mask.offsets[kernels::tiles_of(mask.elements)];
  std::size_t place = place_of(mask, range.first);
  SCAPESIM_CHECK(all <= mask.elements && place <= all, "{} selected of {}", all, mask.elements);
  for (std::size_t i = range.first; i < range.first + range.count; ++i) {
    const bool on_mask = selected(mask.words, i);
    SCAPESIM_CHECK(!on_mask || place < all, "more than the {} selected", all);
    visit(i, on_mask, place);
    place += on_mask ? 1 : 0;
  }
}

void count_tiles(const std::uint32_t* words, std::size_t elements, std::uint32_t* counts) {
  const std::size_t all_words = kernels::words_of(elements);
  for (std::size_t tile = 0; tile < kernels::tiles_of(elements); ++tile) {
    counts[tile] = 0;
    const std::size_t end = std::min(all_words, (tile + 1) * kTile / 32);
    for (std::size_t w = tile * kTile / 32; w < end; ++w)
      counts[tile] += static_cast<std::uint32_t>(std::popcount(words[w]));
  }
}

/// Moment and gradient of an element after the clip, from its averaged moment.
struct Clipped {
  float moment;
  float gradient;
};
Clipped clipped(const kernels::Coefficients<float>& c, const kernels::Clip* clip, float before,
                float averaged) {
  Clipped now{averaged, reference::gradient_behind(c, before, averaged)};
  if (clip == nullptr || clip->factor == 1) return now;
  now.gradient *= clip->factor;
  now.moment = reference::moment(c, before, now.gradient);
  return now;
}

}  // namespace

void on_host(const Accumulate& a) {
  const auto pass = [&](std::size_t i, bool on_mask, std::size_t place) {
    float& residual = a.residual[i - a.range.first];
    const float local = reference::moment(a.coefficients, a.moment[i], a.gradient[i]) + residual;
    residual = on_mask ? 0.0F : local;
    if (on_mask) a.payload[place] = local;
    if (a.scores != nullptr && i >= a.owned.first && i < a.owned.first + a.owned.count)
      a.scores[i - a.owned.first] = local;
  };
  if (a.mask.words != nullptr) {
    for_each(a.range, a.mask, pass);
    return;
  }
  for (std::size_t i = a.range.first; i < a.range.first + a.range.count; ++i) pass(i, false, 0);
}

void on_host(const Gather& a) {
  for_each(a.range, a.mask, [&](std::size_t i, bool on_mask, std::size_t place) {
    if (!on_mask) return;
    float& value = a.values[i - a.range.first];
    a.payload[place] = value;
    if (a.indices != nullptr) a.indices[place] = static_cast<std::uint32_t>(i);
    if (a.gathered == kernels::Gathered::cleared) value = 0;
  });
}

void on_host(const Select& a) {
  reference::Mask mask(a.elements);
  for (const auto& piece : std::span(a.pieces, a.piece_count))
    reference::mark_top(std::span(a.scores + piece.begin, piece.numel), piece.wanted,
                        std::span(mask).subspan(piece.begin, piece.numel));
  std::fill(a.mask, a.mask + kernels::words_of(a.elements), 0U);
  for (std::size_t i = 0; i < a.elements; ++i)
    a.mask[i / 32] |= static_cast<std::uint32_t>(mask[i]) << (i % 32);
  count_tiles(a.mask, a.elements, a.tile_counts);
}

void on_host(const kernels::Stitch& a) {
  std::fill(a.words, a.words + kernels::words_of(a.elements), 0U);
  for (const auto& part : std::span(a.parts, a.part_count))
    SCAPESIM_CHECK(part.begin <= a.elements && part.numel <= a.elements - part.begin,
                   "part {} + {} of {}", part.begin, part.numel, a.elements);
  for (std::size_t owner = 0; owner < a.part_count; ++owner)
    for (std::size_t j = 0; j < a.parts[owner].numel; ++j) {
      const std::uint8_t byte = a.wire[owner * a.padded_bytes + j / 8];
      const std::size_t i = a.parts[owner].begin + j;
      a.words[i / 32] |= ((static_cast<std::uint32_t>(byte) >> (j % 8)) & 1U) << (i % 32);
    }
  count_tiles(a.words, a.elements, a.tile_counts);
}

void on_host(const kernels::ScanTiles& a) {
  std::uint64_t sum = 0;
  for (std::size_t tile = 0; tile < a.tiles; ++tile) {
    a.offsets[tile] = sum;
    sum += a.tile_counts[tile];
  }
  a.offsets[a.tiles] = sum;
}

void on_host(const SelectedNorm& a) {
  double squares = 0;
  for_each({0, a.mask.elements}, a.mask, [&](std::size_t i, bool on_mask, std::size_t place) {
    if (!on_mask) return;
    const auto g = static_cast<double>(
        reference::gradient_behind(a.coefficients, a.moment[i], a.payload[place]));
    squares += g * g;
  });
  const double norm = std::sqrt(squares);
  *a.clip = {norm, norm > a.limit ? static_cast<float>(a.limit / norm) : 1.0F};
}

void on_host(const ScatterAdamS& a) {
  SCAPESIM_CHECK(a.decay == kernels::Decay::all, "only the method's weight decay");
  const auto& c = a.coefficients;
  for_each(a.range, a.mask, [&](std::size_t i, bool on_mask, std::size_t place) {
    float& before = a.moment[i];
    float& w = a.weights[i - a.range.first];
    const Clipped now =
        on_mask ? clipped(c, a.clip, before, a.payload[place]) : Clipped{0.0F, 0.0F};
    w = reference::weight(c, w, now.moment, reference::adams_second(c, before, now.gradient));
    if (on_mask && a.sent_weights != nullptr) a.sent_weights[place] = w;
    if (a.copy != nullptr) a.copy[i - a.range.first] = reference::to_bf16(w);
    if (a.moment_update == kernels::MomentUpdate::replace) before = now.moment;
  });
}

void on_host(const WriteBack& a) {
  const auto& c = a.coefficients;
  for_each(a.range, a.mask, [&](std::size_t i, bool on_mask, std::size_t place) {
    float& w = a.replica[i - a.range.first];
    w = on_mask ? a.updated[place] : c.kept * w;
    if (a.copy != nullptr) a.copy[i - a.range.first] = reference::to_bf16(w);
    if (a.moment == nullptr) return;
    a.moment[i] = on_mask ? clipped(c, a.clip, a.moment[i], a.payload[place]).moment : 0.0F;
  });
}

}  // namespace scapesim::step
