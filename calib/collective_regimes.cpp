// SPDX-License-Identifier: Apache-2.0
#include "calib/collective_regimes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "sim/base/check.hpp"

namespace scapesim::calib {

using Eigen::VectorXd;

bool tell_latency(Rows rows) {
  const auto [least, most] =
      std::ranges::minmax(rows, {}, [](const CollectiveRow& row) { return row.size; });
  return most.size >= 4 * least.size;
}

bool steps_differ(Rows rows) {
  return std::ranges::any_of(rows, [&](const auto& row) { return row.steps != rows[0].steps; });
}

namespace {

constexpr std::size_t kFewestPerRegime = 3;
/// Below a page every protocol sends one packet: no regime begins there.
constexpr Bytes kSmallestBreak{4096};

Eigen::MatrixXd design_of(Rows rows) {
  Eigen::MatrixXd design(static_cast<Eigen::Index>(rows.size()), steps_differ(rows) ? 3 : 2);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    design(at, 0) = rows[i].wire.si();
    design(at, 1) = rows[i].steps;
    if (design.cols() == 3) design(at, 2) = 1;
  }
  return design;
}

VectorXd times_of(Rows rows) {
  VectorXd times(static_cast<Eigen::Index>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i)
    times[static_cast<Eigen::Index>(i)] = rows[i].time.si();
  return times;
}

}  // namespace

Fit fit_line(Rows rows) {
  const Eigen::MatrixXd design = design_of(rows);
  const VectorXd times = times_of(rows);
  std::vector<Eigen::Index> kept;
  for (Eigen::Index i = 0; i < design.cols(); ++i)
    if (design.col(i).any() && static_cast<Eigen::Index>(rows.size()) > i + 1) kept.push_back(i);
  const std::vector<Eigen::Index> all = kept;
  const VectorXd error_of_all = fit_linear(design(Eigen::all, all), times).standard_error;
  while (true) {
    Fit fit = fit_linear(design(Eigen::all, kept), times);
    Eigen::Index lowest = 0;
    if (fit.value.minCoeff(&lowest) >= 0) {
      Fit full = fit;
      full.value = full.standard_error = VectorXd::Zero(3);
      for (std::size_t i = 0; i < all.size(); ++i)
        full.standard_error[all[i]] = error_of_all[static_cast<Eigen::Index>(i)];
      for (std::size_t i = 0; i < kept.size(); ++i) {
        full.value[kept[i]] = fit.value[static_cast<Eigen::Index>(i)];
        full.standard_error[kept[i]] = fit.standard_error[static_cast<Eigen::Index>(i)];
      }
      return full;
    }
    kept.erase(kept.begin() + lowest);
  }
}

namespace {

double squared(const Fit& fit) { return fit.rows * fit.rms * fit.rms; }

/// Least squares of all splits into 1 .. most regimes (Bellman 1961), then the
/// information criterion.
class Splits {
 public:
  explicit Splits(const std::vector<CollectiveRow>& rows) : rows_(rows) {
    for (std::size_t end = kFewestPerRegime; end <= rows.size(); ++end)
      for (std::size_t begin = 0; begin + kFewestPerRegime <= end; ++begin)
        if (begin == 0 ||
            (rows[begin].size > rows[begin - 1].size && rows[begin].size >= kSmallestBreak))
          lines_[{begin, end}] = fit_line(Rows(rows).subspan(begin, end - begin));
  }

  std::vector<Regime> best(int most) const {
    const std::size_t count = rows_.size();
    // best_[k][end]: least squares of the first `end` rows in k regimes, and
    // where the last begins
    std::vector<std::map<std::size_t, std::pair<double, std::size_t>>> table(1);
    table[0][0] = {0, 0};
    double least = std::numeric_limits<double>::infinity();
    std::size_t regimes = 1;
    for (int k = 1; k <= most; ++k) {
      table.emplace_back();
      for (const auto& [range, fit] : lines_) {
        const auto before = table[table.size() - 2].find(range.first);
        if (before == table[table.size() - 2].end()) continue;
        const double sum = before->second.first + squared(fit);
        const auto [entry, is_new] = table.back().try_emplace(range.second, sum, range.first);
        if (!is_new && sum < entry->second.first) entry->second = {sum, range.first};
      }
      const auto whole = table.back().find(count);
      if (whole == table.back().end()) break;
      const double value = criterion(whole->second.first, 3 * k - 1);
      if (value >= least) continue;
      least = value;
      regimes = static_cast<std::size_t>(k);
    }
    std::vector<Regime> list;
    for (std::size_t k = regimes, end = count; k > 0; --k) {
      const std::size_t begin = table[k].at(end).second;
      list.insert(list.begin(), {.from = rows_[begin].size,
                                 .fit = lines_.at({begin, end}),
                                 .first = begin,
                                 .rows = end - begin});
      end = begin;
    }
    return list;
  }

 private:
  /// Akaike 1974.
  double criterion(double squares, int parameters) const {
    const auto n = static_cast<double>(rows_.size());
    const double floor = 1e-8;  // rms of 0.01 %: tables are rounded
    return n * std::log(squares / n + floor) + 2.0 * parameters;
  }

  const std::vector<CollectiveRow>& rows_;
  std::map<std::pair<std::size_t, std::size_t>, Fit> lines_;
};

VectorXd residuals_of(const CollectiveFit& fit) {
  VectorXd residual(static_cast<Eigen::Index>(fit.rows.size()));
  for (const Regime& regime : fit.regimes) {
    const Rows rows = Rows(fit.rows).subspan(regime.first, regime.rows);
    const Eigen::MatrixXd design = design_of(rows);
    residual.segment(static_cast<Eigen::Index>(regime.first),
                     static_cast<Eigen::Index>(regime.rows)) =
        ((design * regime.fit.value.head(design.cols())).array() / times_of(rows).array() - 1)
            .matrix();
  }
  return residual;
}

double median_of_magnitudes(const VectorXd& values) {
  std::vector<double> list(values.begin(), values.end());
  for (double& value : list) value = std::abs(value);
  std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2),
                   list.end());
  return list[list.size() / 2];
}

}  // namespace

CollectiveFit fit_regimes(std::vector<CollectiveRow> rows, int most) {
  SCAPESIM_CHECK(rows.size() >= kFewestRows, "{} rows", rows.size());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const CollectiveRow& a, const CollectiveRow& b) { return a.size < b.size; });
  const std::size_t most_outliers = rows.size() / 5;
  CollectiveFit fit{.regimes = {}, .rows = std::move(rows), .outliers = {}};
  while (true) {
    fit.regimes = Splits(fit.rows).best(most);
    const VectorXd residual = residuals_of(fit);
    constexpr double kGaussian = 1.4826;  // standard deviation over median magnitude
    const double limit = 4 * kGaussian * std::max(median_of_magnitudes(residual), 1e-3);
    Eigen::Index worst = 0;
    const double largest = residual.cwiseAbs().maxCoeff(&worst);
    if (largest <= limit || fit.outliers.size() >= most_outliers || fit.rows.size() <= kFewestRows)
      return fit;
    fit.outliers.push_back(fit.rows[static_cast<std::size_t>(worst)].size);
    fit.rows.erase(fit.rows.begin() + worst);
  }
}

}  // namespace scapesim::calib
