// SPDX-License-Identifier: Apache-2.0
// Rules of what is trained on what data, and the stages of a growing batch.
#pragma once

#include <vector>

#include "sim/spec/spec.hpp"

namespace scapesim::spec {

/// Appends what is violated.
void check_tuning(const Scenario& scenario, std::vector<Violation>& list);
void check_data(const Scenario& scenario, std::vector<Violation>& list);

}  // namespace scapesim::spec
