// SPDX-License-Identifier: Apache-2.0
// Fuzz target of other frameworks' arguments: any bytes give a scenario's keys or an InputError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/scenario/arguments.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace scapesim;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    scenario::scenario_toml(scenario::import_arguments(text, "fuzz"), "fuzz");
  } catch (const InputError&) {
  }
  return 0;
}
