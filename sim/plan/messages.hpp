// SPDX-License-Identifier: Apache-2.0
// What pipeline stages send each other: activations forward, their gradients backward.
#pragma once

#include <vector>

#include "sim/plan/stage_program.hpp"

namespace scapesim::plan {

/// [M236] A message behind every pass that another stage's pass waits for, as operations of both. A
/// stage receives in the order in which its neighbour sends.
void add_messages(std::vector<StageProgram>& stages, const spec::Scenario& scenario);

/// [M236] Bytes of a micro-batch's activations between two stages, per rank.
Bytes message_bytes(const spec::Scenario& scenario);

}  // namespace scapesim::plan
