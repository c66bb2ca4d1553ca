// SPDX-License-Identifier: Apache-2.0
// Invariants of our own: a violation is our fault (exit code 70), never the user's.
#pragma once

#include <fmt/format.h>
#include <stdexcept>

namespace scapesim {

/// A broken invariant of the program itself.
class InternalError : public std::logic_error {
  using std::logic_error::logic_error;
};

}  // namespace scapesim

/// SCAPESIM_CHECK(condition, "format {}", values...): throws InternalError with the values.
#define SCAPESIM_CHECK(condition, ...)                                                             \
  do {                                                                                             \
    if (!(condition))                                                                              \
      throw ::scapesim::InternalError(fmt::format("{}:{}: {}: ", __FILE__, __LINE__, #condition) + \
                                      fmt::format(__VA_ARGS__));                                   \
  } while (false)
