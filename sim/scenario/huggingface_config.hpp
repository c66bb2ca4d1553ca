// SPDX-License-Identifier: Apache-2.0
// A config.json being read: every value asked for by name, faults with their place, settings of
// [model] as the result.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "sim/scenario/toml_text.hpp"

namespace scapesim::scenario {

class ConfigReader {
 public:
  /// Throws InputError when the file is no JSON object.
  ConfigReader(const std::filesystem::path& file, const std::string& text);

  /// Values; of several names the first that is there. A missing one without a fallback, and one
  /// of another type, is a problem and reads as 1, false or empty. Null is as good as missing.
  std::int64_t integer(std::initializer_list<std::string_view> names,
                       std::optional<std::int64_t> fallback = {});
  bool flag(std::string_view name, bool fallback);
  std::string word(std::initializer_list<std::string_view> names,
                   std::optional<std::string> fallback = {});
  bool has(std::string_view name) const;
  /// The first of "architectures"; empty with a problem when there is none.
  std::string architecture();
  /// True when the key is absent, null, or an empty list.
  bool empty_list(std::string_view name);
  /// The part of the config in an object of its own, such as attn_config; absent: an empty one.
  ConfigReader inner(std::string_view name);

  void add_problem(std::string_view key, std::string what, std::string hint = {});
  /// Puts model.<name>; `from` is the key of the config that it comes from.
  void set(std::string_view name, Value value, std::string_view from = {});
  /// Joins what an inner reader met.
  void take(ConfigReader&& inner);

  /// Settings; keys that nobody asked for and that are not known to leave the computation alone
  /// are its unread ones. Throws InputError with all problems.
  Document document() &&;

 private:
  ConfigReader(std::string file, std::string text, nlohmann::json object)
      : file_(std::move(file)), text_(std::move(text)), object_(std::move(object)) {}
  const nlohmann::json* find(std::initializer_list<std::string_view> names);
  Place place_of(std::string_view key) const;
  void add_unread();

  std::string file_, text_;
  nlohmann::json object_;
  std::set<std::string, std::less<>> read_;
  Problems problems_;
  Document document_;
};

}  // namespace scapesim::scenario
