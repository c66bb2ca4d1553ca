// SPDX-License-Identifier: Apache-2.0
#include "calib/fit.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

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

namespace {

enum class Loss { squares, magnitudes };

double loss_of(const VectorXd& residual, Loss loss) {
  return loss == Loss::squares ? residual.squaredNorm() : residual.cwiseAbs().sum();
}

/// Weights that turn the squares of the residuals into the loss at hand.
VectorXd weights_of(const VectorXd& residual, Loss loss) {
  constexpr double kLeastResidual = 1e-3;  // keeps weights finite where a row is met exactly
  if (loss == Loss::squares) return VectorXd::Ones(residual.size());
  return residual.cwiseAbs().cwiseMax(kLeastResidual).cwiseInverse();
}

struct Descent {
  VectorXd logs;      ///< of the parameters
  VectorXd residual;  ///< log of prediction over measurement
  MatrixXd jacobian;  ///< of the residual in the logs
};

/// Damped Gauss-Newton from `logs`.
Descent descend(const Model& model, const VectorXd& measured, VectorXd logs, Loss loss) {
  const auto residual_at = [&](const VectorXd& at) -> VectorXd {
    return (model(at.array().exp().matrix()).array() / measured.array()).log();
  };
  VectorXd residual = residual_at(logs);
  MatrixXd jacobian(measured.size(), logs.size());
  double damping = 1e-3;
  const int rounds = loss == Loss::squares ? 200 : 60;
  for (int round = 0; round < rounds; ++round) {
    for (Eigen::Index i = 0; i < logs.size(); ++i) {
      constexpr double kStep = 1e-4;
      VectorXd moved = logs;
      moved[i] += kStep;
      jacobian.col(i) = (residual_at(moved) - residual) / kStep;
    }
    const MatrixXd weighted = weights_of(residual, loss).asDiagonal() * jacobian;
    MatrixXd normal = weighted.transpose() * jacobian;
    normal.diagonal() *= 1 + damping;
    normal.diagonal().array() += 1e-12;
    // Far from the rows a direction can look flat: no parameter moves by more than a factor of e.
    const VectorXd step =
        (-normal.ldlt().solve(weighted.transpose() * residual)).cwiseMax(-1.0).cwiseMin(1.0);
    const VectorXd next = residual_at(logs + step);
    const double before = loss_of(residual, loss);
    const double after = loss_of(next, loss);
    if (!(after < before)) {  // worse, or not a number
      damping *= 4;
      if (damping > 1e8) break;
      continue;
    }
    logs += step;
    damping /= 4;
    residual = next;
    if (before - after < (loss == Loss::squares ? 1e-14 : 1e-7) * after) break;
  }
  return {std::move(logs), std::move(residual), std::move(jacobian)};
}

/// Standard errors of a fit of least magnitudes (Koenker and Bassett 1978): those of squares with
/// the residuals' deviation replaced by 1 / (2 density at 0), the density taken as half of the
/// residuals within their median magnitude. As many rows as parameters are met exactly and say
/// nothing: the median is that of the others.
VectorXd magnitude_errors(const Descent& descent) {
  std::vector<double> sizes(descent.residual.begin(), descent.residual.end());
  for (double& size : sizes) size = std::abs(size);
  std::sort(sizes.begin(), sizes.end());
  const auto met = static_cast<std::size_t>(descent.logs.size());
  const double middle = sizes[met + (sizes.size() - met) / 2];
  const MatrixXd& jacobian = descent.jacobian;
  // A direction that the rows do not tell at all (a bound is active) gets no error of its own.
  MatrixXd normal = jacobian.transpose() * jacobian;
  normal.diagonal().array() += 1e-12;
  return 2 * middle * normal.inverse().diagonal().cwiseMax(0).cwiseSqrt();
}

}  // namespace

Fit fit_positive(const Model& model, const VectorXd& measured, VectorXd start) {
  SCAPESIM_CHECK(measured.size() > start.size(), "{} rows", measured.size());
  const Descent descent = descend(model, measured, start.array().log(), Loss::squares);
  Fit fit;
  fit.value = descent.logs.array().exp();
  fit.standard_error = fit.value.cwiseProduct(standard_errors(descent.jacobian, descent.residual));
  add_residuals(fit, (descent.residual.array().exp() - 1).matrix());
  return fit;
}

// [M171] Tiles and waves make the sum of magnitudes uneven: from where the descent stops, steps in
// one parameter at a time that hardly raise it are tried as places to descend from again.
Fit fit_positive_robust(const Model& model, const VectorXd& measured, VectorXd start) {
  SCAPESIM_CHECK(measured.size() > start.size(), "{} rows", measured.size());
  constexpr double kHardly = 1.03;
  const auto loss_at = [&](const VectorXd& logs) {
    return (model(logs.array().exp().matrix()).array() / measured.array()).log().abs().sum();
  };
  Descent descent = descend(model, measured, start.array().log(), Loss::magnitudes);
  for (Eigen::Index i = 0; i < start.size(); ++i) {
    for (const double step : {-0.1, -0.02, 0.02, 0.1}) {
      const double least = loss_of(descent.residual, Loss::magnitudes);
      VectorXd moved = descent.logs;
      moved[i] += step;
      if (loss_at(moved) > kHardly * least) continue;
      Descent other = descend(model, measured, moved, Loss::magnitudes);
      if (loss_of(other.residual, Loss::magnitudes) < least) descent = std::move(other);
    }
  }
  Fit fit;
  fit.value = descent.logs.array().exp();
  fit.standard_error = fit.value.cwiseProduct(magnitude_errors(descent));
  add_residuals(fit, (descent.residual.array().exp() - 1).matrix());
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
