// SPDX-License-Identifier: Apache-2.0
#include "calib/collectives.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>

#include "sim/base/check.hpp"
#include "sim/base/unit_text.hpp"
#include "sim/plan/ring.hpp"

namespace scapesim::calib {

using cost::Factor;
using cost::Provenance;
using Eigen::VectorXd;

namespace {

constexpr std::size_t kFewest = 4;

Eigen::MatrixXd design_of(std::span<const CollectiveRow> rows) {
  Eigen::MatrixXd design(static_cast<Eigen::Index>(rows.size()), 2);
  for (std::size_t i = 0; i < rows.size(); ++i)
    design.row(static_cast<Eigen::Index>(i)) << rows[i].wire.si(),
        static_cast<double>(rows[i].steps);
  return design;
}

VectorXd times_of(std::span<const CollectiveRow> rows) {
  VectorXd times(static_cast<Eigen::Index>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i)
    times[static_cast<Eigen::Index>(i)] = rows[i].time.si();
  return times;
}

VectorXd relative_residuals(std::span<const CollectiveRow> rows, const VectorXd& value) {
  return ((design_of(rows) * value).array() / times_of(rows).array() - 1).matrix();
}

/// Line with both terms at least 0: a term that the rows would make negative is dropped.
Fit fit_line(std::span<const CollectiveRow> rows) {
  const Eigen::MatrixXd design = design_of(rows);
  const VectorXd times = times_of(rows);
  Fit fit = fit_linear(design, times);
  for (const Eigen::Index kept : {0, 1}) {
    if (fit.value[1 - kept] >= 0) continue;
    Fit one = fit_linear(design.col(kept), times);
    VectorXd value = VectorXd::Zero(2);
    VectorXd error = VectorXd::Zero(2);
    value[kept] = one.value[0];
    error[kept] = one.standard_error[0];
    fit = one;
    fit.value = value;
    fit.standard_error = error;
  }
  return fit;
}

double squared(const Fit& fit) { return fit.rows * fit.rms * fit.rms; }

/// Best single line or best two lines.
CollectiveFit fit_without_outliers(const std::vector<CollectiveRow>& rows) {
  CollectiveFit best{.bulk = fit_line(rows), .small = {}, .break_size = Bytes(0), .outliers = {}};
  const auto n = static_cast<double>(rows.size());
  const double floor = 1e-12;  // exact data: avoid log(0)
  const auto criterion = [&](double squares, int parameters) {
    return n * std::log(squares / n + floor) + parameters * std::log(n);
  };
  double least = criterion(squared(best.bulk), 2);
  for (std::size_t cut = kFewest; cut + kFewest <= rows.size(); ++cut) {
    if (rows[cut].size == rows[cut - 1].size) continue;
    const std::span<const CollectiveRow> all(rows);
    const Fit small = fit_line(all.first(cut));
    const Fit bulk = fit_line(all.subspan(cut));
    const double value = criterion(squared(small) + squared(bulk), 5);
    if (value >= least) continue;
    least = value;
    best = {.bulk = bulk, .small = small, .break_size = rows[cut].size, .outliers = {}};
  }
  return best;
}

VectorXd residuals_of(const CollectiveFit& fit, const std::vector<CollectiveRow>& rows) {
  const auto first_bulk = std::find_if(rows.begin(), rows.end(), [&](const CollectiveRow& row) {
    return row.size >= fit.break_size;
  });
  const auto cut = static_cast<std::size_t>(first_bulk - rows.begin());
  const std::span<const CollectiveRow> all(rows);
  VectorXd residual(static_cast<Eigen::Index>(rows.size()));
  if (cut > 0)
    residual.head(static_cast<Eigen::Index>(cut)) =
        relative_residuals(all.first(cut), fit.small.value);
  residual.tail(static_cast<Eigen::Index>(rows.size() - cut)) =
      relative_residuals(all.subspan(cut), fit.bulk.value);
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

CollectiveFit fit_regimes(std::vector<CollectiveRow> rows) {
  SCAPESIM_CHECK(rows.size() >= kFewest, "{} rows", rows.size());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const CollectiveRow& a, const CollectiveRow& b) { return a.size < b.size; });
  const std::size_t most_outliers = rows.size() / 5;
  std::vector<Bytes> outliers;
  while (true) {
    CollectiveFit fit = fit_without_outliers(rows);
    const VectorXd residual = residuals_of(fit, rows);
    constexpr double kGaussian = 1.4826;  // standard deviation over median magnitude
    const double limit = 4 * kGaussian * std::max(median_of_magnitudes(residual), 1e-3);
    Eigen::Index worst = 0;
    const double largest = residual.cwiseAbs().maxCoeff(&worst);
    if (largest <= limit || outliers.size() >= most_outliers || rows.size() <= kFewest) {
      fit.outliers = std::move(outliers);
      return fit;
    }
    outliers.push_back(rows[static_cast<std::size_t>(worst)].size);
    rows.erase(rows.begin() + worst);
  }
}

namespace {

bool has_ring(graph::CollectiveKind kind) {
  using enum graph::CollectiveKind;
  return kind == all_reduce || kind == reduce_scatter || kind == all_gather;
}

/// The sample on the ring model: one call alone on the cluster's first nodes.
CollectiveRow row_of(const CollectiveSample& sample, spec::Cluster cluster, int ranks_per_node) {
  cluster.nodes = std::max(cluster.nodes, sample.ranks / ranks_per_node);
  const int nodes = (sample.ranks + ranks_per_node - 1) / ranks_per_node;
  const topology::Fabric fabric = topology::build_fabric(cluster, nodes);
  plan::Group group;
  for (int i = 0; i < sample.ranks; ++i) {
    const int gpu = i / ranks_per_node * cluster.gpus_per_node + i % ranks_per_node;
    group.push_back(topology::GpuId{static_cast<std::uint32_t>(gpu)});
  }
  const plan::NetworkPlan network = plan::plan_collectives(fabric, {group},
                                                           {{.name = "sample",
                                                             .kind = sample.kind,
                                                             .size = sample.size,
                                                             .group = 0,
                                                             .members = {},
                                                             .terms = {}}});
  const graph::Phase& phase = network.collectives[0].phases[0];
  BytesPerSecond share(std::numeric_limits<double>::infinity());
  for (const graph::Load& load : phase.loads)
    share = std::min(share, network.resources[index(load.resource)].capacity / load.flows);
  return {.size = sample.size,
          .wire = phase.bytes / share,
          .steps = plan::ring_work(sample.kind, sample.size, sample.ranks).steps,
          .time = sample.time};
}

cost::Number imported(double value, double error, double highest, Factor factor,
                      const std::string& source) {
  const double half_width = 1.645 * error;
  const double kept = std::min(value, highest);
  return {kept,
          std::clamp(value - half_width, 0.05 * kept, kept),
          std::clamp(value + half_width, kept, highest),
          factor,
          {Provenance::imported, source}};
}

/// Writes one regime under `prefix` ("network.", "network.small_", "network.node_").
void set_regime(cost::Profile& profile, const std::string& prefix, const Fit& fit,
                const std::string& source, std::vector<std::string>& gaps) {
  const double inverse = fit.value[0];
  if (inverse > 0) {
    const double efficiency = 1 / inverse;
    if (efficiency > 1)
      gaps.push_back(
          fmt::format("{}efficiency: measured {:.2f} of the line rate, which no ring "
                      "reaches (NVLS, SHARP or trees): held at 1",
                      prefix, efficiency));
    profile.numbers[prefix + "efficiency"] = imported(
        efficiency, efficiency * fit.standard_error[0] / inverse, 1, Factor::network, source);
  }
  profile.numbers[prefix + "hop_latency_s"] =
      imported(fit.value[1], fit.standard_error[1], 1, Factor::latency, source);
}

std::string sizes_text(const std::vector<Bytes>& sizes) {
  std::string text;
  for (const Bytes size : sizes) text += (text.empty() ? "" : ", ") + text_of(size);
  return text;
}

void set_fits(cost::Profile& profile, const std::string& prefix, const CollectiveFit& fit,
              const std::string& source, std::string& report, std::vector<std::string>& gaps) {
  const auto origin = [&](const Fit& part) {
    return fmt::format("{}: {} rows, rms {:.1f} %, worst {:.1f} %", source, part.rows,
                       100 * part.rms, 100 * part.worst);
  };
  set_regime(profile, prefix, fit.bulk, origin(fit.bulk), gaps);
  report += fmt::format(
      "{}: bulk {} rows, rms {:.1f} %, worst {:.1f} %: efficiency {:.3f}, alpha "
      "{:.2f} us per hop\n",
      prefix, fit.bulk.rows, 100 * fit.bulk.rms, 100 * fit.bulk.worst, 1 / fit.bulk.value[0],
      1e6 * fit.bulk.value[1]);
  if (fit.small.rows > 0 && prefix == "network.") {
    set_regime(profile, "network.small_", fit.small, origin(fit.small), gaps);
    profile.numbers["network.small_below_B"] = {fit.break_size.si(),
                                                fit.break_size.si(),
                                                fit.break_size.si(),
                                                Factor::latency,
                                                {Provenance::imported, origin(fit.small)}};
    report += fmt::format("{}: below {} {} rows, rms {:.1f} %, worst {:.1f} %\n", prefix,
                          text_of(fit.break_size), fit.small.rows, 100 * fit.small.rms,
                          100 * fit.small.worst);
  }
  if (!fit.outliers.empty())
    report += fmt::format("{}: left out as outliers: {}\n", prefix, sizes_text(fit.outliers));
}

}  // namespace

void fit_collectives(cost::Profile& profile, const std::vector<CollectiveSample>& samples,
                     const spec::Cluster& cluster, const std::string& source, std::string& report,
                     std::vector<std::string>& gaps) {
  std::vector<CollectiveRow> inside;
  std::vector<CollectiveRow> across;
  int unusable = 0;
  for (const CollectiveSample& sample : samples) {
    const int per_node =
        sample.ranks_per_node.value_or(std::min(sample.ranks, cluster.gpus_per_node));
    const bool usable = has_ring(sample.kind) && !sample.in_training && per_node >= 1 &&
                        per_node <= cluster.gpus_per_node && sample.ranks % per_node == 0 &&
                        sample.time > Seconds(0);
    if (!usable)
      ++unusable;
    else
      (sample.ranks == per_node ? inside : across).push_back(row_of(sample, cluster, per_node));
  }
  if (unusable > 0)
    gaps.push_back(
        fmt::format("{} collective samples not used: no ring model for their kind, timed "
                    "inside a training step, or a layout the cluster does not have",
                    unusable));
  if (across.size() >= kFewest) {
    for (const char* key : {"network.transport_cap_Bps", "network.small_below_B",
                            "network.small_efficiency", "network.small_hop_latency_s"})
      profile.numbers.erase(key);
    const CollectiveFit fit = fit_regimes(across);
    set_fits(profile, "network.", fit, source, report, gaps);
  } else {
    gaps.push_back(
        "network.*: fewer than 4 samples between nodes; the base profile's numbers stay");
  }
  if (inside.size() >= kFewest)
    set_fits(profile, "network.node_", fit_regimes(inside), source, report, gaps);
}

}  // namespace scapesim::calib
