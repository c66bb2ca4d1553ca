// SPDX-License-Identifier: Apache-2.0
// `compare`: steps and memory side by side, with the differences by term.
#pragma once

#include <string>

#include "sim/study/side_by_side.hpp"

namespace scapesim::reports {

std::string compare_text(const study::SideBySide& table);
std::string compare_json(const study::SideBySide& table);

/// One row per term: part,term,kind, then per column its value and (but for the first) difference.
std::string compare_csv(const study::SideBySide& table);

}  // namespace scapesim::reports
