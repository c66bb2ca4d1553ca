// SPDX-License-Identifier: Apache-2.0
// Results as JSON: fixed keys in fixed order, SI units in the key, unknown is null, doubles that
// read back to the same bits. Every document ends with a newline.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/explanation.hpp"
#include "reports/step_details.hpp"
#include "sim/predict/predict.hpp"
#include "sim/study/collective.hpp"
#include "sim/study/point.hpp"
#include "sim/study/scale.hpp"
#include "sim/study/validate.hpp"

namespace scapesim::reports {

/// What a result file holds beyond --json, so that pictures need nothing else.
struct Sources {
  std::string file;              ///< the scenario, as named
  std::string text;              ///< its content
  std::vector<std::string> set;  ///< --set
  std::vector<cost::Profile> calibrations;
};

/// `run`: one object for one point, {"schema": "scapesim.run-set/1", "runs": [...]} for several.
/// With an explanation per point, every run also carries "explain".
std::string runs_json(std::span<const study::Point> points,
                      std::span<const Explanation> explanations = {});

/// `run --result`: the same with the scenario's text, the rows of the calibration, and per run the
/// steady step's operations and kernels.
std::string run_result_json(std::span<const study::Point> points,
                            std::span<const StepDetails> details, const Sources& sources);

/// `scale`; "against" is there when something measured was given, "sources" with --result.
std::string scale_json(const study::Scale& scale, std::span<const study::Comparison> against,
                       const Sources* sources = nullptr);

/// `collective`.
std::string collective_json(std::span<const CollectiveTime> rows,
                            std::span<const result::Warning> warnings);

/// `collective --result`: the same with what it is of, and measured rows beside it.
std::string collective_result_json(const study::CollectiveStudy& study);

/// `validate`.
std::string validation_json(const study::Validation& validation);

/// `list`: rows of named text columns.
struct Listing {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
std::string listing_json(std::string_view what, const Listing& listing);

}  // namespace scapesim::reports
