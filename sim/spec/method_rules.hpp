// SPDX-License-Identifier: Apache-2.0
// Rules of the communication methods, used by the rules of a scenario.
#pragma once

#include "sim/spec/spec.hpp"

namespace scapesim::spec {

using Violations = std::vector<Violation>;

/// Whether strategy.density means something to a method.
bool selects_by_density(Method method);

void check_method(const Scenario& scenario, Violations& list);

}  // namespace scapesim::spec
