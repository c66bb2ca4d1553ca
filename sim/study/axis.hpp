// SPDX-License-Identifier: Apache-2.0
// Axes of a study: one key of the scenario and the values it takes, "parallelism.tp = 1,2,4",
// "cluster.gpus = 64:1024:*2", "cluster.nic_bandwidth = 100Gbps:400Gbps:100Gbps".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/scenario/value.hpp"

namespace scapesim::study {

struct Axis {
  std::string key;                        ///< "parallelism.tp"
  std::vector<scenario::Setting> values;  ///< in the order of the text
  std::vector<std::string> texts;         ///< the same, as written or as the range says
};

/// Reads "KEY=VALUE,...", the `ordinal`-th of `origin`. A value is TOML or a bare word, as with
/// --set; FIRST:LAST:STEP counts up or down to LAST at most, FIRST:LAST:*FACTOR and /FACTOR go by
/// a factor; all of a range have the same unit or none. Commas inside quotes and brackets do not
/// part values. Problems are placed at `ordinal` and the column; the axis counts only without any.
Axis parse_axis(const std::string& text, const std::string& origin, int ordinal,
                Problems& problems);

/// All combinations, the first axis outermost; or the axes side by side, value by value.
enum class Combine { cartesian, zipped };

/// The points of some axes as numbers 0 .. size() - 1.
class Grid {
 public:
  /// Throws InputError for a key on two axes, zipped axes of unequal length, and too many points.
  Grid(std::vector<Axis> axes, Combine combine);

  std::uint64_t size() const { return size_; }
  std::span<const Axis> axes() const { return axes_; }
  Combine combine() const { return combine_; }
  /// Which value of each axis.
  std::vector<std::size_t> at(std::uint64_t point) const;

 private:
  std::vector<Axis> axes_;
  Combine combine_;
  std::uint64_t size_ = 1;
};

}  // namespace scapesim::study
