// SPDX-License-Identifier: Apache-2.0
// device_check [SEED [LARGEST]]: every kernel on the device that is there, against the reference,
// on inputs of up to LARGEST elements, as a table. Exit codes: 0 all agree, 1 something does not,
// 70 a call failed, 77 there is no CUDA device.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>

#include "kernels/check/check.hpp"

using namespace scapesim;
using namespace scapesim::kernels;

namespace {

constexpr int kFinding = 1;
constexpr int kFault = 70;
constexpr int kNoDevice = 77;

struct Row {
  std::size_t setups = 0;
  std::size_t compared = 0;
  std::size_t failed = 0;  ///< comparisons
  double error = 0;
  std::string first_failure;
};

void add(Row& row, const Comparison& it, const Setup& setup) {
  row.compared += it.compared;
  row.error = it.error <= row.error ? row.error : it.error;
  if (it.passed()) return;
  if (++row.failed > 1) return;
  row.first_failure = it.output + ": " + std::to_string(it.different) + " of " +
                      std::to_string(it.compared) + " differ, error " + std::to_string(it.error) +
                      " (n " + std::to_string(setup.elements) + ", " + name_of(setup.pattern) +
                      ", seed " + std::to_string(setup.seed) + ")";
}

constexpr std::size_t kSizes[] = {1, 31, 33, 2047, 2049, 100003, 1U << 20U};

/// Every pattern at every size, aligned and not.
Row row_of(const Check& check, std::uint64_t seed, std::size_t largest) {
  Row row;
  for (const std::size_t elements : kSizes) {
    if (elements > largest) break;
    for (const Pattern pattern : kPatterns)
      for (const double density : {0.01, 0.1, 1.0}) {
        const Setup setup{.elements = elements,
                          .seed = seed++,
                          .pattern = pattern,
                          .density = density,
                          .shift = seed % 4};
        ++row.setups;
        for (const Comparison& it : run(check, setup)) add(row, it, setup);
      }
  }
  return row;
}

int check_all(std::uint64_t seed, std::size_t largest) {
  std::printf("%s, seed %llu\n\n%-24s %7s %12s %14s %10s\n", device_name().c_str(),
              static_cast<unsigned long long>(seed), "kernel", "inputs", "values", "largest error",
              "result");
  bool all = true;
  for (const Check& check : checks()) {
    const Row row = row_of(check, seed, largest);
    std::printf("%-24s %7zu %12zu %14.2g %10s\n", check.name, row.setups, row.compared, row.error,
                row.failed == 0 ? "ok" : "WRONG");
    if (row.failed > 0)
      std::printf("  %zu wrong, first %s\n", row.failed, row.first_failure.c_str());
    all = all && row.failed == 0;
  }
  return all ? EXIT_SUCCESS : kFinding;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const std::string missing = missing_device();
    if (!missing.empty()) {
      std::printf("%s\n", missing.c_str());
      return kNoDevice;
    }
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    const auto number = [&](int i, std::uint64_t fallback) {
      return count > i ? std::stoull(arguments[i]) : fallback;
    };
    return check_all(number(1, static_cast<std::uint64_t>(now)), number(2, kSizes[6]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_check: %s\n", error.what());
    return kFault;
  }
}
