// SPDX-License-Identifier: Apache-2.0
#include "calib/sustained.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "sim/predict/predict.hpp"

namespace scapesim::calib {

namespace {

/// Logarithm of the predicted over the measured step time at a scale.
double excess(cost::Profile& profile, const MeasuredStep& step, double log_scale) {
  profile.numbers["gemm.scale"].value = std::exp(log_scale);
  const Prediction prediction =
      predict(step.scenario, profile, {.driver = engine::Driver::standalone, .interval_draws = 0});
  const auto& run = std::get<result::Run>(prediction.outcome);
  return std::log(run.step_time / step.step_time);
}

}  // namespace

// [M175] The secant method on logarithms, where a step time over the scale is nearly a line.
double sustained_scale(const cost::Profile& profile, const MeasuredStep& step) {
  constexpr double kMet = 1e-6;
  constexpr int kMostRounds = 12;
  cost::Profile candidate = profile;
  double before = 0;
  double at = std::log(0.9);
  double excess_before = excess(candidate, step, before);
  double excess_at = excess(candidate, step, at);
  for (int round = 0; round < kMostRounds && std::abs(excess_at) > kMet; ++round) {
    const double slope = (excess_at - excess_before) / (at - before);
    if (slope == 0) break;  // GEMMs do not show in this step
    before = at;
    excess_before = excess_at;
    at = std::clamp(at - excess_at / slope, std::log(0.1), std::log(2.0));
    excess_at = excess(candidate, step, at);
  }
  return std::exp(at);
}

void fit_sustained(cost::Profile& profile, const std::vector<MeasuredStep>& steps,
                   const cost::Origin& source, std::string& report) {
  constexpr double kBeyond = 0.1;
  std::vector<double> scales;
  double logs = 0;
  std::string names;
  for (const MeasuredStep& step : steps) {
    scales.push_back(sustained_scale(profile, step));
    logs += std::log(scales.back());
    names += (names.empty() ? "" : ", ") + step.name;
  }
  const double scale = std::exp(logs / static_cast<double>(steps.size()));
  const auto [least, most] = std::minmax_element(scales.begin(), scales.end());
  profile.numbers["gemm.scale"] = {
      scale,
      *least * (1 - kBeyond),
      *most * (1 + kBeyond),
      cost::Factor::gemm,
      {source.kind,
       fmt::format("scale that meets the measured steps of rows {} ({})", names, source.source)}};
  report += fmt::format("sustained on {}: scale {:.3f} ({:.3f} to {:.3f}), rows {}\n", profile.id,
                        scale, *least, *most, names);
}

}  // namespace scapesim::calib
