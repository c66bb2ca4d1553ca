// SPDX-License-Identifier: Apache-2.0
// Finding, listing and reading presets.
#include "sim/scenario/preset.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <system_error>

#include "sim/base/file.hpp"
#include "sim/scenario/alter.hpp"
#include "sim/scenario/huggingface.hpp"
#include "sim/scenario/load.hpp"

namespace scapesim::scenario {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(std::string_view section) {
  return data_folder() / (section == "model" ? "scenarios/models" : "topologies");
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end;
       it.increment(failure))
    if (it->path().extension() == ".toml") names.push_back(it->path().stem().string());
  std::ranges::sort(names);
  return names;
}

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".toml");
}

// A preset describes one thing: a model (with the sequence it was made for) or a cluster.
void check_preset(const Document& document, std::string_view section, Problems& problems) {
  const bool model = section == "model";
  for (const Setting& setting : document.settings) {
    const bool sequence = model && setting.section == "training" && setting.name == "sequence";
    const bool own =
        setting.section == section && setting.name != "preset" && setting.name != "huggingface";
    const bool remark =
        setting.name == "description" || (!model && setting.name == "usual_profile");
    if (!own && !sequence && !remark)
      problems.add(setting.key_place, key_text(setting.section, setting.name),
                   fmt::format("a {} preset does not take this key", section),
                   fmt::format("keys of [{}]{}", section, model ? " and training.sequence" : ""));
  }
  if (!document.variants.empty())
    problems.add({}, "variant", fmt::format("a {} preset has no variants", section));
}

Document read_preset(const fs::path& file, const Setting& chosen) {
  Problems problems;
  Document document = read_document(file, key_text(chosen.section, chosen.name), problems);
  check_preset(document, chosen.section, problems);
  problems.raise();
  return document;
}

/// A text outside any table; empty without one.
std::string text_in(const Document& document, std::string_view name) {
  for (const Setting& setting : document.settings)
    if (setting.section.empty() && setting.name == name)
      if (const auto* text = std::get_if<std::string>(&setting.value)) return *text;
  return {};
}

std::vector<Preset> listed(const fs::path& folder) {
  std::vector<Preset> presets;
  for (const std::string& name : names_in(folder)) {
    Problems problems;
    const Document document = read_document(folder / (name + ".toml"), "preset", problems);
    problems.raise();
    presets.push_back({name, text_in(document, "description")});
  }
  return presets;
}

}  // namespace

Document read_document(const fs::path& file, std::string_view purpose, Problems& problems) {
  constexpr std::size_t kLargest = 1'000'000;
  const std::string text = read_file(file, purpose);
  if (text.size() > kLargest)
    throw InputError({Problem{.place = {.file = file.string()},
                              .key = std::string(purpose),
                              .what = fmt::format("{} bytes are too many", text.size()),
                              .hint = fmt::format("at most {} are read", kLargest)}});
  return parse_document(text, file.string(), problems);
}

const Document* PresetFiles::find(const Setting& chosen, Problems& problems) {
  const auto* name = std::get_if<std::string>(&chosen.value);
  if (name == nullptr || name->empty()) return nullptr;  // the key's own type check tells it
  const std::string key = key_text(chosen.section, chosen.name) + " " + *name;
  if (const auto found = found_.find(key); found != found_.end()) return found->second;
  const Document* document = look_up(chosen, problems);
  if (document != nullptr) found_[key] = document;
  return document;
}

const Document* PresetFiles::look_up(const Setting& chosen, Problems& problems) {
  const auto* name = &std::get<std::string>(chosen.value);
  const bool imported = chosen.name == "huggingface";
  const std::vector<std::string> known = names_in(folder_of(chosen.section));
  if (!imported && !is_path(*name) && !std::ranges::binary_search(known, *name)) {
    const std::vector<std::string_view> views(known.begin(), known.end());
    problems.add(chosen.place, key_text(chosen.section, chosen.name),
                 fmt::format("no {} preset \"{}\"", chosen.section, *name),
                 did_you_mean(*name, views));
    return nullptr;
  }
  const fs::path file = imported || is_path(*name) ? (folder_ / *name).lexically_normal()
                                                   : folder_of(chosen.section) / (*name + ".toml");
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    problems.add(chosen.place, key_text(chosen.section, chosen.name),
                 fmt::format("no file \"{}\"", file.string()),
                 "paths start at the scenario's folder");
    return nullptr;
  }
  if (const auto found = read_.find(file); found != read_.end()) return &found->second;
  try {
    Document document = imported ? read_huggingface(file) : read_preset(file, chosen);
    return &read_.emplace(file, std::move(document)).first->second;
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems())
      problems.add(problem.place, problem.key, problem.what, problem.hint);
    return nullptr;
  }
}

std::string usual_profile(const std::string& cluster) {
  const fs::path file =
      is_path(cluster) ? fs::path(cluster) : folder_of("cluster") / (cluster + ".toml");
  Problems problems;
  const Document document = read_document(file, "cluster", problems);
  problems.raise();
  return text_in(document, "usual_profile");
}

std::vector<Preset> model_presets() { return listed(folder_of("model")); }
std::vector<Preset> cluster_presets() { return listed(folder_of("cluster")); }
std::vector<Preset> shipped_scenarios() { return listed(data_folder() / "scenarios"); }

}  // namespace scapesim::scenario
