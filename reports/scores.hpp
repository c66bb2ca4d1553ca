// SPDX-License-Identifier: Apache-2.0
// Scored tables of measured runs, for people and machines.
#pragma once

#include <string>

#include "sim/study/rows.hpp"

namespace scapesim::reports {

/// Which rows of a score to show: all, the ten with the largest errors, or none.
enum class ShownRows { all, worst, none };

/// Groups with their errors, the rows asked for with what to look at first, the budget.
std::string scores_text(const study::Scores& scores, ShownRows shown);

/// {"schema": "scapesim.scores/1", ...}: everything.
std::string scores_json(const study::Scores& scores);

/// One line per row of the table.
std::string scores_csv(const study::Scores& scores);

}  // namespace scapesim::reports
