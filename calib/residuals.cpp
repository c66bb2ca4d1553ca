// SPDX-License-Identifier: Apache-2.0
#include "calib/residuals.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>
#include <utility>

#include "sim/predict/predict.hpp"
#include "sim/result/metrics.hpp"

namespace scapesim::calib {
namespace {

std::string name_of_call(const TimedCall& call) {
  return fmt::format("{}, {} ranks on {} node{}{}", name_of(call.kind), call.layout.ranks,
                     call.layout.nodes, call.layout.nodes == 1 ? "" : "s",
                     call.algorithm ? fmt::format(", {}", name_of(*call.algorithm)) : "");
}

void sort_rows(std::vector<ResidualSet>& sets) {
  for (ResidualSet& set : sets) std::ranges::stable_sort(set.rows, {}, &Residual::x);
  std::erase_if(sets, [](const ResidualSet& set) { return set.rows.empty(); });
}

ResidualSet& set_named(std::vector<ResidualSet>& sets, const std::string& name,
                       const char* family) {
  const auto found = std::ranges::find(sets, name, &ResidualSet::name);
  if (found != sets.end()) return *found;
  sets.push_back({.name = name, .family = family, .x = "size_B", .rows = {}});
  return sets.back();
}

/// The machine of a call: the cluster, or for other parts of nodes plain ones with its line rates.
spec::Cluster cluster_of(const TimedCall& call, spec::Cluster cluster) {
  const int per_node = call.layout.ranks / call.layout.nodes;
  if (per_node != cluster.gpus_per_node) {
    spec::Cluster plain;
    plain.gpus_per_node = per_node;
    plain.nics_per_node = call.layout.nics_per_node;
    plain.nic_bandwidth = cluster.nic_bandwidth;
    plain.node_link_bandwidth = cluster.node_link_bandwidth;
    plain.fabric.kind = spec::FabricKind::switch_;
    cluster = std::move(plain);
  }
  cluster.gpus = call.layout.ranks;
  cluster.nodes = std::max(cluster.nodes, call.layout.nodes);
  return cluster;
}

/// The call as the simulator times it; an algorithm that the profile does not know is left to its
/// choice.
CollectiveTime simulated(const cost::Profile& profile, const TimedCall& call,
                         const spec::Cluster& cluster) {
  const std::vector<cost::Mode> modes = cost::modes_of(&profile, call.kind, call.size, call.layout);
  CollectiveOptions options;
  if (call.algorithm && std::ranges::any_of(modes, [&](const cost::Mode& mode) {
        return mode.algorithm == call.algorithm;
      }))
    options.algorithm = call.algorithm;
  return predict_collective(call.kind, call.size, cluster_of(call, cluster), &profile, options);
}

}  // namespace

std::vector<ResidualSet> residuals_of(const cost::Profile& profile, std::vector<TimedCall> calls,
                                      const spec::Cluster& cluster) {
  std::ranges::stable_sort(calls, {}, [](const TimedCall& call) {
    return std::tuple(call.kind, call.layout.nodes, call.layout.ranks);
  });
  std::vector<ResidualSet> sets;
  for (const TimedCall& call : calls) {
    const CollectiveTime fitted = simulated(profile, call, cluster);
    const double factor = result::busbw_factor(call.kind, call.layout.ranks);
    set_named(sets, name_of_call(call), "collective")
        .rows.push_back({.x = call.size.si(),
                         .measured = call.time,
                         .fitted = fitted.time,
                         .measured_busbw = factor * (call.size / call.time),
                         .fitted_busbw = fitted.busbw});
  }
  sort_rows(sets);
  return sets;
}

std::vector<ResidualSet> residuals_of(const cost::Profile& profile,
                                      const std::vector<TrainingRun>& runs) {
  std::vector<ResidualSet> sets = {
      {.name = "computation", .family = "computation", .x = "gpus", .rows = {}},
      {.name = "communication", .family = "communication", .x = "gpus", .rows = {}}};
  for (const TrainingRun& run : runs) {
    const double gpus = run.scenario.cluster.gpus;
    const auto add = [&](ResidualSet& set, Seconds measured, Seconds fitted) {
      set.rows.push_back({.x = gpus,
                          .measured = measured,
                          .fitted = fitted,
                          .measured_busbw = {},
                          .fitted_busbw = {}});
    };
    add(sets[0], run.computation, computation(run, profile));
    add(sets[1], run.communication, communication(run, profile));
  }
  sort_rows(sets);
  return sets;
}

std::vector<ResidualSet> residuals_of(const cost::Profile& profile,
                                      const std::vector<GemmRow>& gemms,
                                      const std::vector<AttentionTiming>& attention,
                                      const spec::Gpu& gpu) {
  std::vector<ResidualSet> sets = {
      {.name = "matrix products", .family = "gemm", .x = "flops", .rows = {}},
      {.name = "attention", .family = "attention", .x = "flops", .rows = {}}};
  const auto add = [](ResidualSet& set, Flops flops, FlopsPerSecond rate, Seconds fitted) {
    set.rows.push_back({.x = flops.si(),
                        .measured = flops / rate,
                        .fitted = fitted,
                        .measured_busbw = {},
                        .fitted_busbw = {}});
  };
  for (const GemmRow& row : gemms)
    add(sets[0], cost::flops_of(row.shape), row.rate, time_of(row, profile, gpu));
  const cost::KernelCosts costs(profile, gpu, spec::Precision::bf16);
  for (const AttentionTiming& row : attention)
    add(sets[1], flops_of(row), row.rate, time_of(row, costs));
  sort_rows(sets);
  return sets;
}

}  // namespace scapesim::calib
