// SPDX-License-Identifier: Apache-2.0
// `sensitivity`: what a step depends on, what bounds its parts, and roofs.
#pragma once

#include <span>
#include <string>

#include "sim/study/sensitivity.hpp"

namespace scapesim::reports {

std::string sensitivity_text(const study::Sensitivity& sensitivity);

/// One object for one series, {"schema": "scapesim.sensitivity-set/1", "series": [...]} for more.
std::string sensitivity_json(std::span<const study::Sensitivity> series);

/// A row per parameter with an effect, the largest first.
std::string sensitivity_csv(std::span<const study::Sensitivity> series);

}  // namespace scapesim::reports
