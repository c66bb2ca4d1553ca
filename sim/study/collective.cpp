// SPDX-License-Identifier: Apache-2.0
#include "sim/study/collective.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <set>

#include "calib/import.hpp"
#include "sim/base/error.hpp"
#include "sim/base/unit_text.hpp"
#include "sim/cost/collective_traffic.hpp"
#include "sim/plan/collectives.hpp"
#include "sim/result/metrics.hpp"
#include "topologies/placement.hpp"

namespace scapesim::study {
namespace {

constexpr std::string_view kSmallestFitted = "network.smallest_fitted_B";

std::optional<result::Warning> warning_of_sizes(std::span<const Bytes> sizes,
                                                const cost::Profile& profile) {
  if (!profile.has(kSmallestFitted)) return std::nullopt;
  const Bytes smallest(profile.number(kSmallestFitted));
  const auto below = std::ranges::count_if(sizes, [&](Bytes size) { return size < smallest; });
  if (below == 0) return std::nullopt;
  return result::Warning{
      "extrapolation",
      fmt::format("{} of {} sizes are below {}, the smallest that the latency of profile {} "
                  "was fitted to: small messages are usually faster",
                  below, sizes.size(), text_of(smallest), profile.id)};
}

/// Where the job's ranks sit.
cost::Layout layout_of(const spec::Cluster& cluster) {
  const topology::Fabric fabric =
      topology::build_fabric(cluster, topology::nodes_to_build(cluster));
  return plan::layout_of(
      fabric, plan::GroupSet(topology::node_by_node(fabric, topology::placement(cluster))));
}

/// Numbers and curves of the profile that a row of the table rests on.
std::vector<std::string> keys_of(const CollectiveTime& row, cost::Scope scope,
                                 const cost::Profile& profile) {
  const auto algorithm = find_named<graph::Algorithm>(row.algorithm);
  const auto protocol = find_named<graph::Protocol>(row.protocol);
  std::vector<std::string> keys;
  const auto take_all = [&](const auto& entries, const std::string& prefix) {
    for (auto entry = entries.lower_bound(prefix);
         entry != entries.end() && entry->first.starts_with(prefix); ++entry)
      keys.push_back(entry->first);
  };
  if (algorithm && protocol) {
    const std::string prefix = cost::mode_key(scope, *algorithm, *protocol, "");
    take_all(profile.numbers, prefix);
    take_all(profile.curves, prefix);
  }
  if (!keys.empty()) return keys;
  for (const char* key :
       {"network.efficiency", "network.hop_latency_s", "network.transport_cap_Bps",
        "network.node_efficiency", "network.node_hop_latency_s", "network.base_latency_s"})
    if (profile.has(key)) keys.emplace_back(key);
  return keys;
}

cost::Provenance provenance_of(const std::string& key, const cost::Profile& profile) {
  const auto number = profile.numbers.find(key);
  return number != profile.numbers.end() ? number->second.origin.kind
                                         : profile.curve(key).origin.kind;
}

std::optional<result::Warning> warning_of_assumptions(const std::vector<CollectiveTime>& rows,
                                                      cost::Scope scope,
                                                      const cost::Profile& profile) {
  constexpr std::size_t kShown = 4;
  std::set<std::string> assumed;
  for (const CollectiveTime& row : rows)
    for (const std::string& key : keys_of(row, scope, profile))
      if (provenance_of(key, profile) == cost::Provenance::assumed) assumed.insert(key);
  if (assumed.empty()) return std::nullopt;
  std::vector<std::string> shown(assumed.begin(), assumed.end());
  std::string more;
  if (shown.size() > kShown) {
    more = fmt::format(" and {} more (scapesim calibrate --show {})", shown.size() - kShown,
                       profile.id);
    shown.resize(kShown);
  }
  return result::Warning{"assumed", fmt::format("assumed, not measured, in profile {}: {}{}",
                                                profile.id, fmt::join(shown, ", "), more)};
}

/// Pieces that a mode's curve of efficiency does not cover.
std::optional<result::Warning> warning_of_curves(const std::vector<CollectiveTime>& rows,
                                                 const cost::Layout& layout,
                                                 const cost::Profile& profile) {
  const cost::Scope scope = layout.nodes == 1 ? cost::Scope::inside : cost::Scope::between;
  std::size_t outside = 0;
  double octaves = 0;
  for (const CollectiveTime& row : rows)
    for (const std::string& key : keys_of(row, scope, profile)) {
      const auto curve = profile.curves.find(key);
      const auto algorithm = find_named<graph::Algorithm>(row.algorithm);
      if (curve == profile.curves.end() || !algorithm) continue;
      const double piece = cost::piece_of(*algorithm, row.size, layout).si();
      const auto& points = curve->second.points;
      if (piece <= points.back()[0]) continue;  // below, latency decides
      ++outside;
      octaves = std::max(octaves, std::log2(piece / points.back()[0]));
      break;
    }
  if (outside == 0) return std::nullopt;
  return result::Warning{
      "extrapolation",
      fmt::format("{} of {} sizes move larger pieces than profile {} was fitted to: its last "
                  "efficiency counts",
                  outside, rows.size(), profile.id),
      octaves};
}

std::vector<result::Warning> warnings_of(std::span<const Bytes> sizes,
                                         const std::vector<CollectiveTime>& rows,
                                         const spec::Cluster& cluster,
                                         const cost::Profile& profile) {
  const cost::Layout layout = layout_of(cluster);
  const cost::Scope scope = layout.nodes == 1 ? cost::Scope::inside : cost::Scope::between;
  std::vector<result::Warning> list;
  for (const auto& warning :
       {warning_of_sizes(sizes, profile), warning_of_curves(rows, layout, profile),
        warning_of_assumptions(rows, scope, profile)})
    if (warning) list.push_back(*warning);
  return list;
}

}  // namespace

CollectiveTable collective_table(graph::CollectiveKind kind, std::span<const Bytes> sizes,
                                 const spec::Cluster& cluster, const cost::Profile* profile,
                                 const CollectiveOptions& options) {
  CollectiveTable table;
  table.rows = predict_collectives(kind, sizes, cluster, profile, options);
  if (profile != nullptr) table.warnings = warnings_of(sizes, table.rows, cluster, *profile);
  return table;
}

std::vector<MeasuredCollective> measured_collectives(std::span<const std::string> logs,
                                                     graph::CollectiveKind kind,
                                                     const spec::Cluster& cluster,
                                                     const cost::Profile* profile,
                                                     const CollectiveOptions& options) {
  std::vector<MeasuredCollective> rows;
  std::vector<Bytes> sizes;
  const double factor = result::busbw_factor(kind, cluster.gpus);
  for (const std::string& log : logs) {
    const std::size_t before = rows.size();
    for (const calib::CollectiveSample& sample : calib::import_file(log).collectives) {
      if (sample.kind != kind || sample.ranks != cluster.gpus || sample.in_training ||
          sample.time <= Seconds(0) || sample.size <= Bytes(0))
        continue;
      rows.push_back({.size = sample.size,
                      .time = sample.time,
                      .busbw = factor * (sample.size / sample.time),
                      .predicted = {},
                      .predicted_busbw = {},
                      .source = log});
      sizes.push_back(sample.size);
    }
    if (rows.size() == before)
      throw InputError(Problem{{.file = log},
                               "--against",
                               fmt::format("holds no {} of {} GPUs", name_of(kind), cluster.gpus),
                               "an nccl-tests log of that size is expected"});
  }
  const auto predicted = predict_collectives(kind, sizes, cluster, profile, options);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].predicted = predicted[i].time;
    rows[i].predicted_busbw = predicted[i].busbw;
  }
  return rows;
}

}  // namespace scapesim::study
