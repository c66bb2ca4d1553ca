// SPDX-License-Identifier: Apache-2.0
// Plan -> Timeline: replays a step graph until steps repeat.
#pragma once

#include "sim/engine/timeline.hpp"

namespace scapesim::engine {

/// Who advances the clock. Both drive the same fluid core and give bit-equal timelines.
enum class Driver { simgrid, standalone };

struct ReplayOptions {
  Driver driver = Driver::simgrid;
  int most_steps = 12;  ///< cap on simulated steps when they do not repeat; two periods at least
};

/// [M24] Steady step. Runs whole steps until the last of them are those a period before, every
/// operation ended later by one common shift, which is also what the period before took (1e-9
/// relative). As many steps are compared as dependencies reach back, a period at least. Local work
/// that only runs further ahead does not count. Dependencies on steps before the first are met.
/// Throws InternalError for a graph that breaks its own rules, or that cannot go on.
/// Only one SimGrid engine can live in a process at a time; calls one after the other are fine.
Timeline replay(const graph::StepGraph& graph, const ReplayOptions& options = {});

}  // namespace scapesim::engine
