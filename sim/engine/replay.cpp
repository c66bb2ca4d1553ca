// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/replay.hpp"

#include "sim/base/check.hpp"
#include "sim/engine/replay_state.hpp"
#include "sim/engine/simgrid_clock.hpp"

namespace scapesim::engine {

Timeline replay(const graph::StepGraph& graph, const ReplayOptions& options) {
  ReplayState state(graph, options.most_steps);
  switch (options.driver) {
    case Driver::standalone:
      while (!state.done()) state.advance();
      break;
    case Driver::simgrid:
      run_on_simgrid_clock(state);
      break;
  }
  return state.take();
}

}  // namespace scapesim::engine
