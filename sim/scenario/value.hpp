// SPDX-License-Identifier: Apache-2.0
// A scenario file as plain values: settings with their places, before anything is known about keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"

namespace scapesim::scenario {

/// A value no key takes: a table, a date, a list of something else than text.
struct OtherValue {
  bool operator==(const OtherValue&) const = default;
  std::string_view what;
};

using Value =
    std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>, OtherValue>;

/// Where a setting stands; a later layer lies over the ones before.
enum class Layer { file, variant, set };

/// One `section.name = value` of a file, a variant or --set.
struct Setting {
  std::string section;  ///< empty for a key outside any table
  std::string name;
  Value value;
  Place key_place;
  Place place;        ///< of the value
  std::string given;  ///< the whole text of a --set, empty otherwise
  Layer layer = Layer::file;
};

/// "training.micro_batch"
inline std::string key_text(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : std::string(section) + "." + std::string(name);
}

}  // namespace scapesim::scenario
