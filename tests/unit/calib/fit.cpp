// SPDX-License-Identifier: Apache-2.0
// Fits recover what made-up rows were made from: [M80] linear, [M81] positive, [M82] ring.
#include "calib/fit.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/base/random.hpp"

using namespace scapesim;
using calib::Fit;
using calib::RingRow;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

constexpr double kBandwidth = 3.62e9, kAlpha = 1.1e-3;

/// Standard normal by the central limit: the sum of twelve uniforms.
double normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

/// Two models, two methods, 4 to 64 ranks, with relative noise.
std::vector<RingRow> ring_rows(double noise, Random& random) {
  std::vector<RingRow> rows;
  for (const double parameters : {513.6e6, 1831.2e6})
    for (const double bytes : {8.0, 6.0})
      for (const int ranks : {4, 8, 16, 32, 64}) {
        const Bytes volume(bytes * parameters * (ranks - 1) / ranks);
        const int steps = 2 * (ranks - 1);
        const double time = volume.si() / kBandwidth + steps * kAlpha;
        rows.push_back({volume, steps, Seconds(time * (1 + noise * normal(random)))});
      }
  return rows;
}

VectorXd line(const VectorXd& x, const VectorXd& at) {
  return (at[0] * x.array() + at[1]).matrix();
}

}  // namespace

TEST_CASE("[M82] a ring fit of rows without noise gives back bandwidth and latency") {
  Random random(1);
  const Fit fit = calib::fit_ring(ring_rows(0, random));
  CHECK(1 / fit.value[0] == Approx(kBandwidth).epsilon(1e-10));
  CHECK(fit.value[1] == Approx(kAlpha).epsilon(1e-10));
  CHECK(fit.rows == 20);
  CHECK(fit.worst < 1e-12);
  CHECK(fit.standard_error[0] / fit.value[0] < 1e-12);
}

TEST_CASE(
    "[M82] with noise, the truth lies within its stated standard errors as often as it must") {
  // A normal error is within 1 standard error in 68 of 100 cases and within 2.5 in 98; with 18
  // degrees of freedom a little less.
  int within_1[2] = {}, within_2_5[2] = {};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const Fit fit = calib::fit_ring(ring_rows(0.02, random));
    const double truth[2] = {1 / kBandwidth, kAlpha};
    for (int i = 0; i < 2; ++i) {
      const double errors = std::abs(fit.value[i] - truth[i]) / fit.standard_error[i];
      within_1[i] += errors < 1;
      within_2_5[i] += errors < 2.5;
    }
    CHECK(fit.rms == Approx(0.02).epsilon(0.6));
  }
  for (int i = 0; i < 2; ++i) {
    CHECK(within_2_5[i] >= 90);
    CHECK(within_1[i] >= 50);
    CHECK(within_1[i] <= 82);
  }
}

TEST_CASE("[M80] one parameter has the closed form of relative least squares") {
  // Minimises sum (c x/y - 1)^2: c = sum(x/y) / sum((x/y)^2).
  const VectorXd x{{1, 2, 5, 7}};
  const VectorXd y{{2, 5, 9, 16}};
  const VectorXd share = x.cwiseQuotient(y);
  const Fit fit = calib::fit_linear(x, y);
  CHECK(fit.value[0] == Approx(share.sum() / share.squaredNorm()).epsilon(1e-12));
  const VectorXd residual = (fit.value[0] * share).array() - 1;
  CHECK(fit.rms == Approx(std::sqrt(residual.squaredNorm() / 4)).epsilon(1e-12));
  CHECK(fit.worst == Approx(residual.cwiseAbs().maxCoeff()).epsilon(1e-12));
  CHECK(fit.standard_error[0] ==
        Approx(std::sqrt(residual.squaredNorm() / 3 / share.squaredNorm())).epsilon(1e-12));
}

TEST_CASE("[M80] a fit needs more rows than parameters") {
  CHECK_THROWS_AS(calib::fit_linear(MatrixXd::Identity(2, 2), VectorXd::Ones(2)), InternalError);
  const auto constant = [](const VectorXd& at) -> VectorXd { return at; };
  CHECK_THROWS_AS(calib::fit_positive(constant, VectorXd::Ones(2), VectorXd::Ones(2)),
                  InternalError);
}

TEST_CASE("[M80] relative residuals need positive measurements") {
  CHECK_THROWS_AS(calib::fit_linear(VectorXd::Ones(3), VectorXd{{1, 0, 2}}), InternalError);
}

TEST_CASE("[M81] a positive fit recovers its parameters from starts far away") {
  const VectorXd x{{1, 2, 4, 8, 16, 32}};
  const VectorXd truth{{3, 0.25}};
  const auto model = [&](const VectorXd& at) -> VectorXd { return line(x, at); };
  for (const double off : {0.01, 0.3, 5.0, 100.0}) {
    const Fit fit = calib::fit_positive(model, line(x, truth), VectorXd{{3 * off, 0.25 / off}});
    CHECK(fit.value[0] == Approx(3).epsilon(1e-6));
    CHECK(fit.value[1] == Approx(0.25).epsilon(1e-5));  // ten times less seen than the slope
    CHECK(fit.worst < 1e-6);
  }
}

TEST_CASE("[M81] a positive fit recovers a power law") {
  const VectorXd x{{1, 3, 10, 30, 100}};
  const auto model = [&](const VectorXd& at) -> VectorXd {
    return (at[0] * x.array().pow(at[1])).matrix();
  };
  const Fit fit = calib::fit_positive(model, model(VectorXd{{2e-6, 0.7}}), VectorXd{{1e-3, 1.5}});
  CHECK(fit.value[0] == Approx(2e-6).epsilon(1e-5));
  CHECK(fit.value[1] == Approx(0.7).epsilon(1e-5));
}

TEST_CASE("[M81] parameters stay positive even where the best line would not") {
  const VectorXd x{{1, 2, 3, 4}};
  const VectorXd measured{{0.5, 1.8, 3.1, 4.2}};  // the unconstrained offset is negative
  const auto model = [&](const VectorXd& at) -> VectorXd { return line(x, at); };
  const Fit fit = calib::fit_positive(model, measured, VectorXd{{1, 1}});
  CHECK(fit.value[0] > 0);
  CHECK(fit.value[1] > 0);
  CHECK(fit.value[1] < 0.01);
}

TEST_CASE("[M81] a step to where the model is not a number is not taken") {
  const VectorXd x{{1, 2, 4, 8}};
  const auto model = [&](const VectorXd& at) -> VectorXd {
    if (at[0] < 2) return VectorXd::Constant(4, std::nan(""));
    return at[0] * x;
  };
  const Fit fit = calib::fit_positive(model, 1.5 * x, VectorXd{{50.0}});
  CHECK(std::isfinite(fit.rms));
  CHECK(fit.value[0] >= 2);
}
