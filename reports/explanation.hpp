// SPDX-License-Identifier: Apache-2.0
// What --explain shows: the terms of a step and the rows of the profile that they rest on.
#pragma once

#include <string>
#include <vector>

#include "sim/cost/profile.hpp"
#include "sim/predict/used_keys.hpp"
#include "sim/result/result.hpp"

namespace scapesim::reports {

/// A number or a curve of the profile. A curve has no single value: its factors are shown.
struct CalibrationRow {
  std::string key;
  std::string kind;  ///< "number" or "curve"
  double value = 1;
  double low = 1;
  double high = 1;
  std::string provenance;
  std::string source;
};

struct Explanation {
  std::vector<result::Term> terms;
  std::vector<CalibrationRow> calibration;  ///< each key that a term names, once, ordered by key
};

/// An infeasible outcome has nothing to explain.
Explanation explain_step_time(const result::Outcome& outcome, const cost::Profile& profile);

/// Every number and curve of the profile.
ProfileKeys all_keys(const cost::Profile& profile);

/// Rows of these keys of the profile, in order.
std::vector<CalibrationRow> calibration_rows(const cost::Profile& profile, const ProfileKeys& keys);

}  // namespace scapesim::reports
