// SPDX-License-Identifier: Apache-2.0
// One table of units per dimension feeds parser, hints and printer.
#include "sim/base/unit_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <span>
#include <system_error>
#include <vector>

#include "sim/base/error.hpp"

namespace scapesim {
namespace {

using namespace literals;

struct Unit {
  std::string_view name;
  double times;     ///< SI value = number * times / over
  double over = 1;  ///< whole, so that 5us is the double nearest to 5e-6
};

struct Measure {
  std::string_view noun;                  ///< "size"
  std::span<const Unit> printed;          ///< ascending; text_of uses these
  std::span<const Unit> read;             ///< also understood
  std::array<std::string_view, 2> usual;  ///< what a user most likely forgot
};

constexpr Unit kSizes[] = {
    {"B", 1}, {"KB", (1_KB).si()}, {"MB", (1_MB).si()}, {"GB", (1_GB).si()}, {"TB", 1e12}};
constexpr Unit kBinarySizes[] = {{"KiB", (1_KiB).si()},
                                 {"MiB", (1_MiB).si()},
                                 {"GiB", (1_GiB).si()},
                                 {"TiB", 1024 * (1_GiB).si()}};
constexpr Unit kTimes[] = {{"ns", 1, 1e9}, {"us", 1, 1e6}, {"ms", 1, 1e3},
                           {"s", 1},       {"h", 3600},    {"d", 86400}};
constexpr Unit kMinute[] = {{"min", 60}};
constexpr Unit kBandwidths[] = {
    {"B/s", 1}, {"KB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", (1_GBps).si()}, {"TB/s", (1_TBps).si()}};
constexpr Unit kOtherBandwidths[] = {
    {"Kbps", 1e3 / 8}, {"Mbps", 1e6 / 8}, {"Gbps", (1_Gbps).si()}, {"Tbps", 1e12 / 8},  // bits
    {"KBps", 1e3},     {"MBps", 1e6},     {"GBps", (1_GBps).si()}, {"TBps", (1_TBps).si()}};
constexpr Unit kFlopRates[] = {{"GFLOP/s", 1e9}, {"TFLOP/s", (1_TFLOPps).si()}, {"PFLOP/s", 1e15}};
constexpr Unit kPowers[] = {{"W", 1}, {"kW", 1e3}, {"MW", 1e6}};

constexpr Measure kSize{"size", kSizes, kBinarySizes, {"MB", "MiB"}};
constexpr Measure kTime{"time", kTimes, kMinute, {"us", "ms"}};
constexpr Measure kBandwidth{"bandwidth", kBandwidths, kOtherBandwidths, {"Gbps", "GB/s"}};
constexpr Measure kFlopRate{"FLOP rate", kFlopRates, {}, {"TFLOP/s", "PFLOP/s"}};
constexpr Measure kPower{"power", kPowers, {}, {"W", "kW"}};
constexpr const Measure* kMeasures[] = {&kSize, &kTime, &kBandwidth, &kFlopRate, &kPower};

std::vector<std::string_view> names_in(const Measure& measure) {
  std::vector<std::string_view> names;
  for (const Unit& unit : measure.printed) names.push_back(unit.name);
  for (const Unit& unit : measure.read) names.push_back(unit.name);
  return names;
}

const Unit* find_unit(const Measure& measure, std::string_view name) {
  for (const std::span<const Unit> units : {measure.printed, measure.read}) {
    const auto row = std::ranges::find(units, name, &Unit::name);
    if (row != units.end()) return &*row;
  }
  return nullptr;
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
std::string our_spelling(std::string_view unit) {
  constexpr std::array<std::string_view, 2> kTails[] = {
      {"bit/s", "bps"},    {"bits/s", "bps"},   {"b/s", "bps"},        {"FLOPS", "FLOP/s"},
      {"FLOPs", "FLOP/s"}, {"flops", "FLOP/s"}, {"FLOPs/s", "FLOP/s"}, {"FLOPps", "FLOP/s"}};
  constexpr std::array<std::string_view, 2> kWords[] = {
      {"sec", "s"},       {"second", "s"}, {"seconds", "s"}, {"minute", "min"},
      {"minutes", "min"}, {"m", "min"},    {"hour", "h"},    {"hours", "h"},
      {"day", "d"},       {"days", "d"},   {"watt", "W"},    {"watts", "W"}};
  for (const auto& [theirs, ours] : kWords)
    if (unit == theirs) return std::string(ours);
  for (const auto& [theirs, ours] : kTails)
    if (unit.ends_with(theirs))
      return std::string(unit.substr(0, unit.size() - theirs.size())).append(ours);
  return std::string(unit);
}

// The units that the written one may stand for: those that differ in the case of the prefix only,
// else those that differ in case anywhere.
std::vector<std::string_view> alike(const Measure& measure, std::string_view unit) {
  std::vector<std::string_view> by_prefix;
  std::vector<std::string_view> by_case;
  for (const std::string_view name : names_in(measure)) {
    if (lowered(name) != lowered(unit)) continue;
    by_case.push_back(name);
    if (name.substr(1) == unit.substr(1)) by_prefix.push_back(name);
  }
  return by_prefix.empty() ? by_case : by_prefix;
}

std::string all_units(const Measure& measure) {
  return fmt::format("units of {}: {}", measure.noun, fmt::join(names_in(measure), " "));
}

UnitProblem unknown_unit(const Measure& measure, std::string_view unit) {
  for (const Measure* other : kMeasures)
    if (find_unit(*other, unit) != nullptr)
      return {fmt::format("\"{}\" is a unit of {}, not of {}", unit, other->noun, measure.noun),
              all_units(measure)};
  const std::string what = fmt::format("unknown unit \"{}\"", unit);
  if (unit.front() == ',') return {what, "decimals follow a point: \"1.5\""};
  if (&measure == &kBandwidth && unit.find("iB") != std::string_view::npos)
    return {what, "bandwidths are decimal: 1GB/s is 1e9 bytes per second"};
  std::vector<std::string> meant;
  for (const std::string_view name : alike(measure, our_spelling(unit)))
    meant.push_back(fmt::format("\"{}\"{}", name, remark(name)));
  if (!meant.empty()) return {what, fmt::format("did you mean {}?", fmt::join(meant, " or "))};
  const std::vector<std::string_view> names = names_in(measure);
  return {what, nearest(unit, names) ? did_you_mean(unit, names) : all_units(measure)};
}

UnitProblem missing_unit(const Measure& measure, std::string_view text, double number) {
  constexpr double kLooksLikeSi = 1e6;  // nobody writes so many Gbps
  const Unit& smallest = measure.printed.front();
  if (std::abs(number) >= kLooksLikeSi && smallest.times == 1 && smallest.over == 1)
    return {"unit missing", fmt::format("write \"{}{}\"", text, smallest.name)};
  if (std::abs(number) >= kLooksLikeSi) return {"unit missing", all_units(measure)};
  const auto [first, second] = measure.usual;
  return {"unit missing", fmt::format("write \"{0}{1}\"{2} or \"{0}{3}\"{4}", text, first,
                                      remark(first), second, remark(second))};
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::variant<double, UnitProblem> parse(const Measure& measure, std::string_view whole) {
  const std::string_view text = trimmed(whole);
  const std::string write =
      fmt::format("write a number and a unit: \"25{}\"", measure.usual.front());
  if (text.empty()) return UnitProblem{fmt::format("empty, a {} is needed", measure.noun), write};

  const std::string_view digits =
      text.starts_with('+') && !text.starts_with("+-") ? text.substr(1) : text;
  double number = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failure == std::errc::invalid_argument)
    return UnitProblem{fmt::format("\"{}\" is no {}", text, measure.noun), write};
  if (failure != std::errc()) return UnitProblem{"the number is too large or too small", ""};
  if (!std::isfinite(number))
    return UnitProblem{fmt::format("\"{}\" is no finite number", text), write};

  const auto length = static_cast<std::size_t>(end - digits.data());
  const std::string_view unit_name = trimmed(digits.substr(length));
  if (unit_name.empty()) return missing_unit(measure, text, number);
  const Unit* unit = find_unit(measure, unit_name);
  if (unit == nullptr) return unknown_unit(measure, unit_name);
  const double value = number * unit->times / unit->over;
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
  if (!std::isfinite(value)) return fmt::format("{}", value);
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
  const auto in = [si](const Unit& unit) { return si * unit.over / unit.times; };
  const Unit* best = &measure.printed.front();
  constexpr double kRoundsToOne = 0.99995;  // to four digits
  for (const Unit& unit : measure.printed)
    if (std::abs(in(unit)) >= kRoundsToOne) best = &unit;
  return fmt::format("{} {}", digits_of(in(*best)), best->name);
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
