// SPDX-License-Identifier: Apache-2.0
// A scenario file read once, for the many points of a study that change some of its keys.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "sim/scenario/load.hpp"
#include "sim/scenario/preset.hpp"
#include "sim/scenario/toml_text.hpp"

namespace scapesim::scenario {

/// A scenario in the making: it counts when both lists are empty.
struct Draft {
  spec::Scenario scenario;
  std::vector<Problem> bad_values;    ///< wrong by one key alone: unknown, missing, out of range
  std::vector<Problem> broken_rules;  ///< wrong together: indivisible, more GPUs than there are
};

class ScenarioTemplate {
 public:
  /// Throws InputError when the file is no TOML or a --set no KEY=VALUE.
  ScenarioTemplate(const std::filesystem::path& file, std::span<const std::string> set);

  /// Names of the series: one empty name without variants.
  const std::vector<std::string>& series() const { return series_; }

  /// The series with these settings over those of the file and of --set, which do not change.
  Draft draft(std::size_t series, std::span<const Setting> over);

  /// Adds what is wrong with one setting by itself: an unknown key, a value that the key does not
  /// take, a preset that is not there.
  void check(const Setting& setting, Problems& problems);

 private:
  std::string file_;
  Problems in_file_;  ///< faults of tables, told with every draft
  Document document_;
  std::vector<Setting> overrides_;
  std::vector<bool> some_;  ///< of each --set: some series reads its key
  std::vector<std::string> series_;
  PresetFiles presets_;
};

}  // namespace scapesim::scenario
