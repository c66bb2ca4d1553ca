// SPDX-License-Identifier: Apache-2.0
// What kernels do with numbers that are none: NaN is largest, then infinity; a norm that is NaN
// clips nothing; a block that holds one comes back as NaN.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "kernels/check/check.hpp"

using namespace scapesim;
using namespace scapesim::kernels;

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Mask words that select `wanted` of the scores.
template <class Score>
std::uint32_t selected(const std::vector<float>& values, std::uint64_t wanted) {
  const bool rounded = std::is_same_v<Score, Bf16>;
  const std::vector<SelectPiece> pieces{{0, values.size(), wanted}};
  const auto chunks = select_chunks(pieces, kSelectChunk);
  const Array<Score> scores(stored<Score>(values));
  const Array<SelectPiece> device_pieces(pieces);
  const Array<SelectChunk> device_chunks(chunks);
  Array<std::uint32_t> histograms(rounded ? kRoundedSelectBins : kSelectBins);
  Array<SelectState> states(1);
  Array<std::uint32_t> ties(1), mask(1), counts(1);
  const Select<Score> select{.scores = scores.data(),
                             .elements = values.size(),
                             .pieces = device_pieces.data(),
                             .piece_count = 1,
                             .chunks = device_chunks.data(),
                             .chunk_count = 1,
                             .histograms = histograms.data(),
                             .states = states.data(),
                             .chunk_ties = ties.data(),
                             .mask = mask.data(),
                             .tile_counts = counts.data()};
  select_threshold(select, nullptr);
  select_mask(select, nullptr);
  return mask.values()[0];
}

Clip clip_of(const std::vector<float>& gradient, double limit) {
  const Array<float> device(gradient);
  Array<double> partial(kNormBlocks);
  Array<Clip> clip(1);
  dense_norm<float>({.gradient = device.data(),
                     .elements = gradient.size(),
                     .limit = limit,
                     .partial = partial.data(),
                     .clip = clip.data()},
                    nullptr);
  return clip.values()[0];
}

}  // namespace

TEST_CASE(
    "selection takes NaN first, then infinity, then the largest, the lowest index of equals") {
  const std::vector<float> scores{1, -kInfinity, 5, kNaN, -5, kInfinity, -kNaN, 0, -0.0F};
  const std::uint32_t expected[] = {0b000001000, 0b001001000, 0b001001010, 0b001101010, 0b001101110,
                                    0b001111110, 0b001111111, 0b011111111, 0b111111111};
  for (std::uint64_t wanted = 1; wanted <= scores.size(); ++wanted) {
    CHECK(selected<float>(scores, wanted) == expected[wanted - 1]);
    CHECK(selected<Bf16>(scores, wanted) == expected[wanted - 1]);
  }
}

TEST_CASE("scores that round to the same bf16 are ties there, and apart as floats") {
  const std::vector<float> scores{1.0F, 1.0001F, 1.0002F};
  CHECK(selected<float>(scores, 1) == 0b100);
  CHECK(selected<Bf16>(scores, 1) == 0b001);
}

TEST_CASE("a norm of NaN clips nothing, one of infinity to nothing") {
  const Clip of_nan = clip_of({1, kNaN, 2}, 1);
  CHECK(std::isnan(of_nan.norm));
  CHECK(of_nan.factor == 1);
  CHECK(of_nan.fired == 0);
  const Clip of_infinity = clip_of({1, kInfinity, 2}, 1);
  CHECK(of_infinity.norm == kInfinity);
  CHECK(of_infinity.factor == 0);
  CHECK(of_infinity.fired == 1);
  CHECK(clip_of({3, 4}, 5).fired == 0);
  CHECK(clip_of({3, 4}, kNoLimit).factor == 1);
}

TEST_CASE("a block with a number that is none comes back as NaN, its neighbours as they are") {
  for (const float bad : {kNaN, kInfinity, -kInfinity}) {
    std::vector<float> values(2 * kQuantBlock, 1.0F);
    values[3] = bad;
    const Array<float> device(values);
    Array<std::uint8_t> codes(values.size());
    Array<float> scales(2);
    Array<float> back(values.size());
    quantise<float>({.values = device.data(),
                     .elements = values.size(),
                     .codes = codes.data(),
                     .scales = scales.data()},
                    nullptr);
    dequantise<float>({.codes = codes.data(),
                       .scales = scales.data(),
                       .elements = values.size(),
                       .values = back.data()},
                      nullptr);
    const auto got = back.values();
    for (std::size_t i = 0; i < kQuantBlock; ++i) CHECK(std::isnan(got[i]));
    for (std::size_t i = kQuantBlock; i < got.size(); ++i) CHECK(got[i] == Approx(1).epsilon(1e-6));
  }
}

TEST_CASE("decay of selected weights needs the mask of the step before") {
  ScatterAdamS<float> arguments;
  arguments.decay = Decay::selected;
  CHECK_THROWS_AS(scatter_adams(arguments, nullptr), std::invalid_argument);
}

TEST_CASE("chunks cover every piece once, in order, and share no mask word within a piece") {
  Random random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<SelectPiece> pieces;
    std::uint64_t begin = 0;
    for (std::uint64_t i = 0; i < 1 + random.below(6); ++i) {
      pieces.push_back({begin, 1 + random.below(300), 1});
      begin += pieces.back().numel;
    }
    std::uint64_t next = 0;
    for (const SelectChunk& chunk : select_chunks(pieces, 64)) {
      const SelectPiece& piece = pieces[chunk.piece];
      REQUIRE(chunk.begin == next);
      REQUIRE((chunk.begin == piece.begin) == (chunk.earlier == 0));
      REQUIRE((chunk.begin == piece.begin || chunk.begin % 32 == 0));
      REQUIRE(chunk.begin + chunk.count <= piece.begin + piece.numel);
      next += chunk.count;
    }
    REQUIRE(next == begin);
  }
  CHECK_THROWS_AS(select_chunks({}, 33), std::invalid_argument);
  const std::vector<SelectPiece> huge{{0, std::uint64_t{1} << 32U, 1}};
  CHECK_THROWS_AS(select_chunks(huge, 64), std::length_error);
}
