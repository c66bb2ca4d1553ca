// SPDX-License-Identifier: Apache-2.0
// [M40] owners, [M41] selected elements, [M42] masks, [M45] fill-in, [M46] density warm-up.
#include "sim/strategy/selection.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/random.hpp"
#include "tests/support/models.hpp"

using namespace scapesim;
using namespace scapesim::test;
using spec::MaskFormat;
using spec::Owners;
using strategy::Ownership;
using strategy::Piece;
using workload::Tensor;

namespace {

std::int64_t elements_of(const std::vector<Piece>& pieces) {
  std::int64_t sum = 0;
  for (const Piece& piece : pieces) sum += piece.numel;
  return sum;
}

std::vector<Tensor> random_tensors(Random& random) {
  std::vector<Tensor> tensors(1 + random.below(40));
  for (Tensor& tensor : tensors) {
    tensor.numel = static_cast<std::int64_t>(1 + random.below(random.below(2) ? 10 : 100'000));
    tensor.always_selected = random.below(3) == 0;
  }
  return tensors;
}

std::int64_t total_of(const std::vector<Tensor>& tensors) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.numel;
  return sum;
}

std::vector<Tensor> llama_tensors() {
  return workload::tensors_of(workload::workload_of(llama_1_8b(), training_of(1, 2048)));
}

}  // namespace

TEST_CASE("[M40] owners share all elements, each element once, in the order of the tensors") {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Tensor> tensors = random_tensors(random);
    const int ranks = static_cast<int>(1 + random.below(50));
    for (const Owners owners : {Owners::even, Owners::tensor}) {
      const Ownership parts = strategy::ownership(tensors, ranks, owners);
      REQUIRE(parts.size() == static_cast<std::size_t>(ranks));
      std::vector<Piece> pieces;
      for (const auto& part : parts) pieces.insert(pieces.end(), part.begin(), part.end());
      std::size_t piece = 0;
      for (const Tensor& tensor : tensors)
        for (std::int64_t found = 0; found < tensor.numel; ++piece) {
          REQUIRE(piece < pieces.size());
          CHECK(pieces[piece].always_selected == tensor.always_selected);
          found += pieces[piece].numel;
          CHECK(found <= tensor.numel);
        }
      CHECK(piece == pieces.size());
    }
  }
}

TEST_CASE("[M40] even owners have N/P elements each, rounded up, and the last ones what is left") {
  Random random(2);
  for (int round = 0; round < 300; ++round) {
    const std::vector<Tensor> tensors = random_tensors(random);
    const int ranks = static_cast<int>(1 + random.below(50));
    const std::int64_t total = total_of(tensors);
    const std::int64_t share = (total + ranks - 1) / ranks;
    const Ownership parts = strategy::ownership(tensors, ranks, Owners::even);
    CHECK(strategy::largest_part(parts) == share);
    std::int64_t left = total;
    for (const auto& part : parts) {
      CHECK(elements_of(part) == std::min(share, left));
      left -= elements_of(part);
    }
  }
}

TEST_CASE("[M40] owners of whole tensors cut none") {
  const Ownership parts = strategy::ownership(llama_tensors(), 64, Owners::tensor);
  std::size_t pieces = 0;
  for (const auto& part : parts) pieces += part.size();
  CHECK(pieces == llama_tensors().size());
}

TEST_CASE("[M41] a mask takes floor(d numel) of each tensor, one at least, and norms whole") {
  const Ownership parts = {{{1000, false}, {50, false}}, {}, {{7, true}, {199, false}}};
  CHECK(strategy::selected(parts, 0.01) == 10 + 1 + 7 + 1);
  CHECK(strategy::selected(parts, 0.1) == 100 + 5 + 7 + 19);
  CHECK(strategy::selected(parts, 1) == 1000 + 50 + 7 + 199);
}

TEST_CASE("[M41] the selected share tends to the density as tensors grow") {
  for (const double density : {0.5, 0.1, 0.01, 0.001}) {
    double excess_before = 1;
    for (const spec::Model& model : {llama_500m(), llama_1_8b(), llama_13b(), llama_70b()}) {
      const workload::Workload work = workload::workload_of(model, training_of(1, 1024));
      const auto n = static_cast<double>(work.parameters);
      const double norms = (2.0 * model.layers + 1) * model.hidden;
      const Ownership parts = strategy::ownership(workload::tensors_of(work), 64, Owners::even);
      double pieces = 0;
      for (const auto& part : parts) pieces += static_cast<double>(part.size());
      const auto taken = static_cast<double>(strategy::selected(parts, density));
      CHECK(taken >= density * n - pieces);
      CHECK(taken <= density * n + norms + pieces);
      const double excess = taken / (density * n) - 1;
      CHECK(excess < excess_before);
      excess_before = excess;
    }
    // What is left of Llama-70B: 161 norms of 8192 among 69e9 elements, 1.9e-5.
    CHECK(excess_before < 2e-5 / density);
  }
}

TEST_CASE("[M41] more density never selects less") {
  const Ownership parts = strategy::ownership(llama_tensors(), 8, Owners::even);
  std::int64_t last = 0;
  for (double density = 1e-6; density <= 1; density *= 1.5) {
    CHECK(strategy::selected(parts, density) >= last);
    last = strategy::selected(parts, density);
  }
}

TEST_CASE("[M42] the owner of the output matrix pads the mask of Llama-1.8B from 229 to 655 MB") {
  const std::int64_t n = 1'831'201'280;
  const Ownership even = strategy::ownership(llama_tensors(), 64, Owners::even);
  CHECK(strategy::gathered_mask_bytes(even, MaskFormat::packed) == 64 * ((n / 64 + 7) / 8));
  // One rank owns the output matrix, 32,000 x 2560, and the final norm before it.
  const Ownership whole = strategy::ownership(llama_tensors(), 64, Owners::tensor);
  constexpr std::int64_t kLargest = 32'000 * 2560 + 2560;
  CHECK(strategy::largest_part(whole) == kLargest);
  CHECK(strategy::gathered_mask_bytes(whole, MaskFormat::packed) == 64 * kLargest / 8);
}

TEST_CASE("[M42] a packed mask has a bit per element, in whole bytes; the other format a byte") {
  CHECK(strategy::mask_bytes(0, MaskFormat::packed) == 0);
  CHECK(strategy::mask_bytes(1, MaskFormat::packed) == 1);
  CHECK(strategy::mask_bytes(8, MaskFormat::packed) == 1);
  CHECK(strategy::mask_bytes(9, MaskFormat::packed) == 2);
  CHECK(strategy::mask_bytes(9, MaskFormat::byte) == 9);
  CHECK(strategy::mask_bytes(8000, MaskFormat::byte) ==
        8 * strategy::mask_bytes(8000, MaskFormat::packed));
}

TEST_CASE("[M45] independent masks fill in to 1-(1-d)^P, identical ones not at all") {
  CHECK(strategy::union_density(0.01, 64, 0) == Approx(1 - std::pow(0.99, 64)).epsilon(1e-14));
  CHECK(strategy::union_density(0.01, 64, 0) == Approx(0.47).margin(0.005));   // arXiv 2607.01678
  CHECK(strategy::union_density(0.1, 64, 0) == Approx(0.999).margin(0.0005));  // the same
  CHECK(strategy::union_density(0.01, 64, 1) == Approx(0.01).epsilon(1e-14));
  CHECK(strategy::union_density(0.01, 64, 0.5) ==
        Approx((0.01 + 1 - std::pow(0.99, 64)) / 2).epsilon(1e-14));
  CHECK(strategy::union_density(1, 64, 0.3) == Approx(1).epsilon(1e-14));
}

TEST_CASE("[M45] one rank's masks have nothing to fill in") {
  for (const double overlap : {0.0, 0.5, 1.0})
    CHECK(strategy::union_density(0.01, 1, overlap) == Approx(0.01).epsilon(1e-14));
}

TEST_CASE("[M46] density warms up geometrically from 1 to its value") {
  spec::Strategy s;
  s.density = 0.01;
  s.density_warmup = 100;
  const auto at = [&](int step) {
    s.at_step = step;
    return strategy::density_at(s);
  };
  CHECK(at(0) == 1);
  CHECK(at(50) == Approx(0.1).epsilon(1e-14));
  CHECK(at(75) / at(74) == Approx(at(2) / at(1)).epsilon(1e-12));
  CHECK(at(99) > 0.01);
  CHECK(at(100) == 0.01);
  CHECK(at(1'000'000) == 0.01);
  CHECK(at(-1) == 0.01);
  s.density_warmup = 0;
  CHECK(at(0) == 0.01);
}
