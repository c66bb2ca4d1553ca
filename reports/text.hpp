// SPDX-License-Identifier: Apache-2.0
// Results for people: aligned tables, units chosen to be read; warnings apart.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/explanation.hpp"
#include "reports/json.hpp"

namespace scapesim::reports {

/// `run`: one point in full, several side by side.
std::string runs_text(std::span<const study::Point> points);

/// --explain step_time for one point.
std::string explanation_text(const study::Point& point, const Explanation& explanation);

/// `calibrate --show`: every number and curve with its range, provenance and source.
std::string profile_text(const cost::Profile& profile);

/// `scale`, with measured step times beside the predicted; other metrics below.
std::string scale_text(const study::Scale& scale, std::span<const study::Comparison> against);

/// `collective` in the columns of nccl-tests; `heading` says what ran where.
std::string collective_text(std::string_view heading, std::span<const CollectiveTime> rows);

/// One line per warning, for standard error. Of points: each warning once, with the series it
/// belongs to when not to all; of one kind the first two.
std::vector<std::string> warning_notes(std::span<const study::Point> points);
std::vector<std::string> warning_notes(std::span<const result::Warning> warnings);

std::string validation_text(const study::Validation& validation);
std::string listing_text(const Listing& listing);

}  // namespace scapesim::reports
