// SPDX-License-Identifier: Apache-2.0
// The entries of the layer: files, variants and overrides become layers of settings.
#include "sim/scenario/load.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "sim/scenario/keys.hpp"
#include "sim/scenario/one_series.hpp"
#include "sim/scenario/resolve.hpp"
#include "sim/scenario/template.hpp"
#include "sim/spec/strategy_keys.hpp"

namespace scapesim::scenario {
namespace {

namespace fs = std::filesystem;

std::vector<Setting> parse_sets(std::span<const std::string> texts, Problems& problems) {
  std::vector<Setting> settings;
  int ordinal = 0;
  for (const std::string& text : texts)
    if (auto setting = parse_set(text, ++ordinal, problems))
      settings.push_back(std::move(*setting));
  return settings;
}

void raise_distinct(const Problems& problems) {
  const auto same = [](const Problem& a, const Problem& b) {
    return a.place.file == b.place.file && a.place.line == b.place.line &&
           a.place.column == b.place.column && a.key == b.key && a.what == b.what;
  };
  Problems distinct;
  for (const Problem& problem : problems.list())
    if (std::ranges::none_of(distinct.list(),
                             [&](const Problem& other) { return same(problem, other); }))
      distinct.add(problem.place, problem.key, problem.what, problem.hint);
  distinct.raise();
}

// Tells unknown tables once and forgets what is in them.
void drop_unknown_sections(Document& document, Problems& problems) {
  const std::vector<std::string_view> known = section_names();
  const auto is_unknown = [&](std::string_view name) {
    return !name.empty() && std::ranges::find(known, name) == known.end();
  };
  for (const Section& section : document.sections)
    if (is_unknown(section.name))
      problems.add(section.place, section.name, "unknown section",
                   did_you_mean(section.name, known));
  std::erase_if(document.settings,
                [&](const Setting& setting) { return is_unknown(setting.section); });
}

/// Whether the method that is chosen does not read this key of [strategy].
bool unread(const Setting& setting, const spec::Scenario& of_method) {
  if (setting.section != "strategy") return false;
  const spec::StrategyKey* key = spec::strategy_key(setting.name);
  return key != nullptr && !key->is_read(of_method);
}

/// Method and sharding as chosen, and what else decides which keys these read.
spec::Scenario of_method(Chosen& chosen) {
  spec::Scenario scenario;
  for (const char* name : {"method", "sharding", "mask_partition", "exchange", "offload"})
    if (const Setting* setting = at(chosen, "strategy", name))
      keys()[find_key("strategy", name).value()].field.store(scenario, setting->value);
  if (at(chosen, "strategy", "sharding") == nullptr)
    scenario.strategy.sharding = spec::rule_of(scenario.strategy.method).shardings.front();
  return scenario;
}

/// The layers of one series: the file, its variant, --set, and what a study sets at its point.
struct Layers {
  std::span<const Setting> file;
  std::span<const Setting> variant;
  std::span<const Setting> set;
  std::span<const Setting> point = {};
};

Chosen all_of(const Layers& layers, Problems& problems) {
  Chosen chosen(keys().size());
  choose(layers.file, chosen, problems);
  choose(layers.variant, chosen, problems);
  choose(layers.set, chosen, problems);
  choose(layers.point, chosen, problems);
  return chosen;
}

/// Each --set: whether some series of the file reads its key.
std::vector<bool> read_by_some(const Document& document, std::span<const Setting> set) {
  std::vector<bool> read(set.size());
  Problems told_later;
  for (const Variant& variant : document.variants) {
    Chosen chosen = all_of({document.settings, variant.set, set}, told_later);
    const spec::Scenario scenario = of_method(chosen);
    for (std::size_t i = 0; i < set.size(); ++i)
      if (!unread(set[i], scenario)) read[i] = true;
  }
  return read;
}

// What counts for a series. A --set in [strategy] whose key other series read and this one does not
// speaks to those.
Chosen heard(const Layers& layers, const std::vector<bool>& some, Problems& problems) {
  Chosen all = all_of(layers, problems);
  const spec::Scenario scenario = of_method(all);
  Chosen chosen(keys().size());
  const auto hear = [&](std::span<const Setting> layer, const std::vector<bool>& read) {
    for (std::size_t i = 0; i < layer.size(); ++i)
      if (const auto row = find_key(layer[i].section, layer[i].name))
        if (!read[i] || !unread(layer[i], scenario)) chosen[*row] = &layer[i];
  };
  hear(layers.file, std::vector<bool>(layers.file.size()));
  hear(layers.variant, std::vector<bool>(layers.variant.size()));
  hear(layers.set, some);
  hear(layers.point, std::vector<bool>(layers.point.size()));
  return chosen;
}

Fault read_by_none(const Setting& setting) {
  return {fmt::format("no series reads it: it is read by {}",
                      spec::strategy_key(setting.name)->read_by),
          "leave it out"};
}

}  // namespace

std::vector<spec::Scenario> load_scenarios(const fs::path& file, std::span<const std::string> set,
                                           GpuCount gpus) {
  return load_series(file, set, gpus, "");
}

std::vector<spec::Scenario> load_series(const fs::path& file, std::span<const std::string> set,
                                        GpuCount gpus, std::string_view series) {
  Problems problems;
  Document document = read_document(file, "scenario", problems);
  drop_unknown_sections(document, problems);
  const std::vector<Setting> overrides = parse_sets(set, problems);
  PresetFiles presets(file.parent_path());
  const Context context{file.string(), document.sections, presets, problems, gpus};
  if (document.variants.empty()) document.variants.emplace_back();
  const bool several_series = document.variants.size() > 1;
  const std::vector<bool> some = read_by_some(document, overrides);
  const auto is_other = [&](const Variant& variant) { return variant.name != series; };
  if (!series.empty() && !std::ranges::all_of(document.variants, is_other))
    std::erase_if(document.variants, is_other);
  std::vector<spec::Scenario> scenarios;
  for (const Variant& variant : document.variants) {
    scenarios.push_back(
        resolve(heard({document.settings, variant.set, overrides}, some, problems), context));
    scenarios.back().series = variant.name;
  }
  for (std::size_t i = 0; several_series && i < overrides.size(); ++i)
    if (!some[i])
      add_fault(overrides[i], overrides[i].key_place, read_by_none(overrides[i]), problems);
  raise_distinct(problems);
  return scenarios;
}

ScenarioTemplate::ScenarioTemplate(const fs::path& file, std::span<const std::string> set)
    : file_(file.string()), presets_(file.parent_path()) {
  Problems problems;
  document_ = read_document(file, "scenario", in_file_);
  drop_unknown_sections(document_, in_file_);
  overrides_ = parse_sets(set, problems);
  problems.raise();
  if (document_.variants.empty()) document_.variants.emplace_back();
  for (const Variant& variant : document_.variants) series_.push_back(variant.name);
  some_ = read_by_some(document_, overrides_);
}

Draft ScenarioTemplate::draft(std::size_t series, std::span<const Setting> over) {
  Problems problems = in_file_;
  Problems rules;
  const Context context{file_, document_.sections, presets_, problems, GpuCount::of_file, &rules};
  const Layers layers{document_.settings, document_.variants[series].set, overrides_, over};
  Draft draft;
  draft.scenario = resolve(heard(layers, some_, problems), context);
  draft.scenario.series = series_[series];
  draft.bad_values = problems.list();
  draft.broken_rules = rules.list();
  return draft;
}

void ScenarioTemplate::check(const Setting& setting, Problems& problems) {
  const std::optional<std::size_t> row = find_key(setting.section, setting.name);
  if (!row) {
    add_fault(setting, setting.key_place, unknown_key(setting), problems);
    return;
  }
  spec::Scenario scratch;
  if (auto fault = keys()[*row].field.store(scratch, setting.value))
    add_fault(setting, setting.place, std::move(*fault), problems);
  else if (setting.name == "preset" || setting.name == "huggingface")
    presets_.find(setting, problems);
}

spec::Scenario scenario_of_cells(std::span<const Cell> cells, const std::optional<fs::path>& base,
                                 const fs::path& table, Problems& problems) {
  Problems found;
  Document document;
  if (base) document = read_document(*base, "scenario", found);
  drop_unknown_sections(document, found);
  if (document.variants.size() > 1)
    found.add({.file = base->string()}, "variant",
              "a row of a table takes a scenario of one series");
  std::vector<Setting> settings;
  for (const Cell& cell : cells) {
    Problems bad_value;
    if (auto setting = parse_set(cell.key + "=" + cell.text, 1, bad_value)) {
      setting->given.clear();
      setting->place = cell.place;
      setting->key_place = cell.key_place;
      settings.push_back(std::move(*setting));
    }
    for (const Problem& problem : bad_value.list())
      found.add(cell.place, cell.key, problem.what, problem.hint);
  }
  const Place row = cells.empty() ? Place{.file = table.string()} : cells.front().place;
  for (const std::string_view name : section_names())
    document.sections.push_back({std::string(name), row});
  PresetFiles presets(table.parent_path());
  const Context context{table.string(), document.sections, presets, found};
  Chosen chosen(keys().size());
  choose(document.settings, chosen, found);
  for (const Variant& variant : document.variants) choose(variant.set, chosen, found);
  choose(settings, chosen, found);
  const spec::Scenario scenario = resolve(chosen, context);
  for (const Problem& problem : found.list())
    problems.add(problem.place, problem.key, problem.what, problem.hint);
  return scenario;
}

spec::Cluster load_cluster(const std::string& preset_or_path, std::span<const std::string> set) {
  Problems problems;
  const Setting preset{.section = "cluster",
                       .name = "preset",
                       .value = preset_or_path,
                       .key_place = {},
                       .place = {},
                       .given = {}};
  const std::vector<Setting> overrides = parse_sets(set, problems);
  for (const Setting& setting : overrides)
    if (setting.section != "cluster")
      add_fault(setting, setting.key_place,
                {"no key of a cluster", "such as cluster.nic_bandwidth"}, problems);
  PresetFiles presets(fs::path{});
  Chosen chosen(keys().size());
  choose({&preset, 1}, chosen, problems);
  choose(overrides, chosen, problems);
  spec::Cluster cluster = resolve_cluster(chosen, {"", {}, presets, problems});
  raise_distinct(problems);
  return cluster;
}

ModelPreset load_model(const std::string& preset_or_path) {
  Problems problems;
  const Setting preset{.section = "model",
                       .name = "preset",
                       .value = preset_or_path,
                       .key_place = {},
                       .place = {},
                       .given = {}};
  PresetFiles presets(fs::path{});
  Chosen chosen(keys().size());
  choose({&preset, 1}, chosen, problems);
  const ModelPreset model = resolve_model(chosen, {"", {}, presets, problems});
  raise_distinct(problems);
  return model;
}

spec::Scenario with_gpus(const spec::Scenario& scenario, int gpus, bool weak) {
  Problems problems;
  const auto add = [&](std::string what, std::string hint) {
    problems.add({}, "--gpus", std::move(what), std::move(hint));
  };
  if (gpus < 1) add(fmt::format("{} is out of range", gpus), "1 or more");
  problems.raise();
  spec::Scenario scaled = scenario;
  scaled.cluster.gpus = gpus;
  if (weak) {
    const std::int64_t per_rank = scenario.training.global_batch / data_parallel_size(scenario);
    scaled.training.global_batch = per_rank * data_parallel_size(scaled);
  }
  for (const spec::Violation& violation : spec::violations(scaled))
    add(fmt::format("{} GPUs: {}: {}", gpus, violation.key, violation.what), violation.hint);
  problems.raise();
  scaled.hash = hash_of(scaled);
  return scaled;
}

}  // namespace scapesim::scenario
