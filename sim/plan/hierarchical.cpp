// SPDX-License-Identifier: Apache-2.0
// Rings in two levels: inside every node, and between the ranks of one place in all nodes. All
// parts run at once on different pieces.
#include <algorithm>

#include "sim/plan/algorithms.hpp"
#include "sim/plan/ring_pass.hpp"

namespace scapesim::plan {

using graph::CollectiveKind;
using topology::GpuId;

void ring_pass(Sheet& sheet, std::span<const GpuId> ranks, std::uint64_t units,
               std::vector<std::vector<TransferId>>& after) {
  const std::size_t n = ranks.size();
  if (sheet.keep() != Sheet::Keep::pieces) {
    for (std::size_t i = 0; i < n && n > 1; ++i)
      sheet.send(ranks[i], ranks[(i + 1) % n], units * (n - 1));
    return;
  }
  for (std::size_t step = 1; step < n; ++step) {
    std::vector<std::vector<TransferId>> arrived(n);
    for (std::size_t i = 0; i < n; ++i)
      arrived[(i + 1) % n] = {sheet.send(ranks[i], ranks[(i + 1) % n], units, after[i])};
    after = std::move(arrived);
  }
}

namespace {

using Waits = std::vector<std::vector<TransferId>>;

/// One pass inside every node; a step moves an m-th of the data, `units`.
void pass_inside(Sheet& sheet, const Places& places, std::uint64_t units, Waits& waits) {
  for (std::size_t node = 0, first = 0; node < places.nodes.size(); ++node) {
    const std::size_t size = places.nodes[node].size();
    const auto begin = waits.begin() + static_cast<std::ptrdiff_t>(first);
    Waits part(begin, begin + static_cast<std::ptrdiff_t>(size));
    ring_pass(sheet, places.nodes[node], units, part);
    std::ranges::move(part, begin);
    first += size;
  }
}

/// One pass between the ranks of each place.
void pass_between(Sheet& sheet, const Places& places, Waits& waits) {
  const std::size_t in_node = places.nodes.front().size();
  for (std::size_t place = 0; place < in_node; ++place) {
    Group ring;
    Waits part;
    for (std::size_t rank = place; rank < places.ranks.size(); rank += in_node) {
      ring.push_back(places.ranks[rank]);
      part.push_back(waits[rank]);
    }
    ring_pass(sheet, ring, 1, part);
    for (std::size_t node = 0; node < part.size(); ++node)
      waits[node * in_node + place] = std::move(part[node]);
  }
}

/// Inside every node each rank hands the others what they will pass on, then the ranks of one place
/// exchange between nodes.
Stage exchange(const Site& site, Sheet::Keep keep) {
  Stage stage{.sheet = Sheet(site.fabric, keep)};
  const auto in_node = static_cast<std::size_t>(site.in_node);
  const auto nodes = static_cast<std::size_t>(site.nodes);
  for (const Places& places : site.groups) {
    Waits inside(places.ranks.size());
    for (std::size_t rank = 0; rank < places.ranks.size(); ++rank)
      for (std::size_t place = 0; place < in_node; ++place) {
        const std::size_t to = rank / in_node * in_node + place;
        if (to == rank) continue;
        inside[to].push_back(stage.sheet.send(places.ranks[rank], places.ranks[to], nodes));
      }
    for (std::size_t rank = 0; rank < places.ranks.size(); ++rank)
      for (std::size_t step = 1; step < nodes; ++step)
        stage.sheet.send(places.ranks[rank],
                         places.ranks[(rank + step * in_node) % places.ranks.size()], in_node,
                         inside[rank]);
  }
  stage.denominator = site.ranks;
  stage.inside_lead = (site.in_node - 1) * site.nodes;
  stage.outside_lead = (site.nodes - 1) * site.in_node;
  stage.steps_between = site.nodes - 1;
  stage.steps_inside = site.in_node - 1;
  return stage;
}

}  // namespace

// [M145] A pass inside moves (m-1)/m of the data over every node link, one between (k-1)/k of an
// m-th; a reduce-scatter goes in, an all-gather out, an all-reduce both ways. An all-to-all hands
// (m-1)/m over inside and (k-1)/k between, in m + k - 2 steps instead of n - 1.
std::vector<Stage> lay_hierarchical(const Site& site, const CollectiveCall& call,
                                    Sheet::Keep keep) {
  if (call.kind == CollectiveKind::all_to_all) return single(exchange(site, keep));
  Stage stage{.sheet = Sheet(site.fabric, keep)};
  const bool reduces = call.kind != CollectiveKind::all_gather;
  const bool gathers = call.kind != CollectiveKind::reduce_scatter;
  const auto nodes = static_cast<std::uint64_t>(site.nodes);
  for (const Places& places : site.groups) {
    Waits waits(places.ranks.size());
    if (reduces) pass_inside(stage.sheet, places, nodes, waits);
    if (reduces) pass_between(stage.sheet, places, waits);
    if (gathers) pass_between(stage.sheet, places, waits);
    if (gathers) pass_inside(stage.sheet, places, nodes, waits);
  }
  const double passes = reduces && gathers ? 2 : 1;
  stage.denominator = static_cast<double>(site.nodes) * site.in_node;
  stage.inside_lead = passes * (site.in_node - 1) * site.nodes;
  stage.outside_lead = passes * (site.nodes - 1);
  stage.steps_between = passes * (site.nodes - 1);
  stage.steps_inside = passes * (site.in_node - 1);
  return single(std::move(stage));
}

}  // namespace scapesim::plan
