// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/check/check.hpp"

namespace scapesim::kernels {

namespace {

/// A part cut into pieces of random size, tiny ones among them.
std::vector<reference::Piece> random_pieces(const Setup& setup, Random& random) {
  std::vector<reference::Piece> pieces;
  for (std::size_t begin = 0; begin < setup.elements;) {
    const std::size_t longest = random.below(3) == 0 ? 9 : setup.elements;
    const std::size_t numel =
        std::min<std::size_t>(1 + random.below(longest), setup.elements - begin);
    pieces.push_back({.begin = begin, .numel = numel, .always_selected = random.below(4) == 0});
    begin += numel;
  }
  return pieces;
}

template <class Score>
void check_selection(const Setup& setup, const std::vector<reference::Piece>& pieces,
                     std::uint32_t chunk_elements, std::size_t bins, Random& random,
                     Comparisons& results) {
  const auto scores = stored<Score>(values_of(setup, setup.elements, random));
  const auto mask = reference::mask_of_part<float>(pieces, floats(scores), setup.density);
  std::vector<SelectPiece> table;
  for (const auto& piece : pieces)
    table.push_back({piece.begin, piece.numel, reference::top_count(piece, setup.density)});
  const auto chunks = select_chunks(table, chunk_elements);

  const Array<Score> device_scores(scores, setup.shift);
  const Array<SelectPiece> device_pieces(table);
  const Array<SelectChunk> device_chunks(chunks);
  Array<std::uint32_t> histograms(table.size() * bins);
  Array<SelectState> states(table.size());
  Array<std::uint32_t> chunk_ties(chunks.size());
  Array<std::uint32_t> words(words_of(setup.elements));
  Array<std::uint32_t> tile_counts(tiles_of(setup.elements));
  const Select<Score> select{.scores = device_scores.data(),
                             .elements = setup.elements,
                             .pieces = device_pieces.data(),
                             .piece_count = table.size(),
                             .chunks = device_chunks.data(),
                             .chunk_count = chunks.size(),
                             .histograms = histograms.data(),
                             .states = states.data(),
                             .chunk_ties = chunk_ties.data(),
                             .mask = words.data(),
                             .tile_counts = tile_counts.data()};
  select_threshold(select, nullptr);
  select_mask(select, nullptr);
  results.exact("mask", words_from(mask), words.values());
  results.exact("tile counts", tile_counts_from(mask), tile_counts.values());
}

}  // namespace

void check_select(const Setup& setup, Comparisons& results) {
  Random random(setup.seed);
  const std::vector<reference::Piece> one{{.begin = 0, .numel = setup.elements}};
  check_selection<float>(setup, one, kSelectChunk, kSelectBins, random, results);
  // Chunks far below the real size, so that pieces have several.
  check_selection<float>(setup, random_pieces(setup, random), 192, kSelectBins, random, results);
}

void check_rounded_select(const Setup& setup, Comparisons& results) {
  Random random(setup.seed);
  check_selection<Bf16>(setup, {{.begin = 0, .numel = setup.elements}}, 1024, kRoundedSelectBins,
                        random, results);
}

}  // namespace scapesim::kernels
