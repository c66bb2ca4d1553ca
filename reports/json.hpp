// SPDX-License-Identifier: Apache-2.0
// Results as JSON: fixed keys in fixed order, SI units in the key, unknown is null, doubles that
// read back to the same bits. Every document ends with a newline.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/explanation.hpp"
#include "sim/predict/predict.hpp"
#include "sim/study/point.hpp"
#include "sim/study/scale.hpp"
#include "sim/study/validate.hpp"

namespace scapesim::reports {

/// `run`: one object for one point, {"schema": "scapesim.run-set/1", "runs": [...]} for several.
/// With an explanation per point, every run also carries "explain".
std::string runs_json(std::span<const study::Point> points,
                      std::span<const Explanation> explanations = {});

/// `scale`; "against" is there when something measured was given.
std::string scale_json(const study::Scale& scale, std::span<const study::Comparison> against);

/// `collective`.
std::string collective_json(std::span<const CollectiveTime> rows,
                            std::span<const result::Warning> warnings);

/// `validate`.
std::string validation_json(const study::Validation& validation);

/// `list`: rows of named text columns.
struct Listing {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
std::string listing_json(std::string_view what, const Listing& listing);

}  // namespace scapesim::reports
