// SPDX-License-Identifier: Apache-2.0
// Reads TOML with toml++ and keeps the place of every key and value.
#include "sim/scenario/toml_text.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <toml++/toml.h>

#include "sim/scenario/field.hpp"

namespace scapesim::scenario {
namespace {

constexpr std::string_view kSetFile = "--set";

Place place_of(const toml::source_region& region, const std::string& file) {
  return {file, static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

Value list_of(const toml::array& array) {
  std::vector<std::string> words;
  for (const toml::node& element : array) {
    const auto* word = element.as_string();
    if (word == nullptr)
      return OtherValue{element.is_number() ? "a list of numbers" : "a list of other things"};
    words.push_back(word->get());
  }
  return words;
}

Value value_of(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return std::int64_t{integer->get()};
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* array = node.as_array()) return list_of(*array);
  return OtherValue{node.is_table() ? "a table" : "a date or time"};
}

Setting setting_of(std::string section, std::string name, const toml::key& key,
                   const toml::node& node, const std::string& file) {
  return {.section = std::move(section),
          .name = std::move(name),
          .value = value_of(node),
          .key_place = place_of(key.source(), file),
          .place = place_of(node.source(), file),
          .given = {}};
}

void append_section(const toml::table& table, const std::string& section, const std::string& file,
                    std::vector<Setting>& settings) {
  for (const auto& [key, node] : table)
    settings.push_back(setting_of(section, std::string(key.str()), key, node, file));
}

// The `set` of a variant: {"strategy.method" = "scape"} and {strategy = {method = "scape"}} alike.
std::vector<Setting> variant_settings(const toml::table& table, const std::string& file,
                                      Problems& problems) {
  std::vector<Setting> settings;
  for (const auto& [key, node] : table) {
    const std::string_view word = key.str();
    const std::size_t dot = word.find('.');
    if (const toml::table* inner = node.as_table()) {
      append_section(*inner, std::string(word), file, settings);
    } else if (dot != std::string_view::npos) {
      settings.push_back(setting_of(std::string(word.substr(0, dot)),
                                    std::string(word.substr(dot + 1)), key, node, file));
    } else {
      problems.add(place_of(key.source(), file), "variant.set." + std::string(word),
                   "a key of a section is needed", "such as \"strategy.method\"");
    }
  }
  for (Setting& setting : settings) setting.layer = Layer::variant;
  for (std::size_t i = 0; i < settings.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (settings[i].section == settings[j].section && settings[i].name == settings[j].name)
        problems.add(settings[i].key_place, key_text(settings[i].section, settings[i].name),
                     "given twice in one variant");
  return settings;
}

Variant variant_of(const toml::table& table, const std::string& file, Problems& problems) {
  static constexpr std::array<std::string_view, 2> kKnown = {"name", "set"};
  Variant variant;
  for (const auto& [key, node] : table) {
    const Place place = place_of(node.source(), file);
    if (key.str() == "name") {
      detail::Read<std::string> text = detail::read_text(value_of(node));
      if (const Fault* fault = std::get_if<Fault>(&text))
        problems.add(place, "variant.name", fault->what, fault->hint);
      else
        variant.name = std::get<std::string>(std::move(text));
    } else if (key.str() == "set") {
      if (const toml::table* set = node.as_table())
        variant.set = variant_settings(*set, file, problems);
      else
        problems.add(place, "variant.set", "a table is needed",
                     "such as { \"strategy.method\" = \"scape\" }");
    } else {
      problems.add(place_of(key.source(), file), "variant." + std::string(key.str()), "unknown key",
                   did_you_mean(key.str(), kKnown));
    }
  }
  if (!table.contains("name"))
    problems.add(place_of(table.source(), file), "variant.name", "missing",
                 "every variant needs one, such as name = \"SCAPE\"");
  return variant;
}

std::vector<Variant> variants_of(const toml::node& node, const std::string& file,
                                 Problems& problems) {
  std::vector<Variant> variants;
  const toml::array* array = node.as_array();
  if (array == nullptr || !array->is_homogeneous<toml::table>()) {
    problems.add(place_of(node.source(), file), "variant", "tables [[variant]] are needed");
    return variants;
  }
  for (const toml::node& element : *array) {
    Variant variant = variant_of(*element.as_table(), file, problems);
    if (!variant.name.empty() && std::ranges::count(variants, variant.name, &Variant::name) > 0)
      problems.add(place_of(element.source(), file), "variant.name",
                   fmt::format("\"{}\" is the name of two variants", variant.name));
    variants.push_back(std::move(variant));
  }
  return variants;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

bool is_integer(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789_") == std::string_view::npos;
}

// TOML where the text is TOML. A text that opens a string, list or table has to be; anything else,
// like 800Gbps, is a word.
Value set_value(std::string_view text) {
  constexpr std::string_view kOpening = "\"'[{";
  const bool must_be_toml = !text.empty() && kOpening.find(text.front()) != std::string_view::npos;
  if (text.find_first_of("\r\n") != std::string_view::npos) return std::string(text);
  try {
    const toml::table table = toml::parse("v=" + std::string(text));
    return value_of(*table.get("v"));
  } catch (const toml::parse_error&) {
    if (must_be_toml) throw;
    if (is_integer(text)) return OtherValue{"too large an integer"};
    return std::string(text);
  }
}

}  // namespace

Document parse_document(std::string_view text, const std::string& file, Problems& problems) {
  toml::table root;
  try {
    root = toml::parse(text);
  } catch (const toml::parse_error& error) {
    const bool control = error.description().find("control characters") != std::string_view::npos;
    throw InputError({Problem{.place = place_of(error.source(), file),
                              .key = {},
                              .what = fmt::format("no TOML: {}", error.description()),
                              .hint = control ? "is the closing quote missing?" : ""}});
  }
  Document document;
  for (const auto& [key, node] : root) {
    const std::string word(key.str());
    if (word == "variant") {
      document.variants = variants_of(node, file, problems);
    } else if (const toml::table* table = node.as_table()) {
      document.sections.push_back({word, place_of(key.source(), file)});
      append_section(*table, word, file, document.settings);
    } else {
      document.settings.push_back(setting_of("", word, key, node, file));
    }
  }
  return document;
}

std::optional<Setting> parse_set(const std::string& text, int ordinal, Problems& problems) {
  const auto place = [&](std::size_t offset) {
    return Place{std::string(kSetFile), ordinal, static_cast<int>(offset) + 1};
  };
  const std::size_t equals = text.find('=');
  const std::string_view key = trimmed(std::string_view(text).substr(0, equals));
  if (equals == std::string::npos || key.empty()) {
    problems.add(place(0), {}, fmt::format("\"{}\" is no KEY=VALUE", text),
                 "such as strategy.density=0.1");
    return std::nullopt;
  }
  const std::size_t dot = key.find('.');
  const bool has_section = dot != std::string_view::npos;
  const std::string_view value = trimmed(std::string_view(text).substr(equals + 1));
  const std::size_t value_offset =
      value.empty() ? text.size() : static_cast<std::size_t>(value.data() - text.data());
  Setting setting{.section = std::string(has_section ? key.substr(0, dot) : ""),
                  .name = std::string(has_section ? key.substr(dot + 1) : key),
                  .value = {},
                  .key_place = place(static_cast<std::size_t>(key.data() - text.data())),
                  .place = place(value_offset),
                  .given = text,
                  .layer = Layer::set};
  try {
    setting.value = set_value(value);
  } catch (const toml::parse_error& error) {
    constexpr std::size_t kPrefix = 3;  // the "v=" that is parsed before it, columns from 1
    const std::size_t column = std::max<std::size_t>(error.source().begin.column, kPrefix);
    problems.add(place(value_offset + column - kPrefix), std::string(key),
                 fmt::format("no TOML value: {} [{}]", error.description(), text));
    return std::nullopt;
  }
  return setting;
}

}  // namespace scapesim::scenario
