// SPDX-License-Identifier: Apache-2.0
// Reading single values: types, ranges and the words of their faults.
#include "sim/scenario/field.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <vector>

#include "sim/base/error.hpp"

namespace scapesim::scenario {
namespace detail {
namespace {

std::string_view kind_of(const Value& value) {
  static constexpr std::array<std::string_view, 5> kKinds = {"a flag", "an integer", "a number",
                                                             "a text", "a list"};
  if (const auto* other = std::get_if<OtherValue>(&value)) return other->what;
  return kKinds[value.index()];
}

bool is_number(std::string_view text) {
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size();
}

/// The share that "1.5%" says.
std::optional<double> share_of(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  text.remove_suffix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  if (!is_number(text)) return std::nullopt;
  return std::stod(std::string(text)) / 100;
}

/// What to write instead of a text where another type is needed; empty when nobody can tell.
std::string way_out(std::string_view text, std::string_view needed) {
  if (is_number(text) || text == "true" || text == "false")
    return fmt::format("write {} without quotes", text);
  const auto share = needed == "a number" ? share_of(text) : std::nullopt;
  return share ? fmt::format("write {:g}", *share) : "";
}

Fault wrong_type(const Value& value, std::string_view needed) {
  const auto* text = std::get_if<std::string>(&value);
  return {fmt::format("{} is needed, not {}", needed, kind_of(value)),
          text == nullptr ? "" : way_out(*text, needed)};
}

}  // namespace

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", text); }

std::string exact(double value, std::string_view unit) { return fmt::format("{}{}", value, unit); }

std::optional<std::vector<std::string>> words_in(const Value& value) {
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) return *list;
  if (const auto* word = std::get_if<std::string>(&value)) return std::vector{*word};
  return std::nullopt;
}

std::string joined(std::span<const std::string_view> words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string range_text(Range<std::int64_t> range) {
  return fmt::format("{} to {}", range.lowest, range.highest);
}

std::string range_text(Range<double> range) {
  return fmt::format("{:g} to {:g}", range.lowest, range.highest);
}

Fault outside(std::string_view shown, std::string_view range) {
  return {fmt::format("{} is out of range", shown), fmt::format("range {}", range)};
}

Fault unknown_word(std::string_view word, std::span<const std::string_view> known) {
  return {fmt::format("unknown word \"{}\"", word), did_you_mean(word, known)};
}

Read<std::int64_t> read_integer(const Value& value, Range<std::int64_t> range) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (integer == nullptr) return wrong_type(value, "an integer");
  if (*integer < range.lowest || *integer > range.highest)
    return outside(std::to_string(*integer), range_text(range));
  return *integer;
}

Read<double> read_number(const Value& value, Range<double> range) {
  double number = 0;
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    number = static_cast<double>(*integer);
  else if (const auto* real = std::get_if<double>(&value))
    number = *real;
  else
    return wrong_type(value, "a number");
  if (!std::isfinite(number)) return Fault{fmt::format("{} is no finite number", number), ""};
  if (number < range.lowest || number > range.highest)
    return outside(fmt::format("{}", number), range_text(range));
  return number;
}

Read<bool> read_flag(const Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  return wrong_type(value, "true or false");
}

Read<std::string> read_text(const Value& value) {
  constexpr std::size_t kLongest = 1000;
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return wrong_type(value, "a text in quotes");
  if (text->empty()) return Fault{"empty", ""};
  if (text->size() > kLongest) return Fault{fmt::format("longer than {} bytes", kLongest), ""};
  for (const char c : *text)
    if (static_cast<unsigned char>(c) < 0x20) return Fault{"holds a control character", ""};
  return *text;
}

Read<std::string> read_quantity_text(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  return wrong_type(value, "a text with a number and a unit");
}

}  // namespace detail

namespace {

/// The words of a list that a switch of the Spec stands for each.
template <class Switches>
struct Switch {
  std::string_view word;
  bool Switches::*is_on;
};

template <class Switches, std::size_t N, class Get>
Field switch_list(const std::array<Switch<Switches>, N>& rows, Get get) {
  std::vector<std::string_view> known;
  for (const auto& row : rows) known.push_back(row.word);
  const auto read = [rows, known](const Value& value) -> detail::Read<Switches> {
    const auto words = detail::words_in(value);
    if (!words) return detail::wrong_type(value, "a list of texts");
    Switches switches;
    for (const auto& row : rows) switches.*row.is_on = false;
    for (const std::string& word : *words) {
      const auto row = std::ranges::find(rows, word, &Switch<Switches>::word);
      if (row == rows.end()) return detail::unknown_word(word, known);
      switches.*row->is_on = true;
    }
    return switches;
  };
  const auto text = [rows](const Switches& switches) {
    std::vector<std::string> words;
    for (const auto& row : rows)
      if (switches.*row.is_on) words.push_back(detail::quoted(row.word));
    return fmt::format("[{}]", fmt::join(words, ", "));
  };
  return detail::field("list", detail::joined(known), get, read, text);
}

}  // namespace

Field offload_list() {
  static constexpr std::array<Switch<spec::Offload>, 2> kRows = {
      {{"residual", &spec::Offload::residual}, {"replica", &spec::Offload::replica}}};
  return switch_list(
      kRows, [](auto& s) -> auto& { return s.strategy.offload; });
}

Field zeropp_list() {
  static constexpr std::array<Switch<spec::ZeroPlusPlus>, 3> kRows = {
      {{"qwz", &spec::ZeroPlusPlus::weights},
       {"hpz", &spec::ZeroPlusPlus::secondary},
       {"qgz", &spec::ZeroPlusPlus::gradients}}};
  return switch_list(
      kRows, [](auto& s) -> auto& { return s.strategy.zeropp; });
}

namespace {

/// A number before one unit, in that unit; "none" gives none.
detail::Read<std::optional<double>> read_in_unit(const Value& value, std::string_view unit,
                                                 double highest, const Fault& needed) {
  const detail::Read<std::string> text = detail::read_quantity_text(value);
  if (const Fault* fault = std::get_if<Fault>(&text)) return *fault;
  std::string_view word = std::get<std::string>(text);
  if (word == "none") return std::optional<double>();
  if (detail::is_number(word))
    return Fault{"unit missing", fmt::format("write \"{}{}\"", word, unit)};
  if (!word.ends_with(unit)) return needed;
  word.remove_suffix(unit.size());
  while (word.ends_with(' ')) word.remove_suffix(1);
  if (!detail::is_number(word)) return needed;
  const double number = std::stod(std::string(word));
  if (!(number >= 0 && number <= highest))
    return detail::outside(std::get<std::string>(text),
                           fmt::format("0{} to {}{}, or none", unit, highest, unit));
  return std::optional<double>(number);
}

/// An optional quantity in one unit, so many of them a unit of SI.
template <class Q, class Get>
Field in_one_unit(std::string_view type, std::string_view unit, double per_si, double highest,
                  Fault needed, Get get) {
  const auto read = [=](const Value& value) -> detail::Read<std::optional<Q>> {
    const auto number = read_in_unit(value, unit, highest, needed);
    if (const Fault* fault = std::get_if<Fault>(&number)) return *fault;
    const std::optional<double>& given = std::get<std::optional<double>>(number);
    return given ? std::optional<Q>(Q(*given / per_si)) : std::optional<Q>();
  };
  const auto text = [=](const std::optional<Q>& value) {
    return detail::quoted(value ? detail::exact(value->si() * per_si, unit) : "none");
  };
  return detail::field(type, fmt::format("0{} to {}{}, or none", unit, highest, unit), get, read,
                       text);
}

}  // namespace

Field hourly_price() {
  return in_one_unit<DollarsPerSecond>(
      "dollars per hour", "USD/h", 3600, 1e6, {"a price is needed", "such as \"2.5USD/h\""},
      [](auto& s) -> auto& { return s.cluster.gpu_price; });
}

Field carbon_intensity() {
  return in_one_unit<KilogramsPerJoule>(
      "grams per kilowatt-hour", "g/kWh", 3.6e9, 1e5,
      {"a carbon intensity is needed", "such as \"385g/kWh\""},
      [](auto& s) -> auto& { return s.cluster.carbon_intensity; });
}

Field biases() {
  Field field = choice([](auto& s) -> auto& { return s.model.biases; });
  auto word = std::move(field.store);
  field.store = [word](spec::Scenario& scenario, const Value& value) -> std::optional<Fault> {
    const auto* flag = std::get_if<bool>(&value);
    if (flag == nullptr) return word(scenario, value);
    scenario.model.biases = *flag ? spec::Biases::all : spec::Biases::none;
    return std::nullopt;
  };
  return field;
}

Field dimensions() {
  constexpr std::size_t kMost = 4;
  constexpr int kLongest = 10'000;  // four of them multiply within 64 bits
  const std::string range = fmt::format("1 to {} numbers of 1 to {}, or none", kMost, kLongest);
  const auto read = [=](const Value& value) -> detail::Read<std::vector<int>> {
    const detail::Read<std::string> text = detail::read_text(value);
    if (const Fault* fault = std::get_if<Fault>(&text))
      return Fault{fault->what, "such as \"8x8x4\""};
    std::string_view rest = std::get<std::string>(text);
    std::vector<int> extents;
    if (rest == "none") return extents;
    while (true) {
      const std::size_t end = std::min(rest.find('x'), rest.size());
      int extent = 0;
      const auto [stop, failure] = std::from_chars(rest.data(), rest.data() + end, extent);
      if (failure == std::errc::invalid_argument || stop != rest.data() + end)
        return Fault{
            fmt::format("\"{}\" is no product of whole numbers", std::get<std::string>(text)),
            "such as \"8x8x4\""};
      if (failure != std::errc() || extent < 1 || extent > kLongest)
        return detail::outside(rest.substr(0, end), range);
      extents.push_back(extent);
      if (end == rest.size()) break;
      rest.remove_prefix(end + 1);
    }
    if (extents.size() > kMost)
      return detail::outside(fmt::format("{} dimensions", extents.size()), range);
    return extents;
  };
  const auto text = [](const std::vector<int>& extents) {
    return detail::quoted(extents.empty() ? "none" : fmt::format("{}", fmt::join(extents, "x")));
  };
  return detail::field(
      "sizes", range, [](auto& s) -> auto& { return s.cluster.fabric.dimensions; }, read, text);
}

Field mesh_order() {
  const auto read = [](const Value& value) -> detail::Read<spec::MeshOrder> {
    const detail::Read<std::string> text = detail::read_text(value);
    if (const Fault* fault = std::get_if<Fault>(&text)) return *fault;
    const Fault no_order{
        fmt::format("\"{}\" does not name each axis once", std::get<std::string>(text)),
        "such as \"tp-cp-ep-dp-pp\""};
    spec::MeshOrder order{};
    std::string_view rest = std::get<std::string>(text);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t end = std::min(rest.find('-'), rest.size());
      const auto axis = find_named<spec::MeshAxis>(rest.substr(0, end));
      if (!axis || std::find(order.begin(), order.begin() + i, *axis) != order.begin() + i)
        return no_order;
      order[i] = *axis;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (!rest.empty()) return no_order;
    return order;
  };
  const auto text = [](const spec::MeshOrder& order) {
    std::vector<std::string_view> words;
    for (const spec::MeshAxis axis : order) words.push_back(name_of(axis));
    return detail::quoted(fmt::format("{}", fmt::join(words, "-")));
  };
  return detail::field(
      "axes", "tp-cp-ep-dp-pp to pp-dp-ep-cp-tp, any order",
      [](auto& s) -> auto& { return s.parallelism.order; }, read, text);
}

Field stage_layers() {
  constexpr int kMost = 10'000;
  const auto read = [=](const Value& value) -> detail::Read<std::vector<int>> {
    const detail::Read<std::string> text = detail::read_text(value);
    if (const Fault* fault = std::get_if<Fault>(&text))
      return Fault{fault->what, "such as \"12,13,13,10\""};
    std::string_view rest = std::get<std::string>(text);
    std::vector<int> layers;
    if (rest == "even") return layers;
    while (true) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      std::string_view word = rest.substr(0, end);
      word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
      int count = 0;
      const auto [stop, failure] = std::from_chars(word.data(), word.data() + word.size(), count);
      if (failure != std::errc() || stop != word.data() + word.size() || count < 0 || count > kMost)
        return Fault{fmt::format("\"{}\" is no list of layer counts", std::get<std::string>(text)),
                     "such as \"12,13,13,10\""};
      layers.push_back(count);
      if (end == rest.size()) return layers;
      rest.remove_prefix(end + 1);
    }
  };
  const auto text = [](const std::vector<int>& layers) {
    return detail::quoted(layers.empty() ? "even" : fmt::format("{}", fmt::join(layers, ",")));
  };
  return detail::field(
      "counts", "0 to 10000 per stage and chunk, or even",
      [](auto& s) -> auto& { return s.parallelism.stage_layers; }, read, text);
}

}  // namespace scapesim::scenario
