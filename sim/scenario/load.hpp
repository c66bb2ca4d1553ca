// SPDX-License-Identifier: Apache-2.0
// TOML -> Spec: scenario files, model and cluster presets, --set overrides, variants.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::scenario {

/// One key of the scenario file; the table feeds parser, range check and `list keys`.
struct KeyRecord {
  std::string_view section;  ///< "training"
  std::string_view name;     ///< "micro_batch"
  std::string_view type;  ///< "integer", "number", "bytes", "seconds", "bytes/s", "text", "flag",
                          ///< "one of ...", "list"
  std::string range;      ///< "1 to 1e9", the words of an enumeration
  std::string default_text;  ///< as TOML; empty when required or taken from a preset
  std::string_view help;
  std::vector<std::string> refused;  ///< words of the range that this version does not simulate
};
std::vector<KeyRecord> key_records();

/// Whether the scenario runs on its own cluster.gpus or on counts that are told later.
enum class GpuCount { of_file, told_later };

/// A scenario file read, overridden and checked: one Scenario per variant (one without variants).
/// `set` holds "section.key=TOML value" (bare words are accepted as text); later ones win.
/// A preset lies below the keys of the layer that names it (file, variant, --set) and of those
/// after, and above the layers before: --set model.preset=... replaces what the file or a variant
/// says of the model, and training.sequence, but not what no model preset speaks of.
/// Among several series a --set in [strategy] reaches those whose method reads its key; one that
/// reaches none is a problem. Throws InputError with every problem,
/// each with file:line:column and key; those of --set at its ordinal and column.
/// With GpuCount::told_later the rules that depend on cluster.gpus are left to with_gpus.
std::vector<spec::Scenario> load_scenarios(const std::filesystem::path& file,
                                           std::span<const std::string> set = {},
                                           GpuCount gpus = GpuCount::of_file);

/// One cell of a table whose columns are keys: "training.micro_batch" and the text of its value.
struct Cell {
  std::string key;
  std::string text;
  Place key_place;
  Place place;
};

/// A scenario per row of a table: `cells` over `base` (a scenario file with one series; none: the
/// cells say all). Problems are added, placed at the cells; the scenario counts only without any.
spec::Scenario scenario_of_cells(std::span<const Cell> cells,
                                 const std::optional<std::filesystem::path>& base,
                                 const std::filesystem::path& table, Problems& problems);

/// A cluster preset by name (topologies/<name>.toml) or file, for `collective` and `topology`.
spec::Cluster load_cluster(const std::string& preset_or_path,
                           std::span<const std::string> set = {});

/// A model preset by name (scenarios/models/<name>.toml) or file, with the sequence it names.
struct ModelPreset {
  spec::Model model;
  std::int64_t sequence = 0;
};
ModelPreset load_model(const std::string& preset_or_path);

/// Same scenario on another number of GPUs. `weak`: global batch grows in proportion. Throws
/// InputError when a rule is broken (key "--gpus").
spec::Scenario with_gpus(const spec::Scenario& scenario, int gpus, bool weak);

struct Preset {
  std::string name;
  std::string help;
};
std::vector<Preset> model_presets();
std::vector<Preset> cluster_presets();
std::vector<Preset> shipped_scenarios();

}  // namespace scapesim::scenario
