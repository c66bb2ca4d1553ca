// SPDX-License-Identifier: Apache-2.0
// What if one part is slow or fails: the slow-down of the step, with its interval.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/study/scale.hpp"

namespace scapesim::study {

struct Disturbance {
  std::string name = {};
  std::string key = {};
  std::string value = {};  ///< as after --set
  Seconds step_time = {};
  double slowdown = 1;              ///< step over the undisturbed one
  std::optional<double> low, high;  ///< [M376] its 90 % interval
};

/// One disturbance at a time; those that the cluster cannot have are left out.
std::vector<Disturbance> disturbances(const Series& series, const result::Run& base,
                                      const PredictOptions& options);

}  // namespace scapesim::study
