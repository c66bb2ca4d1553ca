// SPDX-License-Identifier: Apache-2.0
// SimGrid's clock drives a replay: the fluid core is a resource model of a SimGrid engine.
#pragma once

#include "sim/engine/replay_state.hpp"

namespace scapesim::engine {

/// Runs the state until it is done, in an engine of its own. One engine may live at a time.
void run_on_simgrid_clock(ReplayState& state);

}  // namespace scapesim::engine
