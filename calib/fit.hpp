// SPDX-License-Identifier: Apache-2.0
// Fits: how numbers of a profile follow from measured rows. Eigen does the algebra.
#pragma once

#include <Eigen/Dense>
#include <functional>
#include <span>

#include "sim/base/units.hpp"

namespace scapesim::calib {

/// A fitted vector of parameters with what the rows say about it.
struct Fit {
  Eigen::VectorXd value;
  Eigen::VectorXd standard_error;
  int rows = 0;
  double rms = 0;    ///< relative residual, root mean square
  double worst = 0;  ///< relative residual, largest magnitude
};

/// [M80] Least squares of relative residuals: minimises sum ((design x - measured) / measured)^2.
/// Needs more rows than parameters and measured > 0.
Fit fit_linear(const Eigen::MatrixXd& design, const Eigen::VectorXd& measured);

/// Predicts all rows from parameters; in the order of `measured`.
using Model = std::function<Eigen::VectorXd(const Eigen::VectorXd&)>;

/// [M81] Damped Gauss-Newton on log residuals with parameters held positive (it steps in their
/// logarithms); derivatives by differences.
Fit fit_positive(const Model& model, const Eigen::VectorXd& measured, Eigen::VectorXd start);

/// [M171] The same with the least sum of absolute log residuals: half of the rows may lie anywhere.
/// Iteratively reweighted; standard errors from the residuals' density about 0.
Fit fit_positive_robust(const Model& model, const Eigen::VectorXd& measured, Eigen::VectorXd start);

/// One bulk collective as measured: bytes a rank sends, ring steps, time.
struct RingRow {
  Bytes volume;
  int steps = 0;
  Seconds time;
};

/// [M82] t = volume / B + steps alpha. value = (1/B, alpha) in SI.
Fit fit_ring(std::span<const RingRow> rows);

}  // namespace scapesim::calib
