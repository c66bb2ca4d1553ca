// SPDX-License-Identifier: Apache-2.0
// `breakeven` for people and as JSON.
#pragma once

#include <string>

#include "sim/study/breakeven.hpp"

namespace scapesim::reports {

std::string breakeven_text(const study::BreakEvenStudy& study);
/// scapesim.breakeven/1.
std::string breakeven_json(const study::BreakEvenStudy& study);

}  // namespace scapesim::reports
