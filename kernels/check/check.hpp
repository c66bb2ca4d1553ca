// SPDX-License-Identifier: Apache-2.0
// Every kernel against the reference, on whatever runs it: a device, or the SIMT shim. Inputs are
// random, outputs poisoned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/check/array.hpp"
#include "kernels/reference/selection.hpp"
#include "sim/base/random.hpp"

namespace scapesim::kernels {

/// random: uniform in [-1, 1). ties: a few values, many equal. sparse: most are 0. special: NaN,
/// infinities, zeros of both signs and subnormal numbers among random ones.
enum class Pattern { random, ties, sparse, special };
inline constexpr Pattern kPatterns[] = {Pattern::random, Pattern::ties, Pattern::sparse,
                                        Pattern::special};
const char* name_of(Pattern pattern);

struct Setup {
  std::size_t elements = 0;  ///< at least 1
  std::uint64_t seed = 1;
  Pattern pattern = Pattern::random;
  double density = 0.1;
  std::size_t shift = 0;  ///< elements by which arrays miss their alignment
};

/// An output beside the reference's. NaN equals NaN.
struct Comparison {
  std::string kernel;
  std::string output;
  std::size_t compared = 0;
  std::size_t different = 0;  ///< in any bit
  double error = 0;  ///< largest |difference| / max(|expected|, the expected's mean square root)
  double limit = 0;  ///< 0: bit for bit

  bool passed() const { return limit == 0 ? different == 0 : error <= limit; }
};

/// Rounding of a handful of single-precision operations, or of a sum in another order.
inline constexpr double kArithmetic = 1e-6;

class Comparisons {
 public:
  explicit Comparisons(std::string kernel) : kernel_(std::move(kernel)) {}

  template <class T>
  void exact(const std::string& output, const std::vector<T>& expected, const std::vector<T>& got) {
    add(output, doubles(expected), doubles(got), 0);
  }
  template <class T>
  void close(const std::string& output, const std::vector<T>& expected, const std::vector<T>& got) {
    add(output, doubles(expected), doubles(got), kArithmetic);
  }
  const std::vector<Comparison>& list() const { return list_; }

 private:
  static double number(Bf16 value) { return static_cast<double>(reference::to_float(value)); }
  template <class T>
  static double number(T value) {
    return static_cast<double>(value);  // exact up to 2^53
  }
  template <class T>
  static std::vector<double> doubles(const std::vector<T>& values) {
    std::vector<double> result;
    result.reserve(values.size());
    for (const T value : values) result.push_back(number(value));
    return result;
  }
  void add(const std::string& output, const std::vector<double>& expected,
           const std::vector<double>& got, double limit);

  std::string kernel_;
  std::vector<Comparison> list_;
};

struct Check {
  const char* name;  ///< of the kernel
  void (*run)(const Setup&, Comparisons&);
};
std::span<const Check> checks();

std::vector<Comparison> run(const Check& check, const Setup& setup);

// ---- Inputs and what follows from them, for the checks ------------------------------------------

std::vector<float> values_of(const Setup& setup, std::size_t count, Random& random);
template <class T>
std::vector<T> stored(const std::vector<float>& values) {
  std::vector<T> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) reference::store(result[i], values[i]);
  return result;
}
template <class T>
std::vector<float> floats(const std::vector<T>& values) {
  std::vector<float> result;
  for (const T value : values) result.push_back(reference::to_float(value));
  return result;
}

/// A random mask of the setup's density: single elements, or runs of them.
reference::Mask random_mask(const Setup& setup, Random& random);
std::vector<std::uint32_t> words_from(std::span<const std::uint8_t> mask);
std::vector<std::uint32_t> tile_counts_from(std::span<const std::uint8_t> mask);
std::vector<std::uint64_t> offsets_from(std::span<const std::uint8_t> mask);

/// A mask on the device.
struct DeviceMask {
  explicit DeviceMask(const reference::Mask& mask)
      : words(words_from(mask)), offsets(offsets_from(mask)), elements(mask.size()) {}
  MaskView view() const { return {words.data(), offsets.data(), elements}; }

  Array<std::uint32_t> words;
  Array<std::uint64_t> offsets;
  std::size_t elements;
};

/// Values on the mask.
template <class T>
std::vector<T> selected_of(const std::vector<T>& values, const reference::Mask& mask) {
  std::vector<T> result;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (mask[i]) result.push_back(values[i]);
  return result;
}

/// Ranges that cover all elements: in one, or cut at places that are in no way aligned.
std::vector<Range> whole(std::size_t elements);
std::vector<Range> pieces_of(std::size_t elements, Random& random);

Coefficients<float> some_coefficients(Random& random);

void check_accumulate(const Setup& setup, Comparisons& results);
void check_gather(const Setup& setup, Comparisons& results);
void check_select(const Setup& setup, Comparisons& results);
void check_rounded_select(const Setup& setup, Comparisons& results);
void check_masks(const Setup& setup, Comparisons& results);
void check_norms(const Setup& setup, Comparisons& results);
void check_scatter_adams(const Setup& setup, Comparisons& results);
void check_write_back(const Setup& setup, Comparisons& results);
void check_dense_update(const Setup& setup, Comparisons& results);
void check_quantise(const Setup& setup, Comparisons& results);
void check_steps(const Setup& setup, Comparisons& results);

}  // namespace scapesim::kernels
