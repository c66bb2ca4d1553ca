// SPDX-License-Identifier: Apache-2.0
// Units in text: "400Gbps", "25MiB", "1.1ms". GB is 1e9 bytes, GiB 2^30, Gbps are bits.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "sim/base/units.hpp"

namespace scapesim {

/// Why a text is no quantity, and what would be ("25MB", "25MiB").
struct UnitProblem {
  std::string what;
  std::string hint;
};

template <class Q>
using Parsed = std::variant<Q, UnitProblem>;

/// Read a quantity with its unit; a missing, misspelt or other dimension's unit, NaN, infinity and
/// trailing text are problems. Space between number and unit is allowed. Sign is not checked here.
Parsed<Bytes> parse_bytes(std::string_view text);      // B KB MB GB TB KiB MiB GiB TiB
Parsed<Seconds> parse_seconds(std::string_view text);  // ns us ms s min h d
Parsed<BytesPerSecond> parse_bytes_per_second(
    std::string_view text);  // Kbps..Tbps, B/s KB/s..TB/s, KBps..TBps
Parsed<FlopsPerSecond> parse_flops_per_second(std::string_view text);  // GFLOP/s TFLOP/s PFLOP/s
Parsed<Watts> parse_watts(std::string_view text);                      // W kW MW

/// Pretty text for people, 4 significant digits: "1.831 GB", "62.94 GB", "3.62 GB/s", "1.1 ms".
std::string text_of(Bytes value);
std::string text_of(Seconds value);
std::string text_of(BytesPerSecond value);
std::string text_of(FlopsPerSecond value);
std::string text_of(Watts value);

}  // namespace scapesim
