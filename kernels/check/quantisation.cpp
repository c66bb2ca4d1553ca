// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/quantisation.hpp"

#include "kernels/check/check.hpp"

namespace scapesim::kernels {

namespace {

std::vector<std::uint8_t> packed(Code code, const std::vector<int>& codes) {
  std::vector<std::uint8_t> bytes(code_bytes(code, codes.size()));
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto bits = static_cast<unsigned>(codes[i]);
    if (code == Code::int8)
      bytes[i] = static_cast<std::uint8_t>(bits & 0xffU);
    else
      bytes[i / 2] |= static_cast<std::uint8_t>((bits & 0xfU) << (i % 2 * 4));
  }
  return bytes;
}

/// Three ranks' values to codes, and the codes back to their mean.
template <class Value>
void check_code(const Setup& setup, Code code, Random& random, Comparisons& results) {
  constexpr std::size_t kRanks = 3;
  const std::size_t n = setup.elements;
  const std::size_t code_stride = code_bytes(code, n) + 3;
  const std::size_t scale_stride = scales_of(n) + 1;
  Array<std::uint8_t> codes(kRanks * code_stride, setup.shift);
  Array<float> scales(kRanks * scale_stride, setup.shift);
  std::vector<reference::Quantised> expected;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    const auto values = stored<Value>(values_of(setup, n, random));
    expected.push_back(
        reference::quantised(floats(values), kQuantBlock, code == Code::int8 ? 127 : 7));
    const Array<Value> device_values(values, setup.shift);
    quantise<Value>({.code = code,
                     .values = device_values.data(),
                     .elements = n,
                     .codes = codes.data() + rank * code_stride,
                     .scales = scales.data() + rank * scale_stride},
                    nullptr);
    const auto got = codes.values();
    const auto begin = got.begin() + static_cast<std::ptrdiff_t>(rank * code_stride);
    results.exact("codes", packed(code, expected.back().codes),
                  std::vector(begin, begin + static_cast<std::ptrdiff_t>(code_bytes(code, n))));
    const auto got_scales = scales.values();
    const auto first = got_scales.begin() + static_cast<std::ptrdiff_t>(rank * scale_stride);
    results.exact("scales", expected.back().scales,
                  std::vector(first, first + static_cast<std::ptrdiff_t>(scales_of(n))));
  }
  Array<Value> mean(n, setup.shift);
  dequantise<Value>({.code = code,
                     .codes = codes.data(),
                     .scales = scales.data(),
                     .count = kRanks,
                     .code_stride = code_stride,
                     .scale_stride = scale_stride,
                     .elements = n,
                     .factor = 1.0F / kRanks,
                     .values = mean.data()},
                    nullptr);
  results.close("mean",
                stored<Value>(reference::dequantised_sum(expected, kQuantBlock, 1.0F / kRanks)),
                mean.values());
}

}  // namespace

void check_quantise(const Setup& setup, Comparisons& results) {
  Random random(setup.seed);
  check_code<float>(setup, Code::int8, random, results);
  check_code<Bf16>(setup, Code::int8, random, results);
  check_code<float>(setup, Code::int4, random, results);
  check_code<Bf16>(setup, Code::int4, random, results);
}

}  // namespace scapesim::kernels
