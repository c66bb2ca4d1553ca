// SPDX-License-Identifier: Apache-2.0
#include "sim/scenario/study_file.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "sim/scenario/preset.hpp"

namespace scapesim::scenario {
namespace {

std::string_view words_of(StudyKey::Type type) {
  switch (type) {
    case StudyKey::Type::text:
      return "a text in quotes";
    case StudyKey::Type::texts:
      return "a list of texts";
    case StudyKey::Type::flag:
      return "true or false";
    case StudyKey::Type::number:
      return "a number";
  }
  return "";
}

bool fits(const Value& value, StudyKey::Type type) {
  switch (type) {
    case StudyKey::Type::text:
      return std::holds_alternative<std::string>(value);
    case StudyKey::Type::texts:
      return std::holds_alternative<std::vector<std::string>>(value) ||
             std::holds_alternative<std::string>(value);
    case StudyKey::Type::flag:
      return std::holds_alternative<bool>(value);
    case StudyKey::Type::number:
      return std::holds_alternative<double>(value) || std::holds_alternative<std::int64_t>(value);
  }
  return false;
}

/// Where a file of another kind belongs.
std::string hint_for(const std::string& kind) {
  static constexpr std::string_view kKinds[] = {"sweep", "compare", "sensitivity", "plan"};
  if (kind.empty()) return "";
  if (std::ranges::find(kKinds, kind) != std::end(kKinds))
    return fmt::format("try scapesim {}", kind);
  return did_you_mean(kind, kKinds);
}

void check_setting(const Setting& setting, std::string_view kind, std::span<const StudyKey> keys,
                   Problems& problems) {
  const std::string key = key_text(setting.section, setting.name);
  const auto known = std::ranges::find(keys, setting.name, &StudyKey::name);
  if (setting.section != "study" || known == keys.end()) {
    std::vector<std::string_view> names = {"kind", "description"};
    for (const StudyKey& row : keys) names.push_back(row.name);
    problems.add(setting.key_place, key, fmt::format("no key of a {}", kind),
                 did_you_mean(setting.name, names));
  } else if (!fits(setting.value, known->type)) {
    problems.add(setting.place, key, fmt::format("{} is needed", words_of(known->type)));
  }
}

}  // namespace

const Setting* StudyFile::find(std::string_view name) const {
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found == settings.end() ? nullptr : &*found;
}

std::string StudyFile::text(std::string_view name) const {
  const Setting* setting = find(name);
  return setting == nullptr ? "" : std::get<std::string>(setting->value);
}

std::vector<std::string> StudyFile::texts(std::string_view name) const {
  const Setting* setting = find(name);
  if (setting == nullptr) return {};
  if (const auto* one = std::get_if<std::string>(&setting->value)) return {*one};
  return std::get<std::vector<std::string>>(setting->value);
}

bool StudyFile::flag(std::string_view name) const {
  const Setting* setting = find(name);
  return setting != nullptr && std::get<bool>(setting->value);
}

std::optional<double> StudyFile::number(std::string_view name) const {
  const Setting* setting = find(name);
  if (setting == nullptr) return std::nullopt;
  if (const auto* integer = std::get_if<std::int64_t>(&setting->value))
    return static_cast<double>(*integer);
  return std::get<double>(setting->value);
}

std::filesystem::path StudyFile::path(std::string_view name) const {
  const std::string given = text(name);
  return given.empty() ? std::filesystem::path() : file.parent_path() / given;
}

std::optional<StudyFile> read_study(const std::filesystem::path& file, std::string_view kind,
                                    std::span<const StudyKey> keys) {
  Problems problems;
  const Document document = read_document(file, "scenario or study", problems);
  const auto table = std::ranges::find(document.sections, "study", &Section::name);
  if (table == document.sections.end()) return std::nullopt;
  StudyFile study{.file = file, .kind = {}, .settings = {}};
  for (const Setting& setting : document.settings) {
    if (setting.section == "study" && setting.name == "kind") {
      const auto* word = std::get_if<std::string>(&setting.value);
      study.kind = word == nullptr ? "" : *word;
      if (study.kind != kind)
        problems.add(setting.place, "study.kind", fmt::format("\"{}\" is needed here", kind),
                     hint_for(study.kind));
    } else if (setting.name != "description") {
      check_setting(setting, kind, keys, problems);
      study.settings.push_back(setting);
    }
  }
  if (study.kind.empty() && problems.empty())
    problems.add(table->place, "study.kind", "missing", fmt::format("kind = \"{}\"", kind));
  problems.raise();
  return study;
}

}  // namespace scapesim::scenario
