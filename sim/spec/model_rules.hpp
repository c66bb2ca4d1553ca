// SPDX-License-Identifier: Apache-2.0
// Rules of a model by itself and of how it is split: heads, widths, experts, sequence.
#pragma once

#include <vector>

#include "sim/spec/spec.hpp"

namespace scapesim::spec {

/// Appends what is violated.
void check_model(const Model& model, const Training& training, std::vector<Violation>& list);
/// [M211] Only what divides evenly is simulated; rows of the vocabulary are padded.
void check_split(const Scenario& scenario, std::vector<Violation>& list);

}  // namespace scapesim::spec
