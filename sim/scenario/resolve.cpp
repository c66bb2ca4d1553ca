// SPDX-License-Identifier: Apache-2.0
// The key table at work: choosing, storing, deriving, checking.
#include "sim/scenario/resolve.hpp"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <optional>

#include "sim/base/file.hpp"
#include "sim/base/unit_text.hpp"
#include "sim/scenario/keys.hpp"
#include "topologies/degraded.hpp"

namespace scapesim::scenario {
namespace {

constexpr std::int64_t kMostGpus = 1'000'000'000;  // keeps a probed count in 32 bits

// Whether the preset's value, also none where it follows from others, counts for a key. Keys of
// the section that no preset speaks of, such as cluster.gpus, stay.
bool preset_counts(const Key& key, const Setting* own, const Setting* brought,
                   const Setting& preset) {
  if (own == nullptr) return true;
  if (own->layer >= preset.layer || key.name == "preset" || key.name == "huggingface") return false;
  return brought != nullptr ||
         (key.section == preset.section && key.fallback.kind == Default::Kind::derived);
}

// What brings the values of a section: its preset, or the model that is imported; the later layer
// of both counts.
const Setting* source_of(std::string_view section, Chosen& chosen) {
  const Setting* name = at(chosen, section, "preset");
  const Setting* imported = section == "model" ? at(chosen, section, "huggingface") : nullptr;
  if (name == nullptr || imported == nullptr) return name == nullptr ? imported : name;
  return imported->layer > name->layer ? imported : name;
}

// Settings of the preset where the scenario says nothing, or said it in a layer below the one that
// chose the preset. True when the preset is there or not asked for.
bool choose_preset(std::string_view section, Chosen& chosen, const Context& context) {
  const Setting* name = source_of(section, chosen);
  if (name == nullptr) return true;
  if (section == "model" && at(chosen, section, "preset") != nullptr)
    if (const Setting* other = at(chosen, section, "huggingface");
        other != nullptr && other->layer == at(chosen, section, "preset")->layer)
      add_fault(*other, other->place, {"beside a preset", "leave one of both out"},
                context.problems);
  const Document* document = context.presets.find(*name, context.problems);
  if (document == nullptr) return false;
  Chosen below(keys().size());
  choose(document->settings, below, context.problems);
  for (std::size_t i = 0; i < below.size(); ++i)
    if (!keys()[i].section.empty() && preset_counts(keys()[i], chosen[i], below[i], *name))
      chosen[i] = below[i];
  return true;
}

Place place_of_section(std::string_view section, const Context& context) {
  for (const Section& known : context.sections)
    if (known.name == section) return known.place;
  return {.file = context.file};
}

void add_missing(const Key& key, const Context& context) {
  context.problems.add(
      place_of_section(key.section, context), key_text(key.section, key.name), "missing",
      fmt::format("[{}] needs it, such as {} = {}", key.section, key.name, key.fallback.text));
}

// Without a preset a section has to describe the thing itself. A section that says nothing of it
// misses its preset.
bool described(std::string_view section, Chosen& chosen, const Context& context) {
  if (source_of(section, chosen) != nullptr) return true;
  std::vector<const Key*> missing;
  bool all = true;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const Key& key = keys()[i];
    if (key.section != section || key.fallback.kind != Default::Kind::required) continue;
    if (key.name == "gpus") continue;  // of the job, no preset brings it
    if (chosen[i] == nullptr)
      missing.push_back(&key);
    else
      all = false;
  }
  if (missing.empty()) return true;
  const Place place = place_of_section(section, context);
  const std::string_view example = section == "model" ? "\"llama-1.8b\"" : "\"vista\"";
  if (all)
    context.problems.add(place, key_text(section, "preset"), "missing",
                         fmt::format("such as [{}] preset = {}", section, example));
  else
    for (const Key* key : missing)
      context.problems.add(place, key_text(section, key->name), "missing",
                           fmt::format("such as {} = {}; {}.preset = {} brings it", key->name,
                                       key->fallback.text, section, example));
  return false;
}

/// Which parts are there to be complete: a preset that is not found would have brought its keys.
struct Present {
  bool model = false;
  bool cluster = false;
  bool job = false;  ///< what a machine runs, beside the machine itself
};

bool must_be_given(const Key& key, Present present) {
  if (key.fallback.kind != Default::Kind::required) return false;
  if (key.section == "cluster") return present.cluster && (present.job || key.name != "gpus");
  return present.job && (present.model || (key.section != "model" && key.name != "sequence"));
}

// Values into the Spec; false when one is wrong or a required one is missing.
bool store(const Chosen& chosen, Present present, spec::Scenario& scenario,
           const Context& context) {
  bool sound = true;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const Key& key = keys()[i];
    if (chosen[i] != nullptr) {
      if (auto fault = key.field.store(scenario, chosen[i]->value)) {
        add_fault(*chosen[i], chosen[i]->place, std::move(*fault), context.problems);
        sound = false;
      }
    } else if (must_be_given(key, present)) {
      add_missing(key, context);
      sound = false;
    }
  }
  return sound;
}

// Values that follow from others when they are not given.
bool derive(Chosen& chosen, spec::Scenario& scenario, const Context& context) {
  spec::Model& model = scenario.model;
  const spec::MethodRule& method = spec::rule_of(scenario.strategy.method);
  if (at(chosen, "strategy", "sharding") == nullptr)
    scenario.strategy.sharding = method.shardings.front();
  if (at(chosen, "strategy", "density") == nullptr) scenario.strategy.density = method.density;
  if (at(chosen, "model", "kv_heads") == nullptr) model.kv_heads = model.heads;
  if (at(chosen, "model", "expert_ffn") == nullptr)
    model.expert_ffn = model.experts > 0 ? model.ffn : 0;
  if (at(chosen, "model", "max_positions") == nullptr)
    model.max_positions = model.positions == spec::Positions::learned
                              ? static_cast<int>(scenario.training.sequence)
                              : 0;
  if (at(chosen, "model", "head_dim") != nullptr) return true;
  model.head_dim = model.hidden / model.heads;
  if (model.hidden % model.heads == 0) return true;
  const Setting* heads = at(chosen, "model", "heads");
  add_fault(*heads, heads->place,
            {fmt::format("{} heads do not divide hidden = {}", model.heads, model.hidden),
             "choose another or set model.head_dim"},
            context.rules());
  return false;
}

std::string stem(const std::string& path) { return std::filesystem::path(path).stem().string(); }

std::string preset_name(Chosen& chosen, std::string_view section) {
  const Setting* preset = source_of(section, chosen);
  const auto* name = preset == nullptr ? nullptr : std::get_if<std::string>(&preset->value);
  if (name == nullptr) return "custom";
  if (preset->name == "huggingface") {
    const std::filesystem::path file(*name);
    return stem(*name) == "config" && file.has_parent_path()
               ? file.parent_path().filename().string()
               : stem(*name);
  }
  return name->ends_with(".toml") ? stem(*name) : *name;
}

// A broken rule is told where the user wrote the key; where a preset did, at the preset's name.
void add_violations(const std::vector<spec::Violation>& violations, Chosen& chosen,
                    const Context& context) {
  for (const spec::Violation& violation : violations) {
    const std::size_t dot = violation.key.find('.');
    const std::string_view section = std::string_view(violation.key).substr(0, dot);
    const Setting* setting = at(chosen, section, std::string_view(violation.key).substr(dot + 1));
    if (setting != nullptr && setting->given.empty() && setting->place.file != context.file)
      // Of [training] only a model preset brings a key.
      setting = source_of(section == "cluster" ? "cluster" : "model", chosen);
    const Place place = setting == nullptr ? place_of_section(section, context) : setting->place;
    const std::string given =
        setting == nullptr || setting->given.empty() ? "" : fmt::format(" [{}]", setting->given);
    context.rules().add(place, violation.key, violation.what + given, violation.hint);
  }
}

// Cables can only be looked up in a cluster that breaks no other rule.
std::vector<spec::Violation> all_violations(const spec::Cluster& cluster) {
  std::vector<spec::Violation> list = spec::violations(cluster);
  return list.empty() ? topology::degraded_violations(cluster) : list;
}

// Rules that break; of those told later only what breaks alike on one GPU and on all there are.
std::vector<spec::Violation> violations_of(const spec::Scenario& scenario, GpuCount gpus) {
  std::vector<spec::Violation> list = spec::violations(scenario);
  if (gpus == GpuCount::of_file) return list;
  const spec::Cluster& cluster = scenario.cluster;
  for (const std::int64_t count :
       {std::int64_t{1}, std::int64_t{cluster.nodes} * cluster.gpus_per_node}) {
    spec::Scenario other = scenario;
    other.cluster.gpus = static_cast<int>(std::min<std::int64_t>(count, kMostGpus));
    const std::vector<spec::Violation> there = spec::violations(other);
    std::erase_if(list, [&](const spec::Violation& one) {
      return std::ranges::none_of(
          there, [&](const spec::Violation& v) { return v.key == one.key && v.what == one.what; });
    });
  }
  return list;
}

}  // namespace

Fault unknown_key(const Setting& setting) {
  const std::vector<std::string_view> sections = section_names();
  if (!setting.section.empty() && std::ranges::find(sections, setting.section) == sections.end())
    return {"unknown section", did_you_mean(setting.section, sections)};
  const std::vector<std::string_view> names = names_in_section(setting.section);
  std::string hint = did_you_mean(setting.name, names);
  for (const Key& key : keys())
    if (hint.find("did you mean") == std::string::npos && key.name == setting.name)
      hint = fmt::format("did you mean \"{}\"?", key_text(key.section, key.name));
  return {"unknown key", hint};
}

const Setting*& at(Chosen& chosen, std::string_view section, std::string_view name) {
  return chosen[find_key(section, name).value()];
}

void add_fault(const Setting& setting, const Place& place, Fault fault, Problems& problems) {
  std::string what = setting.given.empty() ? std::move(fault.what)
                                           : fmt::format("{} [{}]", fault.what, setting.given);
  problems.add(place, key_text(setting.section, setting.name), std::move(what),
               std::move(fault.hint));
}

void choose(std::span<const Setting> layer, Chosen& chosen, Problems& problems) {
  for (const Setting& setting : layer) {
    const std::optional<std::size_t> row = find_key(setting.section, setting.name);
    if (!row)
      add_fault(setting, setting.key_place, unknown_key(setting), problems);
    else
      chosen[*row] = &setting;
  }
}

// Values that are the initialiser's do not count: a new key leaves the hashes of old scenarios.
std::string hash_of(const spec::Scenario& scenario) {
  static const std::vector<std::string> kUntouched = [] {
    std::vector<std::string> texts;
    for (const Key& key : keys())
      texts.push_back(key.field.text ? key.field.text(spec::Scenario()) : "");
    return texts;
  }();
  std::string canonical;
  for (std::size_t i = 0; i < keys().size(); ++i) {
    const Key& key = keys()[i];
    if (!key.field.text) continue;
    const std::string text = key.field.text(scenario);
    if (text != kUntouched[i])
      canonical += fmt::format("{} = {}\n", key_text(key.section, key.name), text);
  }
  // A network's file counts by what it says, wherever it lies.
  for (const spec::GraphEdge& edge : scenario.cluster.fabric.graph.edges)
    canonical += fmt::format("{} {} {}\n", edge.from, edge.to, text_of(edge.capacity));
  return content_hash(canonical);
}

spec::Scenario resolve(Chosen chosen, const Context& context) {
  const bool model_found = choose_preset("model", chosen, context);
  const bool cluster_found = choose_preset("cluster", chosen, context);
  const Present present{
      .model = model_found && described("model", chosen, context),
      .cluster = cluster_found && described("cluster", chosen, context),
      .job = true,
  };
  spec::Scenario scenario;
  if (store(chosen, present, scenario, context) && present.model && present.cluster &&
      derive(chosen, scenario, context)) {
    std::vector<spec::Violation> list = violations_of(scenario, context.gpus);
    if (list.empty()) list = topology::degraded_violations(scenario.cluster);
    add_violations(list, chosen, context);
  }
  if (scenario.name.empty()) scenario.name = stem(context.file);
  scenario.model.name = preset_name(chosen, "model");
  if (const Setting* imported = source_of("model", chosen); imported != nullptr && model_found)
    if (const Document* document = context.presets.find(*imported, context.problems))
      scenario.model.unread = document->unread;
  scenario.cluster.name = preset_name(chosen, "cluster");
  scenario.hash = hash_of(scenario);
  return scenario;
}

ModelPreset resolve_model(Chosen chosen, const Context& context) {
  const Present present{.model = choose_preset("model", chosen, context)};
  spec::Scenario scenario;
  if (store(chosen, present, scenario, context) && present.model &&
      derive(chosen, scenario, context))
    scenario.model.name = preset_name(chosen, "model");
  return {std::move(scenario.model), scenario.training.sequence};
}

spec::Cluster resolve_cluster(Chosen chosen, const Context& context) {
  const Present present{.cluster = choose_preset("cluster", chosen, context)};
  spec::Scenario scenario;
  const bool sound = store(chosen, present, scenario, context) && present.cluster;
  spec::Cluster& cluster = scenario.cluster;
  if (sound && at(chosen, "cluster", "gpus") == nullptr)
    cluster.gpus = cluster.nodes * cluster.gpus_per_node;
  if (sound) add_violations(all_violations(cluster), chosen, context);
  cluster.name = preset_name(chosen, "cluster");
  return cluster;
}

}  // namespace scapesim::scenario
