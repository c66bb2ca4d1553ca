// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/profile.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/base/check.hpp"
#include "sim/base/random.hpp"

namespace scapesim::cost {

// [M14] Log-log interpolation between samples, flat outside the sampled range.
double Curve::at(double x_value) const {
  SCAPESIM_CHECK(!points.empty(), "curve of {} has no points", y);
  if (x_value <= points.front()[0]) return points.front()[1];
  if (x_value >= points.back()[0]) return points.back()[1];
  const auto above = std::upper_bound(points.begin(), points.end(), x_value,
                                      [](double v, const auto& point) { return v < point[0]; });
  const auto& [x1, y1] = *above;
  const auto& [x0, y0] = *(above - 1);
  const double share = std::log(x_value / x0) / std::log(x1 / x0);
  return y0 * std::pow(y1 / y0, share);
}

bool Curve::covers(double x_value) const {
  return !points.empty() && x_value >= points.front()[0] && x_value <= points.back()[0];
}

double Profile::number(std::string_view key) const {
  const auto found = numbers.find(key);
  SCAPESIM_CHECK(found != numbers.end(), "profile {} has no number {}", id, key);
  return found->second.value;
}

const Curve& Profile::curve(std::string_view key) const {
  const auto found = curves.find(key);
  SCAPESIM_CHECK(found != curves.end(), "profile {} has no curve {}", id, key);
  return found->second;
}

Provenance weakest(const Profile& profile) {
  Provenance worst = Provenance::measured;
  for (const auto& [key, number] : profile.numbers) worst = std::max(worst, number.origin.kind);
  for (const auto& [key, curve] : profile.curves) worst = std::max(worst, curve.origin.kind);
  return worst;
}

double normal_quantile(double p) {
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                          6.680131188771972e+01, -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                          3.754408661907416e+00};
  const auto tail = [&](double q) {
    return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
           ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  };
  if (p < 0.02425) return tail(std::sqrt(-2 * std::log(p)));
  if (p > 1 - 0.02425) return -tail(std::sqrt(-2 * std::log(1 - p)));
  const double q = p - 0.5;
  const double r = q * q;
  return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
         (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

namespace {

/// Half-width of a 90 % range in standard deviations.
constexpr double kRange90 = 1.6448536269514722;

/// [M77] Split normal: low and high are the 5 % and 95 % quantiles, each side with its own spread.
/// A number stays above half its low end. Factors relative to the value.
double moved(double low_factor, double high_factor, double z) {
  const double spread = z < 0 ? 1 - low_factor : high_factor - 1;
  return std::max(1 + z / kRange90 * spread, low_factor / 2);
}

}  // namespace

// [M77] Latin hypercube: for every factor one draw from each of `count` equal slices of the
// distribution, in an order of its own; the same numbers on every machine.
std::vector<Draw> draws(int count) {
  std::vector<Draw> result(static_cast<std::size_t>(count));
  std::vector<std::size_t> order(result.size());
  for (std::size_t factor = 0; factor < Draw{}.size(); ++factor) {
    Random random(20260729 + factor);
    std::iota(order.begin(), order.end(), std::size_t{0});
    shuffle(order, random);
    for (std::size_t i = 0; i < order.size(); ++i) {
      const double slice_middle = (static_cast<double>(order[i]) + 0.5) / count;
      result[i][factor] = normal_quantile(slice_middle);
    }
  }
  return result;
}

Profile perturbed(const Profile& profile, const Draw& draw) {
  Profile moved_profile = profile;
  for (auto& [key, number] : moved_profile.numbers) {
    if (number.value == 0) continue;
    const double z = draw[static_cast<std::size_t>(number.factor)];
    number.value *= moved(number.low / number.value, number.high / number.value, z);
  }
  for (auto& [key, curve] : moved_profile.curves) {
    const double z = draw[static_cast<std::size_t>(curve.factor)];
    const double factor = moved(curve.low_factor, curve.high_factor, z);
    for (auto& point : curve.points) point[1] *= factor;
  }
  return moved_profile;
}

}  // namespace scapesim::cost
