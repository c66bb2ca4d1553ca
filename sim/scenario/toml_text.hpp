// SPDX-License-Identifier: Apache-2.0
// TOML text -> settings. The only file that knows the TOML library is toml_text.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/value.hpp"

namespace scapesim::scenario {

/// A table at the top of the file, also when it is empty.
struct Section {
  std::string name;
  Place place;
};

/// One [[variant]]: a series of the scenario.
struct Variant {
  std::string name;
  std::vector<Setting> set;
};

struct Document {
  std::vector<Setting> settings;
  std::vector<Section> sections;
  std::vector<Variant> variants;
  std::vector<std::string> unread;  ///< keys of an imported model that nothing here stands for
};

/// Throws InputError for text that is no TOML; faults of [[variant]] tables go to `problems`.
Document parse_document(std::string_view text, const std::string& file, Problems& problems);

/// "section.key=VALUE", the ordinal-th --set: VALUE is TOML, or a bare word taken as text. Nothing
/// when it is neither; that is in `problems` then.
std::optional<Setting> parse_set(const std::string& text, int ordinal, Problems& problems);

}  // namespace scapesim::scenario
