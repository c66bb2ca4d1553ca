// SPDX-License-Identifier: Apache-2.0
// How a key is read, checked and written: one maker per type of value. The makers take an accessor
// that returns the member of the Spec, so that a row of the key table says where its value goes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "sim/base/named.hpp"
#include "sim/base/unit_text.hpp"
#include "sim/scenario/value.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::scenario {

/// What is wrong with a value, and a way out.
using Fault = UnitProblem;

struct Field {
  std::string_view type;
  std::string range;
  /// Puts the value into the Spec; a value of the wrong type or out of range is a fault.
  std::function<std::optional<Fault>(spec::Scenario&, const Value&)> store;
  /// The value now in the Spec as TOML, exact. Empty function: not part of what is simulated.
  std::function<std::string(const spec::Scenario&)> text;
};

/// Inclusive bounds.
template <class T>
struct Range {
  T lowest;
  T highest;
};

namespace detail {

template <class T>
using Read = std::variant<T, Fault>;

Read<std::int64_t> read_integer(const Value& value, Range<std::int64_t> range);
Read<double> read_number(const Value& value, Range<double> range);
Read<bool> read_flag(const Value& value);
Read<std::string> read_text(const Value& value);
/// The text of a quantity for the unit parser; a bare number comes back as its digits.
Read<std::string> read_quantity_text(const Value& value);
/// A list of texts, or one alone; none where the value is neither.
std::optional<std::vector<std::string>> words_in(const Value& value);
Fault unknown_word(std::string_view word, std::span<const std::string_view> known);
Fault outside(std::string_view shown, std::string_view range);
std::string range_text(Range<std::int64_t> range);
std::string range_text(Range<double> range);
std::string joined(std::span<const std::string_view> words);
std::string quoted(std::string_view text);
std::string exact(double value, std::string_view unit);

template <class Q>
struct QuantityType;
template <>
struct QuantityType<Bytes> {
  static constexpr std::string_view kType = "bytes", kUnit = "B";
  static constexpr double kUnitSi = 1;
  static Parsed<Bytes> parse(std::string_view text) { return parse_bytes(text); }
};
template <>
struct QuantityType<Seconds> {
  static constexpr std::string_view kType = "seconds", kUnit = "s";
  static constexpr double kUnitSi = 1;
  static Parsed<Seconds> parse(std::string_view text) { return parse_seconds(text); }
};
template <>
struct QuantityType<BytesPerSecond> {
  static constexpr std::string_view kType = "bytes/s", kUnit = "B/s";
  static constexpr double kUnitSi = 1;
  static Parsed<BytesPerSecond> parse(std::string_view text) {
    return parse_bytes_per_second(text);
  }
};
template <>
struct QuantityType<FlopsPerSecond> {
  static constexpr std::string_view kType = "FLOP/s", kUnit = "GFLOP/s";
  static constexpr double kUnitSi = 1e9;
  static Parsed<FlopsPerSecond> parse(std::string_view text) {
    return parse_flops_per_second(text);
  }
};
template <>
struct QuantityType<Watts> {
  static constexpr std::string_view kType = "watts", kUnit = "W";
  static constexpr double kUnitSi = 1;
  static Parsed<Watts> parse(std::string_view text) { return parse_watts(text); }
};

template <class Q>
Read<Q> read_quantity(const Value& value, Range<Q> range, std::string_view shown_range) {
  const Read<std::string> text = read_quantity_text(value);
  if (const Fault* fault = std::get_if<Fault>(&text)) return *fault;
  const Parsed<Q> parsed = QuantityType<Q>::parse(std::get<std::string>(text));
  const Q* quantity = std::get_if<Q>(&parsed);
  if (quantity == nullptr) return std::get<UnitProblem>(parsed);
  if (*quantity < range.lowest || *quantity > range.highest)
    return outside(std::get<std::string>(text), shown_range);
  return *quantity;
}

/// A field whose value is read by `read` and put where `get` points.
template <class Get, class ReadValue, class Text>
Field field(std::string_view type, std::string range, Get get, ReadValue read, Text text) {
  using Member = std::remove_cvref_t<decltype(get(std::declval<spec::Scenario&>()))>;
  auto store = [get, read](spec::Scenario& scenario, const Value& value) -> std::optional<Fault> {
    auto result = read(value);
    if (Fault* fault = std::get_if<Fault>(&result)) return std::move(*fault);
    get(scenario) = static_cast<Member>(std::get<0>(std::move(result)));
    return std::nullopt;
  };
  auto write = [get, text](const spec::Scenario& scenario) { return text(get(scenario)); };
  return {type, std::move(range), std::move(store), std::move(write)};
}

}  // namespace detail

template <class Get>
Field integer(Get get, Range<std::int64_t> range) {
  return detail::field(
      "integer", detail::range_text(range), get,
      [range](const Value& value) { return detail::read_integer(value, range); },
      [](auto value) { return std::to_string(value); });
}

template <class Get>
Field number(Get get, Range<double> range) {
  return detail::field(
      "number", detail::range_text(range), get,
      [range](const Value& value) { return detail::read_number(value, range); },
      [](double value) { return detail::exact(value, ""); });
}

template <class Get>
Field flag(Get get) {
  return detail::field("flag", "true, false", get, detail::read_flag,
                       [](bool value) { return std::string(value ? "true" : "false"); });
}

template <class Get>
Field text(Get get) {
  return detail::field("text", "", get, detail::read_text,
                       [](const std::string& value) { return detail::quoted(value); });
}

/// One of the words of an enumeration.
template <class Get>
Field choice(Get get) {
  using E = std::remove_cvref_t<decltype(get(std::declval<spec::Scenario&>()))>;
  const auto read = [](const Value& value) -> detail::Read<E> {
    const detail::Read<std::string> word = detail::read_text(value);
    if (const Fault* fault = std::get_if<Fault>(&word)) return *fault;
    if (const auto found = find_named<E>(std::get<std::string>(word))) return *found;
    return detail::unknown_word(std::get<std::string>(word), all_names<E>());
  };
  return detail::field("one of", detail::joined(all_names<E>()), get, read,
                       [](E value) { return detail::quoted(name_of(value)); });
}

template <class Q, class Get>
Field quantity(Get get, Range<Q> range) {
  using Type = detail::QuantityType<Q>;
  const std::string shown = text_of(range.lowest) + " to " + text_of(range.highest);
  return detail::field(
      Type::kType, shown, get,
      [range, shown](const Value& value) { return detail::read_quantity(value, range, shown); },
      [](Q value) {
        return detail::quoted(detail::exact(value.si() / Type::kUnitSi, Type::kUnit));
      });
}

/// A quantity or the word "none"; the member is a std::optional.
template <class Q, class Get>
Field optional_quantity(Get get, Range<Q> range) {
  using Type = detail::QuantityType<Q>;
  using Optional = std::optional<Q>;
  const std::string shown = text_of(range.lowest) + " to " + text_of(range.highest) + ", or none";
  const auto read = [range, shown](const Value& value) -> detail::Read<Optional> {
    if (const auto* word = std::get_if<std::string>(&value); word != nullptr && *word == "none")
      return Optional();
    const detail::Read<Q> result = detail::read_quantity(value, range, shown);
    if (const Fault* fault = std::get_if<Fault>(&result)) return *fault;
    return Optional(std::get<Q>(result));
  };
  return detail::field(Type::kType, shown, get, read, [](const Optional& value) {
    return detail::quoted(value ? detail::exact(value->si() / Type::kUnitSi, Type::kUnit) : "none");
  });
}

/// An integer or the word "none"; the member is a std::optional.
template <class Get>
Field optional_integer(Get get, Range<std::int64_t> range) {
  using Optional = std::remove_cvref_t<decltype(get(std::declval<spec::Scenario&>()))>;
  const auto read = [range](const Value& value) -> detail::Read<Optional> {
    if (const auto* word = std::get_if<std::string>(&value); word != nullptr && *word == "none")
      return Optional();
    const detail::Read<std::int64_t> result = detail::read_integer(value, range);
    if (const Fault* fault = std::get_if<Fault>(&result)) return *fault;
    return Optional(static_cast<typename Optional::value_type>(std::get<std::int64_t>(result)));
  };
  return detail::field("integer", detail::range_text(range) + ", or none", get, read,
                       [](const Optional& value) {
                         return value ? std::to_string(*value) : detail::quoted("none");
                       });
}

/// A number or the word "none"; the member is a std::optional.
template <class Get>
Field optional_number(Get get, Range<double> range) {
  using Optional = std::optional<double>;
  const auto read = [range](const Value& value) -> detail::Read<Optional> {
    if (const auto* word = std::get_if<std::string>(&value); word != nullptr && *word == "none")
      return Optional();
    const detail::Read<double> result = detail::read_number(value, range);
    if (const Fault* fault = std::get_if<Fault>(&result)) return *fault;
    return Optional(std::get<double>(result));
  };
  return detail::field("number", detail::range_text(range) + ", or none", get, read,
                       [](const Optional& value) {
                         return value ? detail::exact(*value, "") : detail::quoted("none");
                       });
}

/// Name of a preset or a path; becomes the name of what it describes.
template <class Get>
Field preset(Get get) {
  Field result = text(get);
  result.text = nullptr;  // the values it stands for are simulated, not its name
  return result;
}

/// A word of spec::Biases, or true and false for all and none.
Field biases();
/// Which state lives in host memory: a list of "residual", "replica".
Field offload_list();
/// Parts of ZeRO++: a list of "qwz", "hpz", "qgz".
Field zeropp_list();
/// "2.5USD/h"
Field hourly_price();
/// "385g/kWh"
Field carbon_intensity();
/// Extents of a torus: "8x8x4".
Field dimensions();
/// The axes of the mesh, the fastest first: "tp-cp-ep-dp-pp".
Field mesh_order();
/// Transformer layers per part of a pipeline: "12,13,12" or "even".
Field stage_layers();

}  // namespace scapesim::scenario
