// SPDX-License-Identifier: Apache-2.0
// Fuzz target of the importers: any bytes give observations or an InputError. Built by clang with
// -DSCAPESIM_FUZZ=ON; run as import_fuzz CORPUS -max_total_time=60, where the fixtures of
// tests/golden/calib make a corpus.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "calib/import.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    scapesim::calib::import_bytes({reinterpret_cast<const char*>(data), size}, "fuzz");
  } catch (const scapesim::InputError&) {
  }
  return 0;
}
