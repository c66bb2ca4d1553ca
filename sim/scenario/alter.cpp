// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/alter.hpp"

#include <charconv>
#include <fmt/format.h>

#include "sim/base/check.hpp"
#include "sim/scenario/keys.hpp"
#include "sim/scenario/resolve.hpp"
#include "sim/scenario/toml_text.hpp"
#include "topologies/degraded.hpp"

namespace scapesim::scenario {
namespace {

const Key& key_of(std::string_view name) {
  const std::size_t dot = name.find('.');
  SCAPESIM_CHECK(dot != std::string_view::npos, "key {}", name);
  const auto row = find_key(name.substr(0, dot), name.substr(dot + 1));
  SCAPESIM_CHECK(row.has_value(), "key {}", name);
  return keys()[*row];
}

}  // namespace

std::vector<KeyValue> key_values(const spec::Scenario& scenario) {
  std::vector<KeyValue> list;
  for (const Key& key : keys())
    if (key.field.text)
      list.push_back({key_text(key.section, key.name), key.field.type, key.field.range,
                      key.field.text(scenario)});
  return list;
}

std::vector<Difference> differences(const std::vector<const spec::Scenario*>& scenarios) {
  std::vector<Difference> list;
  for (const Key& key : keys()) {
    if (!key.field.text) continue;
    Difference row{.key = key_text(key.section, key.name), .texts = {}};
    bool same = true;
    for (const spec::Scenario* scenario : scenarios) {
      row.texts.push_back(key.field.text(*scenario));
      same = same && row.texts.back() == row.texts.front();
    }
    if (!same) list.push_back(std::move(row));
  }
  return list;
}

Altered altered(const spec::Scenario& scenario, std::string_view key, const Value& value) {
  spec::Scenario other = scenario;
  if (const auto fault = key_of(key).field.store(other, value)) return fault->what;
  std::vector<spec::Violation> broken = spec::violations(other);
  if (broken.empty()) broken = topology::degraded_violations(other.cluster);
  if (!broken.empty()) return fmt::format("{}: {}", broken.front().key, broken.front().what);
  other.hash = hash_of(other);
  return other;
}

void assign(spec::Scenario& scenario, std::string_view key, const std::string& text) {
  Problems problems;
  const auto setting = parse_set(fmt::format("{}={}", key, text), 1, problems);
  problems.raise();
  const auto row = find_key(setting->section, setting->name);
  if (!row) {
    const std::vector<std::string_view> names = names_in_section(setting->section);
    throw InputError(
        Problem{{}, std::string(key), "unknown key", did_you_mean(setting->name, names)});
  }
  if (auto fault = keys()[*row].field.store(scenario, setting->value))
    throw InputError(Problem{{}, std::string(key), std::move(fault->what), std::move(fault->hint)});
}

std::variant<NumberText, std::string> number_of(std::string_view text) {
  if (text.starts_with('"')) text = text.substr(1, text.size() - 2);
  NumberText found;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), found.number);
  if (failure != std::errc()) return fmt::format("{} is no number", text);
  found.unit = std::string(end, text.data() + text.size());
  return found;
}

Altered multiplied(const spec::Scenario& scenario, std::string_view key, double factor) {
  const auto read = number_of(key_of(key).field.text(scenario));
  if (const auto* why = std::get_if<std::string>(&read)) return *why;
  const auto& [number, unit] = std::get<NumberText>(read);
  if (number == 0) return std::string("it is 0");
  if (unit.empty()) return altered(scenario, key, Value(number * factor));
  return altered(scenario, key, Value(fmt::format("{}{}", number * factor, unit)));
}

}  // namespace scapesim::scenario
