// SPDX-License-Identifier: Apache-2.0
// The kernels' source on the SIMT shim against the reference, on every edge of a word and a tile.
#include <catch2/catch.hpp>

#include "kernels/check/check.hpp"
#include "kernels/simt/simt.hpp"

using namespace scapesim;
using namespace scapesim::kernels;

namespace {

/// On one CPU, kernels and reference are the same functions compiled alike: not a bit may differ,
/// except in sums that are added in another order.
void require_equal(const Check& check, const Setup& setup) {
  simt::set_seed(setup.seed);
  for (const Comparison& it : run(check, setup)) {
    const bool sum = it.output == "norm" || it.output == "factor";
    INFO(it.kernel << ": " << it.output << ", n " << setup.elements << ", density " << setup.density
                   << ", " << name_of(setup.pattern) << ", shift " << setup.shift << ", seed "
                   << setup.seed << ": " << it.different << " of " << it.compared
                   << " differ, error " << it.error);
    CHECK(it.passed());
    if (!sum) CHECK(it.different == 0);
  }
}

/// Sizes around a word, a warp's reach and a tile, and a prime of a few tiles.
constexpr std::size_t kSizes[] = {1, 31, 32, 33, 127, 2047, 2048, 2049, 7919};

}  // namespace

TEST_CASE("every kernel does what the reference does, at every edge") {
  std::uint64_t seed = 1;
  for (const Check& check : checks())
    for (const std::size_t elements : kSizes) {
      for (const Pattern pattern : kPatterns)
        require_equal(check, {.elements = elements,
                              .seed = seed++,
                              .pattern = pattern,
                              .density = pattern == Pattern::random ? 0.01 : 0.2,
                              .shift = seed % 4});
    }
}

TEST_CASE("empty masks and full ones, of one element and of several tiles") {
  std::uint64_t seed = 1000;
  for (const Check& check : checks())
    for (const std::size_t elements : {1, 2049, 4096})
      for (const double density : {1e-9, 1.0})
        require_equal(check, {.elements = elements, .seed = seed++, .density = density});
}

TEST_CASE("chunks of the real size, and norms of several blocks") {
  for (const Pattern pattern : {Pattern::random, Pattern::sparse}) {
    require_equal({"select", check_select},
                  {.elements = 2 * kSelectChunk + 77, .seed = 7, .pattern = pattern});
    require_equal({"norms", check_norms}, {.elements = 20011, .seed = 8, .pattern = pattern});
  }
}
