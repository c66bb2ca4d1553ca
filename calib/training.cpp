// SPDX-License-Identifier: Apache-2.0
#include "calib/training.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

#include "sim/base/error.hpp"
#include "sim/plan/plan.hpp"
#include "sim/workload/workload.hpp"
#include "topologies/placement.hpp"

namespace scapesim::calib {

using cost::Factor;
using cost::Number;
using cost::Profile;
using Eigen::VectorXd;

namespace {

/// [M80] Half-width of a 90 % range in standard errors at `freedom` degrees of freedom: Student's
/// t, by Peiser's expansion about the normal quantile (error under 1 % from 4 degrees up).
double range90(int freedom) {
  constexpr double z = 1.6448536269514722;
  const double f = std::max(freedom, 1);
  return z + (z * z * z + z) / (4 * f) +
         (5 * std::pow(z, 5) + 16 * z * z * z + 3 * z) / (96 * f * f);
}

/// What is computed once per run and reused for every candidate profile.
struct Prepared {
  const TrainingRun& run;
  workload::Workload workload;
  topology::Fabric fabric;
};

Prepared prepared(const TrainingRun& run) {
  const spec::Cluster& cluster = run.scenario.cluster;
  const int nodes = topology::nodes_to_build(cluster);
  return {run, workload::workload_of(run.scenario.model, run.scenario.training),
          topology::build_fabric(cluster, nodes)};
}

graph::StepGraph graph_of(const Prepared& prepared, const Profile& profile) {
  return plan::step_graph(prepared.run.scenario, prepared.workload, profile, prepared.fabric);
}

Seconds local_work(const Prepared& prepared, const Profile& profile) {
  const graph::StepGraph graph = graph_of(prepared, profile);
  Seconds sum;
  for (const graph::Operation& operation : graph.classes[0].operations)
    if (operation.work == graph::Work::local) sum += operation.duration;
  return sum;
}

/// Ring volume and steps of a run's bulk collectives, and the smallest of them.
struct RunRing {
  RingRow row;
  Bytes smallest{std::numeric_limits<double>::infinity()};
};

RunRing ring_of(const Prepared& prepared, const Profile& profile) {
  RunRing ring;
  ring.row.time = prepared.run.communication;
  const graph::StepGraph graph = graph_of(prepared, profile);
  for (const graph::Collective& collective : graph.collectives) {
    const bool bulk = !collective.phases.empty() && !collective.phases[0].loads.empty();
    if (!bulk) continue;
    const int passes = collective.kind == graph::CollectiveKind::all_reduce ? 2 : 1;
    ring.row.steps += passes * (collective.group_size - 1);
    for (const graph::Phase& phase : collective.phases) ring.row.volume += phase.bytes;
    ring.smallest = std::min(ring.smallest, collective.bytes);
  }
  return ring;
}

cost::Origin with_residuals(const std::string& what, const cost::Origin& source, const Fit& fit) {
  return {source.kind, fmt::format("{} {}: {} rows, rms {:.2f} %, worst {:.2f} %", what,
                                   source.source, fit.rows, 100 * fit.rms, 100 * fit.worst)};
}

/// A fitted number with the 90 % range of its standard error. A number that the rows hardly tell
/// from 0 keeps a low end above it.
Number fitted(double value, double error, int freedom, Factor factor, const cost::Origin& origin) {
  constexpr double kLeast = 0.05;  // of the value
  const double half_width = range90(freedom) * error;
  const double low = std::max(value - half_width, kLeast * value);
  return {value, low, value + half_width, factor, origin};
}

/// fit_ring(), with alpha held at 0 when the rows would make it negative.
Fit fit_ring_without_negatives(const std::vector<RingRow>& rows) {
  const Fit fit = fit_ring(rows);
  if (fit.value[1] >= 0) return fit;
  const auto count = static_cast<Eigen::Index>(rows.size());
  Eigen::MatrixXd volume(count, 1);
  VectorXd time(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    volume(i, 0) = rows[static_cast<std::size_t>(i)].volume.si();
    time[i] = rows[static_cast<std::size_t>(i)].time.si();
  }
  Fit bandwidth_only = fit_linear(volume, time);
  bandwidth_only.value = VectorXd{{bandwidth_only.value[0], 0.0}};
  bandwidth_only.standard_error = VectorXd{{bandwidth_only.standard_error[0], 0.0}};
  return bandwidth_only;
}

/// Refuses fitted numbers that no machine has: then the logs are not runs of the scenario.
void need_plausible(const Fit& fit, std::initializer_list<std::string_view> keys,
                    const cost::Origin& source) {
  Problems problems;
  Eigen::Index i = 0;
  for (const std::string_view name : keys) {
    const auto rows = cost::number_keys();
    const auto key = std::ranges::find(rows, name, &cost::ProfileKey::name);
    const double value = fit.value[i], error = fit.standard_error[i];
    ++i;
    if (std::isfinite(error) && value >= key->lowest && value <= key->highest) continue;
    problems.add(
        {}, "INPUT",
        fmt::format("the logs give {} = {:.3g}, plausible is {:g} to {:g}", name, value,
                    key->lowest, key->highest),
        "are model, batch, sequence and GPUs of the scenario those of the logs? " + source.source);
  }
  problems.raise();
}

}  // namespace

Seconds computation(const TrainingRun& run, const Profile& profile) {
  return local_work(prepared(run), profile);
}

// [M82]
Seconds communication(const TrainingRun& run, const Profile& profile) {
  const RingRow row = ring_of(prepared(run), profile).row;
  const BytesPerSecond bandwidth(profile.number("network.transport_cap_Bps"));
  return row.volume / bandwidth +
         static_cast<double>(row.steps) * Seconds(profile.number("network.hop_latency_s"));
}

void fit_transport(Profile& profile, const std::vector<TrainingRun>& runs,
                   const cost::Origin& source, std::string& report) {
  profile.numbers["network.efficiency"] = {
      1, 1, 1, Factor::network, {source.kind, "the transport cap decides"}};
  for (const char* key :
       {"network.small_below_B", "network.small_efficiency", "network.small_hop_latency_s"})
    profile.numbers.erase(key);
  std::vector<RingRow> rows;
  Bytes smallest(std::numeric_limits<double>::infinity());
  for (const TrainingRun& run : runs) {
    const RunRing ring = ring_of(prepared(run), profile);
    rows.push_back(ring.row);
    smallest = std::min(smallest, ring.smallest);
  }
  const Fit fit = fit_ring_without_negatives(rows);
  if (!(fit.value[0] > 0)) {
    Problems problems;
    problems.add({}, "INPUT", "communication time does not grow with the bytes communicated",
                 "the timers may not cover the gradient collectives: " + source.source);
    problems.raise();
  }
  const double bandwidth = 1 / fit.value[0];
  const int freedom = fit.rows - 2;
  const cost::Origin origin = with_residuals("fit of t = volume/B + steps alpha to", source, fit);
  profile.numbers["network.transport_cap_Bps"] =
      fitted(bandwidth, bandwidth * fit.standard_error[0] / fit.value[0], freedom, Factor::network,
             origin);
  profile.numbers["network.hop_latency_s"] =
      fitted(fit.value[1], fit.standard_error[1], freedom, Factor::latency, origin);
  profile.numbers["network.smallest_fitted_B"] = {smallest.si(), smallest.si(), smallest.si(),
                                                  Factor::latency, origin};
  report += fmt::format(
      "transport: {} rows, rms {:.2f} %, worst {:.2f} %: B {:.3f} GB/s, alpha "
      "{:.3f} ms per hop\n",
      fit.rows, 100 * fit.rms, 100 * fit.worst, bandwidth / 1e9, 1e3 * fit.value[1]);
}

void fit_computation(Profile& profile, const std::vector<TrainingRun>& runs,
                     const cost::Origin& source, std::string& report) {
  std::vector<Prepared> list;
  for (const TrainingRun& run : runs) list.push_back(prepared(run));
  const auto count = static_cast<Eigen::Index>(runs.size());
  VectorXd measured(count);
  for (Eigen::Index i = 0; i < count; ++i)
    measured[i] = runs[static_cast<std::size_t>(i)].computation.si();
  const Model model = [&](const VectorXd& at) {
    Profile candidate = profile;
    candidate.numbers["gemm.scale"].value = at[0];
    candidate.numbers["host.step_s"].value = at[1];
    VectorXd predicted(count);
    for (Eigen::Index i = 0; i < count; ++i)
      predicted[i] = local_work(list[static_cast<std::size_t>(i)], candidate).si();
    return predicted;
  };
  const Fit fit = fit_positive(model, measured, VectorXd{{0.9, 0.02}});
  need_plausible(fit, {"gemm.scale", "host.step_s"}, source);
  const int freedom = fit.rows - 2;
  const cost::Origin origin =
      with_residuals("fit of one GEMM scale and one host term per step to", source, fit);
  profile.numbers["gemm.scale"] =
      fitted(fit.value[0], fit.standard_error[0], freedom, Factor::gemm, origin);
  profile.numbers["host.step_s"] =
      fitted(fit.value[1], fit.standard_error[1], freedom, Factor::host, origin);
  const double spread = std::exp(range90(freedom) * fit.rms);
  profile.numbers["model.discrepancy"] = {
      1, 1 / spread, spread, Factor::model, {source.kind, "rms residual of " + origin.source}};
  report += fmt::format(
      "computation: {} rows, rms {:.2f} %, worst {:.2f} %: scale {:.4f}, host "
      "{:.1f} ms per step\n",
      fit.rows, 100 * fit.rms, 100 * fit.worst, fit.value[0], 1e3 * fit.value[1]);
}

}  // namespace scapesim::calib
