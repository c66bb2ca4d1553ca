// SPDX-License-Identifier: Apache-2.0
// Maps what can go wrong to exit codes; everything else is in program.cpp.
#include <exception>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/cli/command.hpp"

int main(int argc, char** argv) {
  using namespace scapesim;
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    return cli::run_program(arguments);
  } catch (const InputError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return cli::kBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "scapesim: this is a fault of the program: {}\n", error.what());
    return cli::kOurFault;
  }
}
