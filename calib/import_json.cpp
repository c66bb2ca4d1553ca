// SPDX-License-Identifier: Apache-2.0
#include "calib/import_json.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "calib/import_text.hpp"

namespace scapesim::calib {

namespace {

const Json kNull;

[[noreturn]] void fail_at(std::string_view text, std::size_t offset, const std::string& file,
                          std::string hint) {
  const std::string_view before = text.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t start = before.rfind('\n');
  const std::size_t column = start == before.npos ? before.size() : before.size() - start - 1;
  throw InputError(Problem{{file, static_cast<int>(line), static_cast<int>(column) + 1},
                           "",
                           "not valid JSON",
                           std::move(hint)});
}

/// Position behind the string that begins at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at)
    if (text[at] == '\\') ++at;
  return std::min(at + 1, text.size());
}

}  // namespace

Json parse_json(std::string_view text, const std::string& file,
                const Json::parser_callback_t& keep) {
  try {
    return Json::parse(text, keep);
  } catch (const Json::parse_error& error) {
    const std::size_t offset = std::min(error.byte == 0 ? 0 : error.byte - 1, text.size());
    fail_at(
        text, offset, file,
        offset == text.size() ? "the file is cut off here" : "a character is out of place here");
  } catch (const Json::exception&) {
    throw InputError(Problem{{.file = file}, "", "not valid JSON", "a number may be too large"});
  }
}

std::vector<std::string_view> outer_keys(std::string_view text) {
  constexpr std::size_t kEnough = std::size_t{1} << 20U;
  text = text.substr(0, kEnough);
  std::vector<std::string_view> keys;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos || text[first] != '{') return keys;
  int depth = 0;
  for (std::size_t at = first; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth == 0) break;
    if (c != '"') continue;
    const std::size_t end = end_of_string(text, at);
    const std::size_t colon = text.find_first_not_of(" \t\r\n", end);
    if (depth == 1 && colon != text.npos && text[colon] == ':')
      keys.push_back(text.substr(at + 1, end - at - 2));
    at = end - 1;
  }
  return keys;
}

bool has_outer_keys(std::string_view text, std::initializer_list<std::string_view> wanted) {
  const std::vector<std::string_view> keys = outer_keys(text);
  return std::ranges::all_of(wanted, [&](std::string_view key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  });
}

const Json& member(const Json& object, std::string_view key) {
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

const Json& list_in(const Json& object, std::string_view key) {
  static const Json kEmpty = Json::array();
  const Json& value = member(object, key);
  return value.is_array() ? value : kEmpty;
}

std::optional<double> number_in(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  if (value.is_string()) return number_of(value.get_ref<const std::string&>());
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::optional<double> positive_in(const Json& object, std::string_view key) {
  const std::optional<double> value = number_in(object, key);
  return value && *value > 0 ? value : std::nullopt;
}

std::optional<int> count_in(const Json& object, std::string_view key) {
  const std::optional<double> value = number_in(object, key);
  const bool whole = value && *value >= 1 && *value <= std::numeric_limits<int>::max() &&
                     *value == std::floor(*value);
  return whole ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

std::string text_in(const Json& object, std::string_view key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

void add_unparsed(const Json& record, std::string_view why, Observations& into) {
  std::string shown = record.dump(-1, ' ', true, Json::error_handler_t::replace);
  constexpr std::size_t kShown = 120;
  shown.resize(std::min(shown.size(), kShown));
  add_unparsed(0, std::string(why) + ": " + shown, Looks::like_data, into);
}

}  // namespace scapesim::calib
