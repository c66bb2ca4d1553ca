// SPDX-License-Identifier: Apache-2.0
// What if one part is slow or ranks jitter: the slow-down of the step, with its interval.
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
  double slowdown = 1;  ///< expected: step over the undisturbed one, of jitter the mean over steps
  std::optional<double> low = {}, high = {};  ///< [M376] its 90 % interval
  std::optional<double> deviation = {};       ///< of single jittered steps, on the same scale
};

/// One disturbance at a time, beside those of the scenario; what the cluster cannot have is left
/// out.
std::vector<Disturbance> disturbances(const Series& series, const result::Run& base,
                                      const PredictOptions& options);

}  // namespace scapesim::study
