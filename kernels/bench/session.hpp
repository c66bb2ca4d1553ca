// SPDX-License-Identifier: Apache-2.0
// A run of the bench: where rows go, what stops it, and the device's entry points of this build.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "kernels/bench/options.hpp"
#include "kernels/bench/row.hpp"

namespace scapesim::bench {

/// What families need: rules, the file, a word of progress, and the ceiling that membw found.
struct Session {
  const Options& options;
  Provenance provenance;
  RowFile& file;
  std::function<bool()> stop;
  std::function<void(const std::string&)> progress;
  std::function<DeviceState()> state = [] { return DeviceState{}; };
  std::optional<double> copy_rate = {};  ///< of copies over the device's caches

  /// Adds ceiling and state, and writes the row.
  void write(Row row) const {
    row.copy_rate = copy_rate;
    row.state = state();
    file.write(line_of(row, provenance));
  }
};

/// Why there is no device to measure, or empty.
std::string device_missing();
/// Chooses the device, fills in what the provenance says of it, and measures the families.
void measure_device(Session& session, const std::vector<GemmCase>& shapes);

}  // namespace scapesim::bench
