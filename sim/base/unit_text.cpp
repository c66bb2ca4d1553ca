// SPDX-License-Identifier: Apache-2.0
// One table of units per dimension feeds parser, hints and printer.
#include "sim/base/unit_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"

namespace scapesim {
namespace {

using namespace literals;

struct Unit {
  std::string_view name;
  double si;             ///< one of it in SI base units
  bool printed = false;  ///< used by text_of
};

struct Measure {
  std::string_view noun;                  ///< "size"
  std::span<const Unit> units;            ///< ascending among the printed ones
  std::array<std::string_view, 2> usual;  ///< what a user most likely forgot
};

constexpr Unit kSizes[] = {{"B", 1, true},
                           {"KB", (1_KB).si(), true},
                           {"MB", (1_MB).si(), true},
                           {"GB", (1_GB).si(), true},
                           {"TB", 1e12, true},
                           {"KiB", (1_KiB).si()},
                           {"MiB", (1_MiB).si()},
                           {"GiB", (1_GiB).si()},
                           {"TiB", 1024 * (1_GiB).si()}};
constexpr Unit kTimes[] = {{"ns", (1_ns).si(), true},
                           {"us", (1_us).si(), true},
                           {"ms", (1_ms).si(), true},
                           {"s", 1, true},
                           {"min", 60},
                           {"h", 3600, true},
                           {"d", 86400, true}};
constexpr Unit kBandwidths[] = {{"B/s", 1, true},
                                {"KB/s", 1e3, true},
                                {"MB/s", 1e6, true},
                                {"GB/s", (1_GBps).si(), true},
                                {"TB/s", (1_TBps).si(), true},
                                {"KBps", 1e3},
                                {"MBps", 1e6},
                                {"GBps", (1_GBps).si()},
                                {"TBps", (1_TBps).si()},
                                {"Kbps", 1e3 / 8},  // bits on the wire
                                {"Mbps", 1e6 / 8},
                                {"Gbps", (1_Gbps).si()},
                                {"Tbps", 1e12 / 8}};
constexpr Unit kFlopRates[] = {
    {"GFLOP/s", 1e9, true}, {"TFLOP/s", (1_TFLOPps).si(), true}, {"PFLOP/s", 1e15, true}};
constexpr Unit kPowers[] = {{"W", 1, true}, {"kW", 1e3, true}, {"MW", 1e6, true}};

constexpr Measure kMeasures[] = {{"size", kSizes, {"MB", "MiB"}},
                                 {"time", kTimes, {"us", "ms"}},
                                 {"bandwidth", kBandwidths, {"Gbps", "GB/s"}},
                                 {"FLOP rate", kFlopRates, {"TFLOP/s", "PFLOP/s"}},
                                 {"power", kPowers, {"W", "kW"}}};
constexpr const Measure& kSize = kMeasures[0];
constexpr const Measure& kTime = kMeasures[1];
constexpr const Measure& kBandwidth = kMeasures[2];
constexpr const Measure& kFlopRate = kMeasures[3];
constexpr const Measure& kPower = kMeasures[4];

std::vector<std::string_view> names_in(const Measure& measure) {
  std::vector<std::string_view> names;
  for (const Unit& unit : measure.units) names.push_back(unit.name);
  return names;
}

const Unit* find_unit(const Measure& measure, std::string_view name) {
  const auto row = std::ranges::find(measure.units, name, &Unit::name);
  return row == measure.units.end() ? nullptr : &*row;
}

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

// "GB/s" is of bytes, "Gbps" of bits: the usual confusion is worth a word in the hint.
std::string_view remark(std::string_view unit) {
  if (unit.ends_with("bps")) return " (bits)";
  if (unit.ends_with("Bps") || unit.ends_with("B/s")) return " (bytes)";
  return "";
}

// How others write our units: bits as "Gb/s" or "Gbit/s", rates as "TFLOPS", words for times.
std::string plain_spelling(std::string_view unit) {
  std::string word = lowered(unit);
  const auto ends = [&](std::string_view tail, std::string_view ours) {
    if (!word.ends_with(tail)) return false;
    word.replace(word.size() - tail.size(), tail.size(), ours);
    return true;
  };
  if (ends("bit/s", "bps") || ends("bits/s", "bps") || ends("flops", "flop/s")) return word;
  if (ends("flopps", "flop/s") || ends("ib/s", "b/s") || ends("ibps", "bps")) return word;
  if (word == "sec" || word == "secs" || word == "second" || word == "seconds") return "s";
  if (word == "hour" || word == "hours" || word == "hr") return "h";
  if (word == "day" || word == "days") return "d";
  if (word == "minute" || word == "minutes") return "min";
  return word;
}

UnitProblem missing_unit(const Measure& measure, std::string_view number) {
  const auto [first, second] = measure.usual;
  return {"unit missing", fmt::format("write \"{0}{1}\"{2} or \"{0}{3}\"{4}", number, first,
                                      remark(first), second, remark(second))};
}

UnitProblem unknown_unit(const Measure& measure, std::string_view unit) {
  for (const Measure& other : kMeasures)
    if (&other != &measure && find_unit(other, unit) != nullptr)
      return {fmt::format("\"{}\" is a unit of {}, not of {}", unit, other.noun, measure.noun),
              fmt::format("units of {}: {}", measure.noun, fmt::join(names_in(measure), " "))};
  const std::string what = fmt::format("unknown unit \"{}\"", unit);
  const std::string word = plain_spelling(unit);
  std::vector<std::string> alike;  // the same letters in another case, or another spelling
  for (const std::string_view name : names_in(measure))
    if (lowered(name) == lowered(unit) || lowered(name) == word)
      alike.push_back(fmt::format("\"{}\"{}", name, remark(name)));
  if (!alike.empty()) return {what, fmt::format("did you mean {}?", fmt::join(alike, " or "))};
  const std::vector<std::string_view> names = names_in(measure);
  if (nearest(unit, names)) return {what, did_you_mean(unit, names)};
  return {what, fmt::format("units of {}: {}", measure.noun, fmt::join(names, " "))};
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::variant<double, UnitProblem> parse(const Measure& measure, std::string_view whole) {
  const std::string_view text = trimmed(whole);
  const auto [example, other] = measure.usual;
  const std::string write = fmt::format("write a number and a unit: \"25{}\"", example);
  if (text.empty()) return UnitProblem{fmt::format("empty, a {} is needed", measure.noun), write};

  const std::string_view digits = text.front() == '+' ? text.substr(1) : text;
  double number = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failure == std::errc::invalid_argument)
    return UnitProblem{fmt::format("\"{}\" is no {}", text, measure.noun), write};
  if (failure != std::errc()) return UnitProblem{"the number is too large or too small", ""};
  if (!std::isfinite(number))
    return UnitProblem{fmt::format("\"{}\" is no finite number", text), write};

  const auto length = static_cast<std::size_t>(end - digits.data());
  const std::string_view unit_name = trimmed(digits.substr(length));
  if (unit_name.empty()) return missing_unit(measure, text);
  const Unit* unit = find_unit(measure, unit_name);
  if (unit == nullptr) return unknown_unit(measure, unit_name);
  const double value = number * unit->si;
  if (!std::isfinite(value)) return UnitProblem{"the number is too large", ""};
  return value;
}

template <class Q>
Parsed<Q> parse_as(const Measure& measure, std::string_view text) {
  const std::variant<double, UnitProblem> result = parse(measure, text);
  if (const double* value = std::get_if<double>(&result)) return Q(*value);
  return std::get<UnitProblem>(result);
}

// Four significant digits in full, without trailing zeros: "62.94", "3.62", "1235000".
std::string digits_of(double value) {
  const double rounded = std::stod(fmt::format("{:.3e}", value));
  if (rounded == 0) return "0";
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(rounded))));
  if (exponent < -4 || exponent > 14) return fmt::format("{:.4g}", rounded);
  std::string text = fmt::format("{:.{}f}", rounded, std::max(0, 3 - exponent));
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

// In the largest unit that leaves at least 1 after rounding; the smallest unit below that.
std::string print(const Measure& measure, double si) {
  if (!std::isfinite(si)) return fmt::format("{} {}", si, measure.units.front().name);
  const double rounded = std::stod(fmt::format("{:.3e}", si));
  const Unit* best = nullptr;
  for (const Unit& unit : measure.units) {
    if (!unit.printed) continue;
    // 1e-9: decimal rounding leaves 1e9 of a unit a hair below one.
    if (best == nullptr || std::abs(rounded) >= unit.si * (1 - 1e-9)) best = &unit;
  }
  SCAPESIM_CHECK(best != nullptr, "no printed unit of {}", measure.noun);
  return fmt::format("{} {}", digits_of(si / best->si), best->name);
}

}  // namespace

Parsed<Bytes> parse_bytes(std::string_view text) { return parse_as<Bytes>(kSize, text); }
Parsed<Seconds> parse_seconds(std::string_view text) { return parse_as<Seconds>(kTime, text); }
Parsed<BytesPerSecond> parse_bytes_per_second(std::string_view text) {
  return parse_as<BytesPerSecond>(kBandwidth, text);
}
Parsed<FlopsPerSecond> parse_flops_per_second(std::string_view text) {
  return parse_as<FlopsPerSecond>(kFlopRate, text);
}
Parsed<Watts> parse_watts(std::string_view text) { return parse_as<Watts>(kPower, text); }

std::string text_of(Bytes value) { return print(kSize, value.si()); }
std::string text_of(Seconds value) { return print(kTime, value.si()); }
std::string text_of(BytesPerSecond value) { return print(kBandwidth, value.si()); }
std::string text_of(FlopsPerSecond value) { return print(kFlopRate, value.si()); }
std::string text_of(Watts value) { return print(kPower, value.si()); }

}  // namespace scapesim
