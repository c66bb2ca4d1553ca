// SPDX-License-Identifier: Apache-2.0
// Results as comma-separated values: one row per point, the keys of the JSON as columns, unknown
// is empty; an infeasible point has its reason in the last column and nothing else.
#pragma once

#include <span>
#include <string>

#include "sim/study/point.hpp"

namespace scapesim::reports {

std::string points_csv(std::span<const study::Point> points);

/// Text as a cell: quoted when it has to be (RFC 4180).
std::string csv_cell(const std::string& text);

}  // namespace scapesim::reports
