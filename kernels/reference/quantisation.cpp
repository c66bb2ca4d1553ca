// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/quantisation.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace scapesim::reference {

Quantised quantised(std::span<const float> values, std::size_t block, int largest_code) {
  SCAPESIM_CHECK(block > 0, "block {}", block);
  const auto limit = static_cast<float>(largest_code);
  Quantised result;
  for (std::size_t begin = 0; begin < values.size(); begin += block) {
    const auto part = values.subspan(begin, std::min(block, values.size() - begin));
    std::uint32_t largest = 0;
    for (const float value : part) largest = std::max(largest, magnitude_bits(value));
    const float scale = scale_of(largest, limit);
    result.scales.push_back(scale);
    for (const float value : part) result.codes.push_back(code_of(value, scale, limit));
  }
  return result;
}

std::vector<float> dequantised_sum(std::span<const Quantised> contributions, std::size_t block,
                                   float factor) {
  SCAPESIM_CHECK(!contributions.empty(), "no contribution");
  std::vector<float> values(contributions[0].codes.size());
  for (const Quantised& it : contributions)
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] += value_of(it.codes[i], it.scales[i / block]);
  for (float& value : values) value *= factor;
  return values;
}

}  // namespace scapesim::reference
