// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/check/check.hpp"

namespace scapesim::kernels {

namespace {

/// Parts that cover all elements; some are empty.
std::vector<MaskPart> random_parts(std::size_t elements, Random& random) {
  std::vector<MaskPart> parts;
  std::size_t begin = 0;
  const std::size_t count = 1 + random.below(6);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t left = elements - begin;
    const std::size_t numel =
        i + 1 == count ? left : (random.below(4) == 0 ? 0 : random.below(left + 1));
    parts.push_back({begin, numel});
    begin += numel;
  }
  return parts;
}

void check_stitch(const Setup& setup, Random& random, Comparisons& results) {
  const auto mask = random_mask(setup, random);
  const auto parts = random_parts(setup.elements, random);
  std::size_t padded = 0;
  for (const MaskPart& part : parts) padded = std::max<std::size_t>(padded, (part.numel + 7) / 8);
  std::vector<std::uint8_t> wire;
  for (const MaskPart& part : parts) {
    auto own = reference::wire_of(std::span(mask).subspan(part.begin, part.numel),
                                  reference::MaskFormat::packed);
    own.resize(padded);
    wire.insert(wire.end(), own.begin(), own.end());
  }
  const Array<std::uint8_t> device_wire(wire, setup.shift);
  const Array<MaskPart> device_parts(parts);
  Array<std::uint32_t> words(words_of(setup.elements));
  Array<std::uint32_t> counts(tiles_of(setup.elements));
  stitch_masks({.wire = device_wire.data(),
                .padded_bytes = padded,
                .parts = device_parts.data(),
                .part_count = parts.size(),
                .elements = setup.elements,
                .words = words.data(),
                .tile_counts = counts.data()},
               nullptr);
  results.exact("stitched mask", words_from(mask), words.values());
  results.exact("tile counts", tile_counts_from(mask), counts.values());

  Array<std::uint64_t> scratch(scan_scratch(counts.size()));
  Array<std::uint64_t> offsets(counts.size() + 1);
  scan_tiles({.tile_counts = counts.data(),
              .tiles = counts.size(),
              .scratch = scratch.data(),
              .offsets = offsets.data()},
             nullptr);
  results.exact("tile offsets", offsets_from(mask), offsets.values());
}

void check_or(const Setup& setup, Random& random, Comparisons& results) {
  const std::size_t ranks = 1 + random.below(4);
  const std::size_t stride = words_of(setup.elements) + random.below(3);
  std::vector<std::uint32_t> masks(ranks * stride, 0xffffffffU);
  reference::Mask together(setup.elements);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto mask = random_mask(setup, random);
    for (std::size_t i = 0; i < mask.size(); ++i) together[i] |= mask[i];
    auto words = words_from(mask);
    if (setup.elements % 32 != 0) words.back() |= 0xffffffffU << setup.elements % 32;  // no bits
    std::ranges::copy(words, masks.begin() + static_cast<std::ptrdiff_t>(rank * stride));
  }
  const Array<std::uint32_t> device_masks(masks);
  Array<std::uint32_t> words(words_of(setup.elements));
  Array<std::uint32_t> counts(tiles_of(setup.elements));
  or_masks({.masks = device_masks.data(),
            .count = ranks,
            .stride = stride,
            .elements = setup.elements,
            .words = words.data(),
            .tile_counts = counts.data()},
           nullptr);
  results.exact("OR", words_from(together), words.values());
  results.exact("tile counts of OR", tile_counts_from(together), counts.values());
}

/// More tiles than one block of the scan sums, and sums beyond 32 bits.
void check_scan(Random& random, Comparisons& results) {
  std::vector<std::uint32_t> counts(3 * kScanChunk + 5);
  for (auto& count : counts) count = static_cast<std::uint32_t>(random.below(1U << 20U));
  std::vector<std::uint64_t> expected{0};
  for (const std::uint32_t count : counts) expected.push_back(expected.back() + count);
  const Array<std::uint32_t> device_counts(counts);
  Array<std::uint64_t> scratch(scan_scratch(counts.size()));
  Array<std::uint64_t> offsets(counts.size() + 1);
  scan_tiles({.tile_counts = device_counts.data(),
              .tiles = counts.size(),
              .scratch = scratch.data(),
              .offsets = offsets.data()},
             nullptr);
  results.exact("long scan", expected, offsets.values());
}

}  // namespace

void check_masks(const Setup& setup, Comparisons& results) {
  Random random(setup.seed);
  check_stitch(setup, random, results);
  check_or(setup, random, results);
  check_scan(random, results);
}

}  // namespace scapesim::kernels
