// SPDX-License-Identifier: Apache-2.0
// Single precision against double, element by element; AdamW and AdamS against written-out steps.
#include "kernels/reference/arithmetic.hpp"

#include <catch2/catch.hpp>

#include "tests/unit/kernels/support.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

/// Relative to the larger of the two and `scale`.
double error(float single, double exact, double scale) {
  return std::abs(static_cast<double>(single) - exact) / std::max(std::abs(exact), scale);
}

// A handful of operations of 2^-24 each.
constexpr double kFewRoundings = 1e-6;

}  // namespace

TEST_CASE("single precision follows double within a few roundings") {
  Random random(1);
  const Adam adam;
  for (int round = 0; round < 2000; ++round) {
    const int step = static_cast<int>(1 + random.below(1000));
    const auto single = coefficients<float>(adam, step, 1e-3);
    const auto exact = coefficients<double>(adam, step, 1e-3);
    const std::vector<float> x = random_values<float>(4, random);
    const float v = std::abs(x[3]);
    const double largest = 1;  // differences of numbers below 1 cancel
    CHECK(error(moment(single, x[0], x[1]), moment<double>(exact, x[0], x[1]), largest) <
          kFewRoundings);
    // The division by 1-b1 = 0.1 makes ten of one.
    CHECK(error(gradient_behind(single, x[0], x[1]), gradient_behind<double>(exact, x[0], x[1]),
                10 * largest) < kFewRoundings);
    CHECK(error(adams_second(single, x[0], x[1]), adams_second<double>(exact, x[0], x[1]), 0) <
          kFewRoundings);
    CHECK(error(adamw_second(single, v, x[1]), adamw_second<double>(exact, v, x[1]), 0) <
          kFewRoundings);
    CHECK(error(weight(single, x[2], x[0], v), weight<double>(exact, x[2], x[0], v), largest) <
          kFewRoundings);
  }
}

TEST_CASE("a moment hides its gradient from nobody") {
  Random random(2);
  const auto c = coefficients<double>(Adam{}, 3, 1e-3);
  for (int round = 0; round < 100; ++round) {
    const std::vector<double> x = random_values<double>(2, random);
    CHECK(gradient_behind(c, x[0], moment(c, x[0], x[1])) == Approx(x[1]).margin(1e-14));
  }
}

TEST_CASE("the first corrected step of both methods is the learning rate times the sign") {
  for (const Method method : {Method::adams, Method::adamw}) {
    Communicator communicator(2);
    const Adam adam{.weight_decay = 0};
    Dense<double> dense(method, adam, {1, 1, 1}, communicator);
    dense.step({{4, -1, 0}, {2, -3, 0}}, 0.1);
    // m / (1-b1) = g and v / (1-b2) = g^2; epsilon is 1e-8 of the gradient or less.
    CHECK(dense.parameters()[0] == Approx(0.9).epsilon(1e-8));
    CHECK(dense.parameters()[1] == Approx(1.1).epsilon(1e-8));
    CHECK(dense.parameters()[2] == 1);
  }
}

TEST_CASE("without bias correction AdamS takes its first step with (1-b1) / sqrt(1-b2)") {
  Communicator communicator(1);
  const Adam adam{.weight_decay = 0, .bias_correction = BiasCorrection::off};
  Dense<double> dense(Method::adams, adam, {1}, communicator);
  dense.step({{2}}, 0.1);
  CHECK(dense.parameters()[0] == Approx(1 - 0.1 * 0.1 / std::sqrt(0.05)).epsilon(1e-7));
}

TEST_CASE("AdamS takes its second moment from the first of the step before, AdamW from its own") {
  const Adam adam{.beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1};
  for (const Method method : {Method::adams, Method::adamw}) {
    Communicator communicator(1);
    Dense<double> dense(method, adam, {1}, communicator);
    double theta = 1;
    double m = 0;
    double v = 0;
    Random random(7);
    for (int t = 1; t <= 50; ++t) {
      const double g = random.uniform(-1, 1);
      v = 0.95 * (method == Method::adams ? m * m : v) + (1 - 0.95) * g * g;
      m = 0.9 * m + (1 - 0.9) * g;
      const double m_hat = m / (1 - std::pow(0.9, t));
      const double v_hat = v / (1 - std::pow(0.95, t));
      theta = (1 - 0.01 * 0.1) * theta - 0.01 * m_hat / (std::sqrt(v_hat) + 1e-8);
      dense.step({{g}}, 0.01);
      CHECK(dense.parameters()[0] == Approx(theta).epsilon(1e-13));
    }
  }
}

TEST_CASE("clipping scales the gradient down to the limit and leaves smaller ones alone") {
  Communicator communicator(1);
  Dense<double> dense(Method::adams, Adam{.clip = 1}, {0, 0}, communicator);
  StepReport report = dense.step({{3, 4}}, 0.1);
  CHECK(report.norm == Approx(5).epsilon(1e-15));
  CHECK(report.clip_factor == Approx(0.2).epsilon(1e-15));
  CHECK(dense.moment()[1] == Approx(0.1 * 0.8).epsilon(1e-14));
  report = dense.step({{0.3, 0.4}}, 0.1);
  CHECK(report.clip_factor == 1);
}
