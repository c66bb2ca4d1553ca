// SPDX-License-Identifier: Apache-2.0
// What is done to one element: AdamW (arXiv 1711.05101), AdamS (arXiv 2505.16363) and SCAPE's
// local moment (arXiv 2607.01678). In the scalar's own precision; constants are made in double.
// Kernels call the same functions.
#pragma once

#include <cmath>
#include <optional>

#include "kernels/reference/bf16.hpp"

namespace scapesim::reference {

/// on: moments are divided by 1 - b^t. The AdamS paper has none, the SCAPE code has.
enum class BiasCorrection { on, off };

struct Adam {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;  ///< above 0: an element with no moment stays where it is
  double weight_decay = 0.1;
  BiasCorrection bias_correction = BiasCorrection::on;
  std::optional<double> clip = {};  ///< largest gradient norm
};

/// Constants of one step.
template <class T>
struct Coefficients {
  T beta1, new1;  ///< b1, 1 - b1
  T beta2, new2;  ///< b2, 1 - b2
  T correction1;  ///< 1 - b1^t, or 1
  T correction2;  ///< 1 - b2^t, or 1
  T learning_rate;
  T kept;  ///< 1 - learning rate x weight decay
  T epsilon;
};

/// step counts from 1.
template <class T>
Coefficients<T> coefficients(const Adam& adam, int step, double learning_rate) {
  const bool corrected = adam.bias_correction == BiasCorrection::on;
  return {.beta1 = T(adam.beta1),
          .new1 = T(1 - adam.beta1),
          .beta2 = T(adam.beta2),
          .new2 = T(1 - adam.beta2),
          .correction1 = T(corrected ? 1 - std::pow(adam.beta1, step) : 1),
          .correction2 = T(corrected ? 1 - std::pow(adam.beta2, step) : 1),
          .learning_rate = T(learning_rate),
          .kept = T(1 - learning_rate * adam.weight_decay),
          .epsilon = T(adam.epsilon)};
}

/// m <- b1 m + (1-b1) g
template <class T>
SCAPESIM_SHARED T moment(const Coefficients<T>& c, T before, T gradient) {
  return c.beta1 * before + c.new1 * gradient;
}

/// The gradient behind a new moment, whatever was added to it: (m - b1 m_before) / (1-b1).
template <class T>
SCAPESIM_SHARED T gradient_behind(const Coefficients<T>& c, T before, T after) {
  return (after - c.beta1 * before) / c.new1;
}

/// AdamS never stores it: v = b2 m_before^2 + (1-b2) g^2.
template <class T>
SCAPESIM_SHARED T adams_second(const Coefficients<T>& c, T moment_before, T gradient) {
  return c.beta2 * moment_before * moment_before + c.new2 * gradient * gradient;
}

/// AdamW keeps it: v <- b2 v + (1-b2) g^2.
template <class T>
SCAPESIM_SHARED T adamw_second(const Coefficients<T>& c, T before, T gradient) {
  return c.beta2 * before + c.new2 * gradient * gradient;
}

/// theta <- (1 - lr wd) theta - lr (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps)
template <class T>
SCAPESIM_SHARED T weight(const Coefficients<T>& c, T before, T first, T second) {
  const T direction = (first / c.correction1) / (std::sqrt(second / c.correction2) + c.epsilon);
  return c.kept * before - c.learning_rate * direction;
}

/// Factor that brings a gradient of this norm down to the limit; 1 when it is not above, or NaN.
SCAPESIM_SHARED inline double clip_factor(double limit, double norm) {
  return norm > limit ? limit / norm : 1.0;
}
inline double clip_factor(const Adam& adam, double norm) {
  return adam.clip ? clip_factor(*adam.clip, norm) : 1.0;
}

}  // namespace scapesim::reference
