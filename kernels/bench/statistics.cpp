// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/statistics.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"

namespace scapesim::bench {

namespace {

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Summary summary_of(std::vector<double> samples) {
  SCAPESIM_CHECK(!samples.empty(), "no samples");
  std::ranges::sort(samples);
  Summary summary{.median = quantile(samples, 0.5),
                  .p5 = quantile(samples, 0.05),
                  .p95 = quantile(samples, 0.95),
                  .mad = 0};
  for (double& sample : samples) sample = std::abs(sample - summary.median);
  std::ranges::sort(samples);
  summary.mad = quantile(samples, 0.5);
  return summary;
}

Measured measure(const Rules& rules, const std::function<double(int)>& time_once,
                 const std::function<bool()>& stop) {
  int number = 0;
  const auto round = [&](int count) {
    std::vector<double> samples;
    for (int i = 0; i < count; ++i) {
      if (stop()) throw Interrupted();
      samples.push_back(time_once(number++));
    }
    return samples;
  };
  round(rules.warmup);
  Measured measured;
  measured.samples = round(rules.samples);
  const std::vector<double> again = round(rules.samples);
  const double first = summary_of(measured.samples).median;
  const double second = summary_of(again).median;
  measured.repeat_spread = std::abs(first - second) / std::min(first, second);
  measured.samples.insert(measured.samples.end(), again.begin(), again.end());
  return measured;
}

}  // namespace scapesim::bench
