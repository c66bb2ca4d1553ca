// SPDX-License-Identifier: Apache-2.0
// How short a step could be if one thing cost nothing: bounds from below, from its step graph.
#pragma once

#include <string>
#include <vector>

#include "sim/predict/predict.hpp"

namespace scapesim::study {

struct Roof {
  std::string name;
  std::string help;
  Seconds step_time;
};

/// [M369] The roofs of a feasible prediction.
std::vector<Roof> roofs_of(const Prediction& prediction);

}  // namespace scapesim::study
