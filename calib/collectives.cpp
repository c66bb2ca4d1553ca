// SPDX-License-Identifier: Apache-2.0
#include "calib/collectives.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <map>
#include <tuple>

namespace scapesim::calib {

using cost::Factor;
using cost::Provenance;
using cost::Scope;
using graph::Algorithm;
using graph::CollectiveKind;
using graph::Protocol;

namespace {

/// Calls by scope and algorithms; inside comes first, and small groups before
/// large ones, so that of two that tell the same mode the larger stays.
std::vector<Group> groups_of(const cost::Profile& profile, const std::vector<TimedCall>& calls) {
  std::optional<int> nvls_ranks;
  if (profile.has("network.nvls_ranks"))
    nvls_ranks = static_cast<int>(profile.number("network.nvls_ranks"));
  std::map<std::tuple<Scope, Algorithms>, Group> groups;
  for (const TimedCall& call : calls) {
    Algorithms algorithms = algorithms_of(call.kind, call.layout, nvls_ranks);
    if (call.algorithm) algorithms.bulk = *call.algorithm;
    if (!cost::traffic_of(algorithms.bulk, call.kind, call.layout)) continue;
    Group& group = groups.try_emplace({scope_of(call), algorithms}).first->second;
    group.scope = scope_of(call);
    group.algorithms = algorithms;
    group.calls.push_back(call);
  }
  std::vector<Group> list;
  for (auto& [key, group] : groups) list.push_back(std::move(group));
  std::ranges::stable_sort(list, [](const Group& a, const Group& b) {
    return std::tuple(a.scope, a.calls.size()) < std::tuple(b.scope, b.calls.size());
  });
  return list;
}

/// [M125] Calls too few for a fit move the efficiency of the bulk mode by one
/// factor, so that half of them are predicted too fast and half too slow;
/// latencies stay. An unknown mode begins at 1.
void scale_mode(cost::Profile& profile, const Group& group, const cost::Origin& origin) {
  const Algorithm bulk = group.algorithms.bulk;
  const auto key = [&](std::string_view what) {
    return cost::mode_key(group.scope, bulk, Protocol::simple, what);
  };
  for (const char* what : {"efficiency", "node_efficiency"})
    if (group.scope == Scope::between || std::string_view(what) == "efficiency")
      profile.curves.try_emplace(key(what), cost::Curve{.x = "piece_B",
                                                        .y = "share_of_line_rate",
                                                        .points = {{1, 1}},
                                                        .low_factor = 0.9,
                                                        .high_factor = 1.1,
                                                        .factor = Factor::network,
                                                        .origin = {}});
  std::vector<double> factors;
  for (TimedCall call : group.calls) {
    call.algorithm = bulk;
    const Seconds predicted = predicted_alone(profile, call);
    call.size = Bytes(0);
    const Seconds latency = std::min(predicted_alone(profile, call), 0.9 * call.time);
    factors.push_back((predicted - latency) / (call.time - latency));
  }
  std::ranges::sort(factors);
  const double factor = factors[factors.size() / 2];
  for (const char* what : {"efficiency", "node_efficiency"}) {
    const auto curve = profile.curves.find(key(what));
    if (curve == profile.curves.end()) continue;
    for (auto& point : curve->second.points) point[1] = std::clamp(point[1] * factor, 1e-5, 1.0);
    curve->second.origin = {origin.kind,
                            fmt::format("{}: level of {} calls", origin.source, factors.size())};
  }
}

/// What a profile says of calls it has no mode for: as the ring does, else any
/// mode.
void set_plain_numbers(cost::Profile& profile, const Group& group, const cost::Origin& origin) {
  const Algorithm bulk = group.algorithms.bulk;
  const auto copy = [&](std::string_view what, const char* to) {
    const auto from =
        profile.numbers.find(cost::mode_key(group.scope, bulk, Protocol::simple, what));
    if (from != profile.numbers.end()) profile.numbers[to] = from->second;
  };
  const auto& curve =
      profile.curve(cost::mode_key(group.scope, bulk, Protocol::simple, "efficiency"));
  const double share = curve.points.back()[1];
  const cost::Number number = {share, share * curve.low_factor,
                               std::min(share * curve.high_factor, 1.0), Factor::network, origin};
  if (group.scope == Scope::inside && bulk == Algorithm::ring) {
    profile.numbers["network.node_efficiency"] = number;
  } else if (group.scope == Scope::between &&
             (bulk == Algorithm::ring ||
              !profile.curves.contains(cost::mode_key(Scope::between, Algorithm::ring,
                                                      Protocol::simple, "efficiency")))) {
    for (const char* key : {"network.transport_cap_Bps", "network.small_below_B",
                            "network.small_efficiency", "network.small_hop_latency_s"})
      profile.numbers.erase(key);
    profile.numbers["network.efficiency"] = number;
    copy("hop_latency_s", "network.hop_latency_s");
  }
}

}  // namespace

void fit_modes(cost::Profile& profile, const std::vector<TimedCall>& calls,
               const cost::Origin& origin, std::string& report, std::vector<std::string>& gaps) {
  for (const Group& group : groups_of(profile, calls)) {
    std::vector<CollectiveRow> rows;
    for (const TimedCall& call : group.calls) rows.push_back(row_of(call, group.algorithms.bulk));
    if (rows.size() < kFewestRows || !tell_latency(rows)) {
      gaps.push_back(
          fmt::format("{} calls that ran {} {}: too few or too alike in size for "
                      "latencies; they set the "
                      "efficiency",
                      rows.size(), name_of(group.algorithms.bulk),
                      group.scope == Scope::inside ? "inside a node" : "between nodes"));
      scale_mode(profile, group, origin);
    } else {
      write_modes(profile, group, origin, report, gaps);
    }
    set_plain_numbers(profile, group, origin);
  }
}

Seconds predicted_alone(const cost::Profile& profile, const TimedCall& call) {
  std::vector<cost::Mode> modes = cost::modes_of(&profile, call.kind, call.size, call.layout);
  const auto runs_it = [&](const cost::Mode& m) { return m.algorithm == call.algorithm; };
  if (call.algorithm && std::ranges::any_of(modes, runs_it)) {
    std::erase_if(modes, std::not_fn(runs_it));
    if (std::ranges::none_of(modes, &cost::Mode::offered))
      for (cost::Mode& mode : modes) mode.offered = mode.protocol == Protocol::simple;
  }
  Seconds fastest(std::numeric_limits<double>::infinity());
  for (const cost::Mode& mode : modes) {
    const auto traffic = cost::traffic_of(mode.algorithm, call.kind, call.layout);
    if (mode.offered && traffic)
      fastest = std::min(fastest, cost::time_alone(*traffic, mode.terms, call.size, call.rates));
  }
  return fastest;
}

namespace {

/// All-reduces that are about to be fitted replace what a base profile says of
/// every algorithm they may have run; else a mode of another machine might
/// still look faster.
void forget_fitted_scopes(cost::Profile& profile, const std::vector<TimedCall>& calls) {
  for (const Scope scope : {Scope::inside, Scope::between}) {
    std::vector<CollectiveRow> rows;
    for (const TimedCall& call : calls)
      if (call.kind == CollectiveKind::all_reduce && scope_of(call) == scope)
        rows.push_back(row_of(call, Algorithm::ring));
    if (rows.size() < kFewestRows || !tell_latency(rows)) continue;
    for (const Algorithm algorithm :
         {Algorithm::ring, Algorithm::tree, Algorithm::nvls, Algorithm::nvls_tree})
      for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
        const std::string prefix = cost::mode_key(scope, algorithm, protocol, "");
        const auto of_mode = [&](const auto& entry) { return entry.first.starts_with(prefix); };
        std::erase_if(profile.numbers, of_mode);
        std::erase_if(profile.curves, of_mode);
      }
  }
}

}  // namespace

std::vector<TimedCall> timed_calls(const std::vector<CollectiveSample>& samples,
                                   const spec::Cluster& cluster, int& unusable) {
  std::vector<TimedCall> calls;
  for (const CollectiveSample& sample : samples) {
    const int per_node =
        sample.ranks_per_node.value_or(std::min(sample.ranks, cluster.gpus_per_node));
    const bool usable = !sample.in_training && sample.ranks >= 2 && per_node >= 1 &&
                        per_node <= cluster.gpus_per_node && sample.ranks % per_node == 0 &&
                        sample.time > Seconds(0) && sample.size > Bytes(0);
    if (!usable) {
      ++unusable;
      continue;
    }
    const int nics = std::max(1, cluster.nics_per_node * per_node / cluster.gpus_per_node);
    calls.push_back(
        {.kind = sample.kind,
         .layout = {.ranks = sample.ranks, .nodes = sample.ranks / per_node, .nics_per_node = nics},
         .rates = {.node_link = cluster.node_link_bandwidth, .nic = cluster.nic_bandwidth},
         .size = sample.size,
         .time = sample.time,
         .algorithm = find_named<Algorithm>(sample.algorithm)});
  }
  return calls;
}

void fit_collectives(cost::Profile& profile, const std::vector<CollectiveSample>& samples,
                     const spec::Cluster& cluster, const std::string& source, std::string& report,
                     std::vector<std::string>& gaps) {
  int unusable = 0;
  const std::vector<TimedCall> calls = timed_calls(samples, cluster, unusable);
  if (unusable > 0)
    gaps.push_back(
        fmt::format("{} collective samples not used: timed inside a "
                    "training step, or a layout the "
                    "cluster does not have",
                    unusable));
  if (std::ranges::none_of(calls, [](const auto& call) { return call.layout.nodes > 1; }))
    gaps.push_back("network.*: no samples between nodes; the base profile's numbers stay");
  forget_fitted_scopes(profile, calls);
  fit_modes(profile, calls, {Provenance::imported, source}, report, gaps);
}

}  // namespace scapesim::calib
