// SPDX-License-Identifier: Apache-2.0
// One of the kernels' checks on the SIMT shim. Exit codes: 0 agrees, 1 does not or breaks a rule of
// the machine. The faults that faults_test.py plants are found with it.
#include <cstdio>
#include <cstring>

#include "kernels/check/check.hpp"
#include "kernels/simt/simt.hpp"

using namespace scapesim::kernels;

namespace {

constexpr std::size_t kSizes[] = {33, 2049, 7919};

/// What is wrong at first, or empty.
std::string first_fault(const Check& check) {
  std::uint64_t seed = 1;
  for (const std::size_t elements : kSizes)
    for (const Pattern pattern : kPatterns) {
      const Setup setup{.elements = elements,
                        .seed = seed,
                        .pattern = pattern,
                        .density = 0.2,
                        .shift = seed % 4};
      simt::set_seed(seed++);
      for (const Comparison& it : run(check, setup))
        if (!it.passed())
          return it.output + ": " + std::to_string(it.different) + " of " +
                 std::to_string(it.compared) + " differ";
    }
  return {};
}

std::string fault_or_none(const Check& check) {
  try {
    return first_fault(check);
  } catch (const std::exception& fault) {
    return fault.what();
  }
}

}  // namespace

int main(int count, char** arguments) {
  for (const Check& check : checks()) {
    if (count != 2 || std::strcmp(check.name, arguments[1]) != 0) continue;
    const std::string fault = fault_or_none(check);
    if (!fault.empty()) std::printf("%s\n", fault.c_str());
    return fault.empty() ? 0 : 1;
  }
  std::printf("simt_check CHECK\n");
  return 2;
}
