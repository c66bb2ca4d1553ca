// SPDX-License-Identifier: Apache-2.0
#include "sim/base/count_text.hpp"

#include <charconv>
#include <utility>

namespace scapesim {

std::optional<double> parse_count(std::string_view text) {
  constexpr std::pair<char, double> kPrefixes[] = {{'K', 1e3}, {'M', 1e6}, {'B', 1e9}, {'T', 1e12}};
  constexpr double kMost = 1e18;
  double scale = 1;
  for (const auto& [letter, times] : kPrefixes)
    if (text.ends_with(letter)) {
      scale = times;
      text.remove_suffix(1);
      break;
    }
  while (text.ends_with(' ')) text.remove_suffix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool sound = failure == std::errc{} && end == text.data() + text.size();
  if (!sound || !(value > 0) || !(value * scale <= kMost)) return std::nullopt;
  return value * scale;
}

}  // namespace scapesim
