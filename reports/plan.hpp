// SPDX-License-Identifier: Apache-2.0
// `plan`: configurations against a goal.
#pragma once

#include <string>

#include "sim/study/capacity.hpp"

namespace scapesim::reports {

std::string plan_text(const study::Capacity& capacity);
std::string plan_json(const study::Capacity& capacity);

/// A row per configuration, ranked.
std::string plan_csv(const study::Capacity& capacity);

}  // namespace scapesim::reports
