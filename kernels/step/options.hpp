// SPDX-License-Identifier: Apache-2.0
// What scape-step is asked to do.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>

#include "kernels/step/scape_step.hpp"

namespace scapesim::step {

enum class Device { cuda, cpu };
inline std::span<const Named<Device>> names_of(Device*) {
  static constexpr Named<Device> kRows[] = {{Device::cuda, "cuda"}, {Device::cpu, "cpu"}};
  return kRows;
}

struct ProgramOptions {
  StepOptions step;
  Device device = Device::cuda;
  int ranks = 1;
  std::optional<int> rank;  ///< this process's; none: all ranks are in this process
  int steps = 10;
  std::size_t elements = std::size_t{1} << 20U;
  double learning_rate = 1e-3;
  double stand_in_flops = 0;
  bool check = false;
  std::filesystem::path rendezvous;
  std::chrono::milliseconds timeout{120'000};
};

/// What to print and the exit code, where there is nothing to run: help, or an error.
struct Ended {
  std::string text;
  int code = 0;
};

std::variant<ProgramOptions, Ended> parse_options(int argc, const char* const* argv);

}  // namespace scapesim::step
