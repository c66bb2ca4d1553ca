// SPDX-License-Identifier: Apache-2.0
// Point to point: all-to-all as an exchange with one partner after the other, and send-recv.
#include <cmath>

#include "sim/plan/algorithms.hpp"

namespace scapesim::plan {

using graph::CollectiveKind;
using topology::GpuId;

namespace {

constexpr double kShareUnits = 0x1p20;  // per-peer shares are rounded to this part of a buffer

std::vector<std::uint64_t> units_by_peer(const CollectiveCall& call, int ranks) {
  std::vector<std::uint64_t> units(static_cast<std::size_t>(ranks), 1);
  for (std::size_t i = 0; i < call.peer_shares.size(); ++i)
    units[i] = static_cast<std::uint64_t>(std::llround(call.peer_shares[i] * kShareUnits));
  return units;
}

/// A rank's messages to the others follow one another, to the next rank first.
void exchange(Sheet& sheet, const Group& ranks, const std::vector<std::uint64_t>& units) {
  const std::size_t n = ranks.size();
  for (std::size_t rank = 0; rank < n; ++rank) {
    std::vector<TransferId> last;
    for (std::size_t step = 1; step < n; ++step) {
      const std::size_t peer = (rank + step) % n;
      if (units[peer] > 0) last = {sheet.send(ranks[rank], ranks[peer], units[peer], last)};
    }
  }
}

std::vector<Stage> lay_sends(const Site& site, Sheet::Keep keep) {
  Stage stage{.sheet = Sheet(site.fabric, keep)};
  bool between = false;
  const auto n = static_cast<std::size_t>(site.ranks);
  for (const Places& places : site.groups)
    for (std::size_t i = 0; i < (n == 2 ? 1 : n); ++i) {
      const GpuId from = places.ranks[i], to = places.ranks[(i + 1) % n];
      stage.sheet.send(from, to, 1);
      between |= site.fabric.node_of(from) != site.fabric.node_of(to);
    }
  stage.steps_between = between ? 1 : 0;
  stage.steps_inside = between ? 0 : 1;
  return single(std::move(stage));
}

}  // namespace

// [M149] Every rank sends S/n to each other one, or its share of S; n-1 latencies.
std::vector<Stage> lay_pairwise(const Site& site, const CollectiveCall& call, Sheet::Keep keep) {
  if (call.kind == CollectiveKind::send_recv) return lay_sends(site, keep);
  Stage stage{.sheet = Sheet(site.fabric, keep)};
  const std::vector<std::uint64_t> units = units_by_peer(call, site.ranks);
  for (const Places& places : site.groups) exchange(stage.sheet, places.ranks, units);
  const double whole = call.peer_shares.empty() ? site.ranks : kShareUnits;
  const double in_node = static_cast<double>(site.ranks) / site.nodes;
  stage.denominator = whole;
  stage.inside_lead = std::max(1.0, whole * (in_node - 1) / site.ranks);
  stage.outside_lead = std::max(1.0, whole * (site.ranks - in_node) / site.ranks);
  stage.steps_inside = std::ceil(in_node) - 1;
  stage.steps_between = site.ranks - 1 - stage.steps_inside;
  return single(std::move(stage));
}

}  // namespace scapesim::plan
