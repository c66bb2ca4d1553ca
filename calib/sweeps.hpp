// SPDX-License-Identifier: Apache-2.0
// Published nccl-tests tables in calib/data/collectives-*.csv.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calib/collectives.hpp"

namespace scapesim::calib {

/// One table: a collective on one layout over many sizes.
struct Sweep {
  std::string name;
  std::string gpu;
  std::string fabric;  ///< class of links: "NVLink 4", "8x400G NDR"
  bool exact = true;   ///< false: something about it is inferred
  std::string source;
  std::vector<TimedCall> calls;  ///< ascending in size
};

/// All tables under calib/data of `root`. Throws InputError for files that do not fit together.
std::vector<Sweep> collective_sweeps(const std::filesystem::path& root);

}  // namespace scapesim::calib
