// SPDX-License-Identifier: Apache-2.0
#include "kernels/check/check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace scapesim::kernels {

namespace {

constexpr Check kChecks[] = {
    {"accumulate", check_accumulate},
    {"gather", check_gather},
    {"select", check_select},
    {"select of bf16 scores", check_rounded_select},
    {"masks", check_masks},
    {"norms", check_norms},
    {"scatter_adams", check_scatter_adams},
    {"write_back", check_write_back},
    {"dense_update", check_dense_update},
    {"quantise", check_quantise},
    {"SCAPE steps", check_steps},
};

float special(Random& random) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kValues[] = {std::numeric_limits<float>::quiet_NaN(),
                               kInfinity,
                               -kInfinity,
                               0.0F,
                               -0.0F,
                               std::numeric_limits<float>::denorm_min(),
                               -1e-40F,
                               std::numeric_limits<float>::max()};
  return kValues[random.below(std::size(kValues))];
}

float value_of(Pattern pattern, Random& random) {
  const auto uniform = static_cast<float>(random.uniform(-1, 1));
  switch (pattern) {
    case Pattern::random:
      return uniform;
    case Pattern::ties:
      return static_cast<float>(static_cast<int>(random.below(7)) - 3);
    case Pattern::sparse:
      return random.below(20) == 0 ? uniform : 0.0F;
    case Pattern::special:
      return random.below(50) == 0 ? special(random) : uniform;
  }
  return uniform;
}

}  // namespace

const char* name_of(Pattern pattern) {
  switch (pattern) {
    case Pattern::random:
      return "random";
    case Pattern::ties:
      return "ties";
    case Pattern::sparse:
      return "sparse";
    case Pattern::special:
      return "special";
  }
  return "";
}

std::span<const Check> checks() { return kChecks; }

std::vector<Comparison> run(const Check& check, const Setup& setup) {
  Comparisons results(check.name);
  check.run(setup, results);
  return results.list();
}

void Comparisons::add(const std::string& output, const std::vector<double>& expected,
                      const std::vector<double>& got, double limit) {
  Comparison it{.kernel = kernel_, .output = output, .compared = expected.size(), .limit = limit};
  double squares = 0;
  for (const double value : expected)
    if (std::isfinite(value)) squares += value * value;
  const double scale =
      std::sqrt(squares / static_cast<double>(std::max<std::size_t>(1, expected.size())));
  if (got.size() != expected.size()) it.different = std::max(got.size(), expected.size());
  for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i) {
    const bool both_nan = std::isnan(expected[i]) && std::isnan(got[i]);
    const bool same = expected[i] == got[i] && std::signbit(expected[i]) == std::signbit(got[i]);
    if (both_nan || same) continue;
    ++it.different;
    const double size = std::max({std::abs(expected[i]), scale, 1e-30});
    const double error = std::abs(expected[i] - got[i]) / size;
    it.error = error <= it.error ? it.error : error;  // NaN stays
  }
  if (got.size() != expected.size()) it.error = std::numeric_limits<double>::infinity();
  list_.push_back(it);
}

std::vector<float> values_of(const Setup& setup, std::size_t count, Random& random) {
  std::vector<float> values(count);
  for (float& value : values) value = value_of(setup.pattern, random);
  return values;
}

reference::Mask random_mask(const Setup& setup, Random& random) {
  reference::Mask mask(setup.elements);
  const bool runs = random.below(2) == 0;
  bool selected = false;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (!runs || random.below(16) == 0) selected = random.uniform() < setup.density;
    mask[i] = selected ? 1 : 0;
  }
  return mask;
}

std::vector<std::uint32_t> words_from(std::span<const std::uint8_t> mask) {
  std::vector<std::uint32_t> words(words_of(mask.size()));
  for (std::size_t i = 0; i < mask.size(); ++i)
    words[i / 32] |= static_cast<std::uint32_t>(mask[i]) << (i % 32);
  return words;
}

std::vector<std::uint32_t> tile_counts_from(std::span<const std::uint8_t> mask) {
  std::vector<std::uint32_t> counts(tiles_of(mask.size()));
  for (std::size_t i = 0; i < mask.size(); ++i) counts[i / kTile] += mask[i];
  return counts;
}

std::vector<std::uint64_t> offsets_from(std::span<const std::uint8_t> mask) {
  std::vector<std::uint64_t> offsets{0};
  for (const std::uint32_t count : tile_counts_from(mask))
    offsets.push_back(offsets.back() + count);
  return offsets;
}

std::vector<Range> whole(std::size_t elements) { return {{0, elements}}; }

std::vector<Range> pieces_of(std::size_t elements, Random& random) {
  std::vector<Range> ranges;
  for (std::size_t first = 0; first < elements;) {
    const std::size_t count = std::min<std::size_t>(1 + random.below(elements), elements - first);
    ranges.push_back({first, count});
    first += count;
  }
  ranges.push_back({elements, 0});
  return ranges;
}

Coefficients<float> some_coefficients(Random& random) {
  const reference::Adam adam{.weight_decay = random.uniform(0, 1)};
  return reference::coefficients<float>(adam, static_cast<int>(1 + random.below(20)), 1e-2);
}

}  // namespace scapesim::kernels
