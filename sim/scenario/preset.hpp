// SPDX-License-Identifier: Apache-2.0
// Shipped models and clusters: files of settings that stand below the scenario's own.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "sim/scenario/keys.hpp"
#include "sim/scenario/toml_text.hpp"

namespace scapesim::scenario {

/// Reads scenario, model and cluster files; larger ones than a megabyte are refused.
Document read_document(const std::filesystem::path& file, std::string_view purpose,
                       Problems& problems);

/// Preset files read once per load.
class PresetFiles {
 public:
  /// Paths in `preset = "..."` are relative to this folder.
  explicit PresetFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// The settings of the preset that `chosen` names ("model" or "cluster" by its section), or
  /// nullptr with a problem at the place of `chosen`.
  const Document* find(const Setting& chosen, Problems& problems);

 private:
  const Document* look_up(const Setting& chosen, Problems& problems);

  std::filesystem::path folder_;
  std::map<std::filesystem::path, Document> read_;
  std::map<std::string, const Document*> found_;  ///< by section and name
};

}  // namespace scapesim::scenario
