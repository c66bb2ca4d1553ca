// SPDX-License-Identifier: Apache-2.0
// Counts in text, of tokens or dollars.
#pragma once

#include <optional>
#include <string_view>

namespace scapesim {

/// "1T", "300B", "4M", "1.5e12": a number above 0 with or without a decimal prefix, up to 1e18;
/// none where it is not.
std::optional<double> parse_count(std::string_view text);

}  // namespace scapesim
