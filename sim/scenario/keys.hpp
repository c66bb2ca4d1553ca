// SPDX-License-Identifier: Apache-2.0
// The one list of keys: what a scenario, a preset, a variant and --set may hold.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "sim/scenario/field.hpp"

namespace scapesim::scenario {

/// What stands when the key is not given.
struct Default {
  enum class Kind {
    spec,      ///< the initialiser in sim/spec/spec.hpp
    required,  ///< nothing: `text` is an example
    derived    ///< another key's value, named by `text`
  };
  Kind kind = Kind::spec;
  std::string_view text;
};

struct Key {
  std::string_view section;
  std::string_view name;
  Field field;
  Default fallback;
  std::string_view help;
};

/// In the order in which values are stored: presets first.
const std::vector<Key>& keys();

std::optional<std::size_t> find_key(std::string_view section, std::string_view name);
std::vector<std::string_view> section_names();
std::vector<std::string_view> names_in_section(std::string_view section);

}  // namespace scapesim::scenario
