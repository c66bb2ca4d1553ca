// SPDX-License-Identifier: Apache-2.0
#include "calib/fit.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"

namespace scapesim::calib {

using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

void add_residuals(Fit& fit, const VectorXd& relative) {
  fit.rows = static_cast<int>(relative.size());
  fit.rms = std::sqrt(relative.squaredNorm() / static_cast<double>(relative.size()));
  fit.worst = relative.cwiseAbs().maxCoeff();
}

/// Standard errors from the normal matrix and the residual variance.
VectorXd standard_errors(const MatrixXd& design, const VectorXd& residual) {
  const double freedom = static_cast<double>(design.rows() - design.cols());
  const double variance = residual.squaredNorm() / freedom;
  const MatrixXd inverse = (design.transpose() * design).inverse();
  return (inverse.diagonal() * variance).cwiseSqrt();
}

}  // namespace

Fit fit_linear(const MatrixXd& design, const VectorXd& measured) {
  SCAPESIM_CHECK(design.rows() > design.cols(), "{} rows", design.rows());
  SCAPESIM_CHECK((measured.array() > 0).all(), "least {}", measured.minCoeff());
  const MatrixXd weighted = measured.cwiseInverse().asDiagonal() * design;
  const VectorXd ones = VectorXd::Ones(measured.size());
  Fit fit;
  fit.value = weighted.colPivHouseholderQr().solve(ones);
  const VectorXd residual = weighted * fit.value - ones;
  fit.standard_error = standard_errors(weighted, residual);
  add_residuals(fit, residual);
  return fit;
}

Fit fit_positive(const Model& model, const VectorXd& measured, VectorXd start) {
  SCAPESIM_CHECK(measured.size() > start.size(), "{} rows", measured.size());
  VectorXd logs = start.array().log();
  const auto residual_at = [&](const VectorXd& at) -> VectorXd {
    return (model(at.array().exp().matrix()).array() / measured.array()).log();
  };
  VectorXd residual = residual_at(logs);
  MatrixXd jacobian(measured.size(), logs.size());
  double damping = 1e-3;
  for (int round = 0; round < 200; ++round) {
    for (Eigen::Index i = 0; i < logs.size(); ++i) {
      constexpr double kStep = 1e-4;
      VectorXd moved = logs;
      moved[i] += kStep;
      jacobian.col(i) = (residual_at(moved) - residual) / kStep;
    }
    MatrixXd normal = jacobian.transpose() * jacobian;
    normal.diagonal() *= 1 + damping;
    normal.diagonal().array() += 1e-12;
    // Far from the rows a direction can look flat: no parameter moves by more than a factor of e.
    const VectorXd step =
        (-normal.ldlt().solve(jacobian.transpose() * residual)).cwiseMax(-1.0).cwiseMin(1.0);
    const VectorXd next = residual_at(logs + step);
    if (!(next.squaredNorm() < residual.squaredNorm())) {  // worse, or not a number
      damping *= 4;
      if (damping > 1e8) break;
      continue;
    }
    logs += step;
    damping /= 4;
    const double gain = residual.squaredNorm() - next.squaredNorm();
    residual = next;
    if (gain < 1e-14 * residual.squaredNorm()) break;
  }
  Fit fit;
  fit.value = logs.array().exp();
  fit.standard_error = fit.value.cwiseProduct(standard_errors(jacobian, residual));
  add_residuals(fit, (residual.array().exp() - 1).matrix());
  return fit;
}

// [M82]
Fit fit_ring(std::span<const RingRow> rows) {
  const auto count = static_cast<Eigen::Index>(rows.size());
  MatrixXd design(count, 2);
  VectorXd measured(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const RingRow& row = rows[static_cast<std::size_t>(i)];
    design.row(i) << row.volume.si(), static_cast<double>(row.steps);
    measured[i] = row.time.si();
  }
  return fit_linear(design, measured);
}

}  // namespace scapesim::calib
