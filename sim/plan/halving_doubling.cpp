// SPDX-License-Identifier: Apache-2.0
// Recursive halving and doubling: partners at distances 1, 2, 4 ... exchange what is left, half of
// it each time; then the same backwards. Steps follow one another.
#include <algorithm>

#include "sim/plan/algorithms.hpp"

namespace scapesim::plan {

using graph::CollectiveKind;

namespace {

/// All ranks exchange 1/2^(round+1) of the data with the partner at distance 2^round.
Stage exchange(const Site& site, int round, Sheet::Keep keep) {
  Stage stage{.sheet = Sheet(site.fabric, keep)};
  bool between = false;
  for (const Places& places : site.groups)
    for (std::size_t rank = 0; rank < places.ranks.size(); ++rank) {
      const topology::GpuId from = places.ranks[rank];
      const topology::GpuId to = places.ranks[rank ^ (std::size_t{1} << round)];
      stage.sheet.send(from, to, 1);
      between |= site.fabric.node_of(from) != site.fabric.node_of(to);
    }
  stage.denominator = static_cast<double>(std::uint64_t{2} << round);
  stage.steps_between = between ? 1 : 0;
  stage.steps_inside = between ? 0 : 1;
  return stage;
}

}  // namespace

// [M147] log2 n steps of S/2, S/4 ... S/n each way. Thakur, Rabenseifner, Gropp 2005, sec. 4.
std::vector<Stage> lay_halving_doubling(const Site& site, const CollectiveCall& call,
                                        Sheet::Keep keep) {
  std::vector<Stage> stages;
  int rounds = 0;
  while ((1 << rounds) < site.ranks) ++rounds;
  if (call.kind != CollectiveKind::all_gather)
    for (int round = 0; round < rounds; ++round) stages.push_back(exchange(site, round, keep));
  if (call.kind != CollectiveKind::reduce_scatter)
    for (int round = rounds; round-- > 0;) stages.push_back(exchange(site, round, keep));
  return stages;
}

}  // namespace scapesim::plan
