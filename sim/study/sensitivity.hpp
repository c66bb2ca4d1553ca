// SPDX-License-Identifier: Apache-2.0
// What a step time depends on, by simulating it again: derivatives, what-ifs, which resource bounds
// each part, what one changed choice of the recipe does, and roofs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/study/disturbances.hpp"
#include "sim/study/parameters.hpp"
#include "sim/study/point.hpp"
#include "sim/study/roofs.hpp"
#include "sim/study/scale.hpp"

namespace scapesim::study {

/// A parameter made larger and smaller.
struct Effect {
  Parameter parameter = {};
  std::optional<Seconds> less = {};       ///< step with the parameter times 1 - change
  std::optional<Seconds> more = {};       ///< times 1 + change
  double elasticity = 0;                  ///< [M367] relative change of the step over that of it
  std::optional<double> derivative = {};  ///< seconds per unit of its value
};

/// A term of the step and what it depends on.
struct PartBound {
  std::string name = {};
  std::string formula = {};
  Seconds time = {};
  std::string bound = {};           ///< the resource that most of it follows; empty: none
  std::vector<double> shares = {};  ///< [M368] per resource of machines(), of the term's time
};

/// One key of the recipe with another value.
struct Alternative {
  std::string key = {};
  std::string from = {};
  std::string to = {};
  bool trains_otherwise = false;          ///< the model learns differently, not only faster
  std::optional<Seconds> step_time = {};  ///< none: does not fit
  double tokens_ratio = 1;                ///< tokens of its step over those of the base
  std::string infeasible = {};
  std::optional<Bytes> memory = {};
};

struct Sensitivity {
  Point point = {};  ///< the base; infeasible: nothing else is filled
  double change = 0.1;
  std::vector<Effect> effects = {};              ///< largest first
  std::vector<std::string> without_effect = {};  ///< names of parameters that move nothing
  std::vector<double> resource_shares = {};      ///< [M367] per resource of machines(), of the step
  std::vector<PartBound> parts = {};             ///< longest first
  std::vector<Alternative> alternatives = {};    ///< fastest per token first
  std::vector<Roof> roofs = {};
  std::vector<Disturbance> disturbances = {};
};

/// `change` is between 0 and 1, that of the what-ifs.
Sensitivity sensitivity(const Series& series, double change, const PredictOptions& options);

/// Half the width of central differences, relative.
inline constexpr double kDifferenceStep = 1e-3;

}  // namespace scapesim::study
