// SPDX-License-Identifier: Apache-2.0
// SHARP: the network's switches add what comes from below and copy the sum back. Inside nodes the
// parts are scattered and gathered by rings.
#include <algorithm>

#include "sim/plan/algorithms.hpp"
#include "sim/plan/ring_pass.hpp"

namespace scapesim::plan {

namespace {

using topology::GpuId;
using topology::LinkId;

/// The aggregation tree of one place: every link on the way between its GPUs and the first of them.
std::vector<LinkId> tree_links(const topology::Fabric& fabric, const Group& ranks) {
  std::vector<LinkId> links;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    fabric.append_path(ranks.front(), ranks[i], links);
    fabric.append_path(ranks[i], ranks.front(), links);
  }
  std::ranges::sort(links);
  const auto repeated = std::ranges::unique(links);
  links.erase(repeated.begin(), repeated.end());
  return links;
}

}  // namespace

// [M146] Every link of the tree carries the data once up and once down, whatever the number of
// nodes: S / NICs per NIC.
std::vector<Stage> lay_sharp(const Site& site, const CollectiveCall& /*call*/, Sheet::Keep keep) {
  Stage stage{.sheet = Sheet(site.fabric, keep)};
  const auto in_node = static_cast<std::size_t>(site.in_node);
  for (const Places& places : site.groups) {
    std::vector<std::vector<TransferId>> waits(places.ranks.size());
    const auto pass_inside = [&] {
      for (std::size_t first = 0; first < waits.size(); first += in_node) {
        const auto begin = waits.begin() + static_cast<std::ptrdiff_t>(first);
        std::vector<std::vector<TransferId>> part(begin, begin + site.in_node);
        ring_pass(stage.sheet, std::span(places.ranks).subspan(first, in_node), 1, part);
        std::ranges::move(part, begin);
      }
    };
    pass_inside();
    for (std::size_t place = 0; place < in_node; ++place) {
      Group ranks;
      std::vector<TransferId> ready;
      for (std::size_t rank = place; rank < waits.size(); rank += in_node) {
        ranks.push_back(places.ranks[rank]);
        ready.insert(ready.end(), waits[rank].begin(), waits[rank].end());
      }
      const TransferId sum =
          stage.sheet.spread(tree_links(site.fabric, ranks), 1,
                             2 * site.fabric.latency(ranks.front(), ranks.back()), ready);
      for (std::size_t rank = place; rank < waits.size(); rank += in_node) waits[rank] = {sum};
    }
    pass_inside();
  }
  stage.denominator = site.in_node;
  stage.inside_lead = std::max(1, 2 * (site.in_node - 1));
  stage.steps_between = 2;
  stage.steps_inside = 2 * (site.in_node - 1);
  return single(std::move(stage));
}

}  // namespace scapesim::plan
