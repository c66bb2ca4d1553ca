// SPDX-License-Identifier: Apache-2.0
// Layers of settings -> Spec: the top setting of each key counts, presets lie below, what is
// missing is told or derived, cross-field rules are checked.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sim/scenario/load.hpp"
#include "sim/scenario/preset.hpp"
#include "sim/scenario/toml_text.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::scenario {

/// The setting that counts for each row of keys(); nullptr where the key is not given.
using Chosen = std::vector<const Setting*>;

const Setting*& at(Chosen& chosen, std::string_view section, std::string_view name);

/// What a scenario in the making stands in; problems without a setting are placed at its sections.
struct Context {
  std::string file;
  std::vector<Section> sections;
  PresetFiles& presets;
  Problems& problems;
  GpuCount gpus = GpuCount::of_file;
  Problems* broken_rules = nullptr;  ///< where broken rules go; none: to the problems

  Problems& rules() const { return broken_rules != nullptr ? *broken_rules : problems; }
};

/// Tells a fault at a place of the setting, with the text of a --set.
void add_fault(const Setting& setting, const Place& place, Fault fault, Problems& problems);

/// Lays settings over those of the layers below; unknown keys are told.
void choose(std::span<const Setting> layer, Chosen& chosen, Problems& problems);

/// What a key outside the table is told.
Fault unknown_key(const Setting& setting);

spec::Scenario resolve(Chosen chosen, const Context& context);
ModelPreset resolve_model(Chosen chosen, const Context& context);
spec::Cluster resolve_cluster(Chosen chosen, const Context& context);

/// Hash of every value that is simulated; not of names, comments or the order of keys.
std::string hash_of(const spec::Scenario& scenario);

}  // namespace scapesim::scenario
