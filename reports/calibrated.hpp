// SPDX-License-Identifier: Apache-2.0
// A calibration for machines: rows as measured and as fitted.
#pragma once

#include <string>
#include <vector>

#include "calib/calibrate.hpp"

namespace scapesim::reports {

/// {"schema": "scapesim.calibration/1", ...}
std::string calibration_json(const calib::Calibration& calibration,
                             const std::vector<std::string>& inputs);

}  // namespace scapesim::reports
