// SPDX-License-Identifier: Apache-2.0
// [M40] owners, [M41] exactly k, [M42] masks on the wire, [M46] warm-up; ties and what is not
// finite.
#include "kernels/reference/selection.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/check.hpp"
#include "tests/unit/kernels/support.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Mask marked(const std::vector<float>& scores, std::size_t k) {
  Mask mask(scores.size());
  mark_top<float>(scores, k, mask);
  return mask;
}

}  // namespace

TEST_CASE("[M40] even owners cut tensors at multiples of ceil(N/P)") {
  const std::vector<Tensor> tensors = {{5, false}, {2, true}, {4, false}};  // 11 over 3: 4, 4, 3
  const Ownership parts = ownership(tensors, 3, Owners::even);
  REQUIRE(parts[0].size() == 1);
  CHECK(size_of(parts[0]) == 4);
  REQUIRE(parts[1].size() == 3);
  CHECK(parts[1][0].begin == 4);
  CHECK(parts[1][0].numel == 1);
  CHECK(parts[1][1].always_selected);
  CHECK(parts[1][2].numel == 1);
  CHECK(begin_of(parts[2]) == 8);
  CHECK(size_of(parts[2]) == 3);
}

TEST_CASE("[M40] owners of whole tensors take those that begin in their even part") {
  const std::vector<Tensor> tensors = {{5, false}, {2, true}, {4, false}};
  const Ownership parts = ownership(tensors, 3, Owners::tensor);
  CHECK(size_of(parts[0]) == 5);
  CHECK(size_of(parts[1]) == 6);
  CHECK(parts[2].empty());
}

TEST_CASE("[M40] with more ranks than elements the last ranks own nothing") {
  for (const Owners owners : {Owners::even, Owners::tensor}) {
    const Ownership parts = ownership(std::vector<Tensor>{{2, false}, {1, true}}, 8, owners);
    std::size_t owned = 0;
    for (const auto& part : parts) owned += size_of(part);
    CHECK(owned == 3);
    CHECK(parts[7].empty());
  }
}

TEST_CASE("[M41] exactly k are selected, the largest magnitudes, whatever the length") {
  Random random(3);
  for (const std::size_t n : {1U, 31U, 32U, 33U, 97U, 2047U, 2048U, 2049U})
    for (const double density : {0.001, 0.01, 0.1, 0.5, 1.0}) {
      const std::size_t k = top_count({0, n, false}, density);
      const std::vector<float> scores = random_values<float>(n, random);
      const Mask mask = marked(scores, k);
      REQUIRE(count(mask) == k);
      float least_in = kInfinity;
      float most_out = 0;
      for (std::size_t i = 0; i < n; ++i) {
        const float score = std::abs(scores[i]);
        if (mask[i])
          least_in = std::min(least_in, score);
        else
          most_out = std::max(most_out, score);
      }
      CHECK(least_in >= most_out);
    }
}

TEST_CASE("[M41] of equal magnitudes the lowest indices are taken, whatever their sign") {
  CHECK(marked({1, -2, 2, 1, -1, 1}, 4) == Mask{1, 1, 1, 1, 0, 0});
  CHECK(marked(std::vector<float>(33, -0.5F), 32)[32] == 0);
  CHECK(marked({0.0F, -0.0F, 0.0F}, 2) == Mask{1, 1, 0});
  CHECK(marked({}, 0).empty());
}

TEST_CASE("[M41] many ties: exactly k, and no tie at a higher index is taken before a lower") {
  Random random(4);
  for (int round = 0; round < 50; ++round) {
    std::vector<float> scores(1 + random.below(300));
    for (float& score : scores) score = static_cast<float>(random.below(3)) - 1.0F;
    const std::size_t k = random.below(scores.size() + 1);
    const Mask mask = marked(scores, k);
    REQUIRE(count(mask) == k);
    for (std::size_t i = 1; i < scores.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (std::abs(scores[i]) == std::abs(scores[j])) REQUIRE(mask[j] >= mask[i]);
  }
}

TEST_CASE("[M41] NaN ranks above infinity, infinity above every finite value") {
  const std::vector<float> scores = {3e38F, kInfinity, 1, -kNan, -kInfinity, kNan};
  CHECK(marked(scores, 2) == Mask{0, 0, 0, 1, 0, 1});
  CHECK(marked(scores, 4) == Mask{0, 1, 0, 1, 1, 1});
  CHECK(marked(scores, 5) == Mask{1, 1, 0, 1, 1, 1});
}

TEST_CASE("[M41] subnormal numbers are told apart") {
  CHECK(marked({1e-45F, 3e-45F, 0, -2.8e-45F}, 2) == Mask{0, 1, 0, 1});
}

TEST_CASE("[M41] norms and biases are selected whole, other pieces one element at least") {
  const std::vector<Tensor> tensors = {{50, false}, {7, true}, {1000, false}};
  const Ownership parts = ownership(tensors, 1, Owners::even);
  Random random(5);
  const std::vector<double> scores = random_values<double>(1057, random);
  const Mask mask = mask_of_part<double>(parts[0], scores, 0.01);
  CHECK(count(std::span(mask).first(50)) == 1);
  CHECK(count(std::span(mask).subspan(50, 7)) == 7);
  CHECK(count(std::span(mask).last(1000)) == 10);
}

TEST_CASE("[M42] a mask survives the wire, and packed bits beyond its end are zero") {
  Random random(6);
  for (const std::size_t n : {0U, 1U, 7U, 8U, 9U, 31U, 32U, 33U, 997U}) {
    Mask mask(n);
    for (auto& bit : mask) bit = static_cast<std::uint8_t>(random.below(2));
    for (const MaskFormat format : {MaskFormat::packed, MaskFormat::byte}) {
      const std::vector<std::uint8_t> wire = wire_of(mask, format);
      CHECK(wire.size() == (format == MaskFormat::byte ? n : (n + 7) / 8));
      CHECK(mask_of_wire(wire, n, format) == mask);
    }
  }
  CHECK(wire_of(Mask(9, 1), MaskFormat::packed) == std::vector<std::uint8_t>{0xff, 0x01});
  CHECK(wire_of(Mask{1, 0, 0, 1}, MaskFormat::packed) == std::vector<std::uint8_t>{0b1001});
}

TEST_CASE("[M46] density falls geometrically from 1") {
  CHECK(density_at(0.01, 4, 0) == 1);
  CHECK(density_at(0.01, 4, 2) == Approx(0.1).epsilon(1e-14));
  CHECK(density_at(0.01, 4, 4) == 0.01);
  CHECK(density_at(0.01, 0, 0) == 0.01);
}
