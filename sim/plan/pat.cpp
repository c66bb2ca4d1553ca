// SPDX-License-Identifier: Apache-2.0
// PAT (parallel aggregated trees): every rank's part spreads through a binomial tree of its own,
// far partners first, so that little travels far; a reduce-scatter is the same backwards.
#include <algorithm>

#include "sim/plan/algorithms.hpp"

namespace scapesim::plan {

using graph::CollectiveKind;
using topology::GpuId;

namespace {

/// The tree of one rank's part, as transfers that wait for their parents' (or children's).
void lay_tree_of(Sheet& sheet, const Group& ranks, std::size_t root, CollectiveKind kind) {
  const std::size_t n = ranks.size();
  const auto at = [&](std::size_t place) { return ranks[(root + place) % n]; };
  const auto parent = [](std::size_t place) { return place & (place - 1); };
  std::vector<std::vector<TransferId>> have(n);
  if (kind == CollectiveKind::all_gather) {
    for (std::size_t place = 1; place < n; ++place)
      have[place] = {sheet.send(at(parent(place)), at(place), 1, have[parent(place)])};
    return;
  }
  for (std::size_t place = n; place-- > 1;)
    have[parent(place)].push_back(sheet.send(at(place), at(parent(place)), 1, have[place]));
}

}  // namespace

// [M148] Distance 2^d carries the parts whose place in the tree ends in d zero bits: all distances
// together n-1 of n parts per rank, in ceil(log2 n) hops.
std::vector<Stage> lay_pat(const Site& site, const CollectiveCall& call, Sheet::Keep keep) {
  Stage stage{.sheet = Sheet(site.fabric, keep)};
  const auto n = static_cast<std::size_t>(site.ranks);
  int hops = 0;
  for (std::size_t distance = 1; distance < n; distance *= 2) ++hops;
  for (const Places& places : site.groups)
    for (std::size_t rank = 0; rank < n; ++rank) {
      if (keep == Sheet::Keep::pieces) {
        lay_tree_of(stage.sheet, places.ranks, rank, call.kind);
        continue;
      }
      for (std::size_t distance = 1; distance < n; distance *= 2) {
        const std::uint64_t parts = (n - 1 - distance) / (2 * distance) + 1;
        const GpuId other = places.ranks[(rank + distance) % n];
        if (call.kind == CollectiveKind::all_gather)
          stage.sheet.send(places.ranks[rank], other, parts);
        else
          stage.sheet.send(other, places.ranks[rank], parts);
      }
    }
  stage.denominator = site.ranks;
  stage.inside_lead = stage.outside_lead = site.ranks - 1;
  stage.steps_between = hops;
  return single(std::move(stage));
}

}  // namespace scapesim::plan
