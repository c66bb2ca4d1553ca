// SPDX-License-Identifier: Apache-2.0
#include "calib/sustained.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "sim/predict/predict.hpp"

namespace scapesim::calib {

namespace {

/// Logarithm of the predicted over the measured step time at a value of the number.
double excess(cost::Profile& profile, const FreeNumber& number, const MeasuredStep& step,
              double log_value) {
  profile.numbers[number.key].value = std::exp(log_value);
  const Prediction prediction =
      predict(step.scenario, profile, {.driver = engine::Driver::standalone, .interval_draws = 0});
  const auto& run = std::get<result::Run>(prediction.outcome);
  return std::log(run.step_time / step.step_time);
}

}  // namespace

// [M175] The secant method on logarithms, where a step time over the number is nearly a line.
double value_that_meets(const cost::Profile& profile, const FreeNumber& number,
                        const MeasuredStep& step) {
  constexpr double kMet = 1e-6;
  constexpr double kFurthest = 2.3;  // a factor of 10 either way
  constexpr int kMostRounds = 12;
  cost::Profile candidate = profile;
  const double start = std::log(number.start);
  double before = start;
  double at = start - 0.1;
  double excess_before = excess(candidate, number, step, before);
  double excess_at = excess(candidate, number, step, at);
  for (int round = 0; round < kMostRounds && std::abs(excess_at) > kMet; ++round) {
    const double slope = (excess_at - excess_before) / (at - before);
    if (slope == 0) break;  // the number does not show in this step
    before = at;
    excess_before = excess_at;
    at = std::clamp(at - excess_at / slope, start - kFurthest, start + kFurthest);
    if (at == before) break;  // as near as the range allows
    excess_at = excess(candidate, number, step, at);
  }
  return std::exp(at);
}

void fit_to_steps(cost::Profile& profile, const FreeNumber& number,
                  const std::vector<MeasuredStep>& steps, const cost::Origin& source,
                  std::string& report) {
  constexpr double kBeyond = 0.1;
  std::vector<double> values;
  double logs = 0;
  std::string names;
  for (const MeasuredStep& step : steps) {
    values.push_back(value_that_meets(profile, number, step));
    logs += std::log(values.back());
    names += (names.empty() ? "" : ", ") + step.name;
  }
  const double mean = std::exp(logs / static_cast<double>(steps.size()));
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  profile.numbers[number.key] = {
      mean,
      *least * (1 - kBeyond),
      *most * (1 + kBeyond),
      number.factor,
      {source.kind, fmt::format("meets the measured steps of rows {} ({})", names, source.source)}};
  report += fmt::format("{} of {}: {:.4g} ({:.4g} to {:.4g}), rows {}\n", number.key, profile.id,
                        mean, *least, *most, names);
}

}  // namespace scapesim::calib
