// SPDX-License-Identifier: Apache-2.0
// A seeded random source with the same sequence on every machine and library (splitmix64, Steele,
// Lea and Flood 2014). For draws and property tests, not for secrets.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/base/check.hpp"

namespace scapesim {

class Random {
 public:
  constexpr explicit Random(std::uint64_t seed) : state_(seed) {}

  /// The next 64 random bits.
  constexpr std::uint64_t bits() {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  /// Uniform in [0, 1): 53 random bits.
  constexpr double uniform() { return static_cast<double>(bits() >> 11U) * 0x1p-53; }
  /// Uniform in [low, high).
  constexpr double uniform(double low, double high) { return low + (high - low) * uniform(); }

  /// Uniform in 0 .. n-1, n > 0, without bias: draws from the incomplete last block are repeated.
  constexpr std::uint64_t below(std::uint64_t n) {
    SCAPESIM_CHECK(n > 0, "below({})", n);
    const std::uint64_t incomplete = (0 - n) % n;
    std::uint64_t draw = bits();
    while (draw < incomplete) draw = bits();
    return draw % n;
  }

 private:
  std::uint64_t state_;
};

/// Puts a container into random order (Fisher-Yates).
template <class Container>
constexpr void shuffle(Container& items, Random& random) {
  for (std::size_t left = items.size(); left > 1; --left) {
    const auto pick = static_cast<std::size_t>(random.below(left));
    auto moved = items[left - 1];
    items[left - 1] = items[pick];
    items[pick] = moved;
  }
}

}  // namespace scapesim
