// SPDX-License-Identifier: Apache-2.0
// Every unit that is read, every mistake that is refused, and what is printed.
#include "sim/base/unit_text.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "sim/base/random.hpp"

namespace scapesim {
namespace {

using namespace literals;

template <class Q>
Q value(const Parsed<Q>& parsed) {
  if (const UnitProblem* problem = std::get_if<UnitProblem>(&parsed)) FAIL(problem->what);
  return std::get<Q>(parsed);
}

template <class Q>
UnitProblem problem(const Parsed<Q>& parsed) {
  REQUIRE(std::holds_alternative<UnitProblem>(parsed));
  return std::get<UnitProblem>(parsed);
}

TEST_CASE("every unit of size is read") {
  const std::vector<std::pair<std::string, double>> rows = {
      {"B", 1},         {"KB", 1e3},           {"MB", 1e6},
      {"GB", 1e9},      {"TB", 1e12},          {"KiB", 1024},
      {"MiB", 1048576}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};
  for (const auto& [unit, si] : rows) REQUIRE(value(parse_bytes("3" + unit)).si() == 3 * si);
}

TEST_CASE("every unit of time is read, as the nearest double") {
  const std::vector<std::pair<std::string, double>> rows = {
      {"ns", 5e-9}, {"us", 5e-6}, {"ms", 5e-3}, {"s", 5},
      {"min", 300}, {"h", 18000}, {"d", 432000}};
  for (const auto& [unit, si] : rows) REQUIRE(value(parse_seconds("5" + unit)).si() == si);
}

TEST_CASE("every unit of bandwidth is read, bits divided by eight") {
  const std::vector<std::pair<std::string, double>> rows = {
      {"B/s", 1},      {"KB/s", 1e3},   {"MB/s", 1e6},  {"GB/s", 1e9},  {"TB/s", 1e12},
      {"KBps", 1e3},   {"MBps", 1e6},   {"GBps", 1e9},  {"TBps", 1e12}, {"Kbps", 125},
      {"Mbps", 125e3}, {"Gbps", 125e6}, {"Tbps", 125e9}};
  for (const auto& [unit, si] : rows)
    REQUIRE(value(parse_bytes_per_second("8" + unit)).si() == 8 * si);
  REQUIRE(value(parse_bytes_per_second("400Gbps")) == 50_GBps);
}

TEST_CASE("every unit of FLOP rate and power is read") {
  REQUIRE(value(parse_flops_per_second("2GFLOP/s")).si() == 2e9);
  REQUIRE(value(parse_flops_per_second("989TFLOP/s")) == 989_TFLOPps);
  REQUIRE(value(parse_flops_per_second("1.5PFLOP/s")).si() == 1.5e15);
  REQUIRE(value(parse_watts("700W")).si() == 700);
  REQUIRE(value(parse_watts("2kW")).si() == 2000);
  REQUIRE(value(parse_watts("3MW")).si() == 3e6);
}

TEST_CASE("numbers may have a sign, a fraction, an exponent and a space before the unit") {
  REQUIRE(value(parse_bytes("  2.5 MB ")).si() == 2.5e6);
  REQUIRE(value(parse_bytes("+1e3B")).si() == 1e3);
  REQUIRE(value(parse_bytes("-1MB")).si() == -1e6);
  REQUIRE(value(parse_bytes(".5KB")).si() == 500);
  REQUIRE(value(parse_bytes("0B")).si() == 0);
}

TEST_CASE("a missing unit is named with what to write") {
  REQUIRE(problem(parse_bytes("25")).what == "unit missing");
  REQUIRE(problem(parse_bytes("25")).hint == R"(write "25MB" or "25MiB")");
  REQUIRE(problem(parse_bytes_per_second("400")).hint ==
          R"(write "400Gbps" (bits) or "400GB/s" (bytes))");
  REQUIRE(problem(parse_seconds("3")).hint == R"(write "3us" or "3ms")");
  REQUIRE(problem(parse_bytes("26214400")).hint == R"(write "26214400B")");
  REQUIRE(problem(parse_flops_per_second("989e12")).hint ==
          "units of FLOP rate: GFLOP/s TFLOP/s PFLOP/s");
}

TEST_CASE("a unit of another dimension is named as such") {
  const UnitProblem wrong = problem(parse_bytes("400Gbps"));
  REQUIRE(wrong.what == R"("Gbps" is a unit of bandwidth, not of size)");
  REQUIRE(wrong.hint == "units of size: B KB MB GB TB KiB MiB GiB TiB");
  REQUIRE(problem(parse_seconds("5MB")).what == R"("MB" is a unit of size, not of time)");
  REQUIRE(problem(parse_watts("1TFLOP/s")).what ==
          R"("TFLOP/s" is a unit of FLOP rate, not of power)");
}

TEST_CASE("mistakes of case and spelling get the nearest unit, bits and bytes told apart") {
  const auto hint = [](std::string_view text) {
    return problem(parse_bytes_per_second(text)).hint;
  };
  REQUIRE(hint("400gbps") == R"(did you mean "Gbps" (bits)?)");
  REQUIRE(hint("400Gb/s") == R"(did you mean "Gbps" (bits)?)");
  REQUIRE(hint("400Gbit/s") == R"(did you mean "Gbps" (bits)?)");
  REQUIRE(hint("400gB/s") == R"(did you mean "GB/s" (bytes)?)");
  REQUIRE(hint("400GBPS") == R"(did you mean "Gbps" (bits) or "GBps" (bytes)?)");
  REQUIRE(hint("50GiB/s") == "bandwidths are decimal: 1GB/s is 1e9 bytes per second");
  REQUIRE(problem(parse_bytes("25gb")).hint == R"(did you mean "GB"?)");
  REQUIRE(problem(parse_bytes("25Gb")).what == R"(unknown unit "Gb")");
  REQUIRE(problem(parse_bytes("25Gb")).hint == R"(did you mean "GB"?)");
  REQUIRE(problem(parse_bytes("25kB")).hint == R"(did you mean "KB"?)");
  REQUIRE(problem(parse_seconds("5 sec")).hint == R"(did you mean "s"?)");
  REQUIRE(problem(parse_seconds("5MS")).hint == R"(did you mean "ms"?)");
  REQUIRE(problem(parse_flops_per_second("989TFLOPS")).hint == R"(did you mean "TFLOP/s"?)");
  REQUIRE(problem(parse_watts("700w")).hint == R"(did you mean "W"?)");
  REQUIRE(problem(parse_watts("1mW")).hint == R"(did you mean "MW"?)");
  REQUIRE(problem(parse_bytes("3 furlongs")).hint ==
          "units of size: B KB MB GB TB KiB MiB GiB TiB");
}

TEST_CASE("what is no finite number is refused") {
  for (const char* text : {"nan",     "NaNB",  "inf",  "infGB", "-infB", "1e999B", "1e308TB",
                           "1e-999B", "",      "   ",  "GB",    "abc",   "--3B",   "+-3B",
                           "1..2B",   "0x10B", "1e+B", "1,5GB", "3B B",  "3\nB",   "1_000B"}) {
    INFO(text);
    REQUIRE_FALSE(problem(parse_bytes(text)).what.empty());
  }
}

TEST_CASE("printing picks the unit and keeps four digits without trailing zeros") {
  REQUIRE(text_of(1.831_GB) == "1.831 GB");
  REQUIRE(text_of(62.94_GB) == "62.94 GB");
  REQUIRE(text_of(96_GiB) == "103.1 GB");
  REQUIRE(text_of(0_B) == "0 B");
  REQUIRE(text_of(-1500_B) == "-1.5 KB");
  REQUIRE(text_of(3.62_GBps) == "3.62 GB/s");
  REQUIRE(text_of(1.1_ms) == "1.1 ms");
  REQUIRE(text_of(12.345678_s) == "12.35 s");
  REQUIRE(text_of(5400_s) == "1.5 h");
  REQUIRE(text_of(989_TFLOPps) == "989 TFLOP/s");
  REQUIRE(text_of(Watts(700)) == "700 W");
}

TEST_CASE("rounding carries into the next unit at its boundary and not before") {
  REQUIRE(text_of(Bytes(999950)) == "1 MB");
  REQUIRE(text_of(Bytes(999949)) == "999.9 KB");
  REQUIRE(text_of(Bytes(1e15)) == "1000 TB");
  REQUIRE(text_of(Bytes(1.23456e18)) == "1235000 TB");
  REQUIRE(text_of(Seconds(1e-12)) == "0.001 ns");
}

template <class Q>
void round_trip(Parsed<Q> (*parse)(std::string_view), double low, double high) {
  Random random(7);
  for (int i = 0; i < 2000; ++i) {
    const Q before(std::exp(random.uniform(std::log(low), std::log(high))));
    const std::string text = text_of(before);
    INFO(text);
    const Q after = value(parse(text));
    // Half a unit of the fourth digit: 0.5e-3 of the leading digit.
    REQUIRE(std::abs(after.si() / before.si() - 1) <= 0.5e-3);
    REQUIRE(text_of(after) == text);
  }
}

TEST_CASE("what is printed is read back as the same text") {
  round_trip<Bytes>(parse_bytes, 1, 1e18);
  round_trip<Seconds>(parse_seconds, 1e-12, 1e8);
  round_trip<BytesPerSecond>(parse_bytes_per_second, 1, 1e16);
  round_trip<FlopsPerSecond>(parse_flops_per_second, 1e6, 1e19);
  round_trip<Watts>(parse_watts, 1e-3, 1e9);
}

}  // namespace
}  // namespace scapesim
