// SPDX-License-Identifier: Apache-2.0
// A SimGrid engine with this program's settings: exact bandwidths, no cross traffic, silent.
#pragma once

#include <simgrid/s4u.hpp>

namespace scapesim::engine {

/// Owns the process's one SimGrid engine while it lives; another one may follow.
class SimgridEngine {
 public:
  SimgridEngine();
  ~SimgridEngine();
  SimgridEngine(const SimgridEngine&) = delete;
  SimgridEngine& operator=(const SimgridEngine&) = delete;
  simgrid::s4u::Engine& operator*() { return *engine_; }
  simgrid::s4u::Engine* operator->() { return engine_; }

 private:
  simgrid::s4u::Engine* engine_;
};

}  // namespace scapesim::engine
