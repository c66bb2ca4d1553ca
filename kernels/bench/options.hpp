// SPDX-License-Identifier: Apache-2.0
// What scapesim-bench is asked to measure.
#pragma once

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "kernels/bench/cases.hpp"
#include "kernels/bench/statistics.hpp"

namespace scapesim::bench {

struct Options {
  std::vector<Family> families;
  Extent extent = Extent::full;
  Rules rules;
  std::filesystem::path output;
  std::filesystem::path shapes;  ///< empty: gemm_shapes.csv beside the program
  std::string machine;           ///< what the profile will call it; empty: the host's name
  int device = 0;
};

/// What to print and the exit code, where there is nothing to measure.
struct Ended {
  std::string text;
  int code = 0;
};

std::variant<Options, Ended> parse_options(int argc, const char* const* argv);

}  // namespace scapesim::bench
