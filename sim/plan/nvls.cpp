// SPDX-License-Identifier: Apache-2.0
// NVLS: the switch inside a node sums what several GPUs hold while one of them reads it, and copies
// to all what one of them writes. NVLS-tree: the same inside nodes, double binary trees between the
// GPUs of one place.
#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/plan/algorithms.hpp"
#include "sim/plan/tree.hpp"

namespace scapesim::plan {

namespace {

using graph::CollectiveKind;
using topology::GpuId;
using topology::LinkId;

/// A GPU's links to and from the switch of its node.
struct Port {
  LinkId up;
  LinkId down;
};

std::vector<Port> ports_of(const topology::Fabric& fabric, std::span<const GpuId> node) {
  std::vector<Port> ports;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const GpuId other = node[i == 0 ? 1 : 0];
    ports.push_back({fabric.path(node[i], other).front(), fabric.path(other, node[i]).back()});
  }
  return ports;
}

/// The switch's two tricks among the GPUs of one node.
class Switch {
 public:
  Switch(Sheet& sheet, std::span<const GpuId> node)
      : sheet_(sheet), ports_(ports_of(sheet.fabric(), node)) {}

  /// One GPU reads the sum of what all hold: all send, it receives.
  TransferId reduce_to(std::size_t rank, std::uint64_t units,
                       std::span<const TransferId> after = {}) {
    std::vector<LinkId> links = {ports_[rank].down};
    for (const Port& port : ports_) links.push_back(port.up);
    return sheet_.spread(links, units, Seconds(0), after);
  }
  /// One GPU writes to all, itself included.
  TransferId copy_from(std::size_t rank, std::uint64_t units,
                       std::span<const TransferId> after = {}) {
    std::vector<LinkId> links = {ports_[rank].up};
    for (const Port& port : ports_) links.push_back(port.down);
    return sheet_.spread(links, units, Seconds(0), after);
  }

 private:
  Sheet& sheet_;
  std::vector<Port> ports_;
};

}  // namespace

// [M143] Every rank reads the sum of its n-th part and writes it to all: S (1 + 1/n) per GPU link
// and direction for an all-reduce.
std::vector<Stage> lay_nvls(const Site& site, const CollectiveCall& call, Sheet::Keep keep) {
  Stage stage{.sheet = Sheet(site.fabric, keep)};
  const bool reduces = call.kind != CollectiveKind::all_gather;
  const bool copies = call.kind != CollectiveKind::reduce_scatter;
  for (const Places& places : site.groups) {
    Switch node(stage.sheet, places.ranks);
    for (std::size_t rank = 0; rank < places.ranks.size(); ++rank) {
      std::vector<TransferId> sum;
      if (reduces) sum = {node.reduce_to(rank, 1)};
      if (copies) node.copy_from(rank, 1, sum);
    }
  }
  stage.denominator = site.ranks;
  stage.steps_inside = 2;  // to the switch and back
  return single(std::move(stage));
}

namespace {

/// The two trees between the ranks of one place in all nodes, each with half of that place's part.
void lay_between(Sheet& sheet, const Places& places, std::vector<Switch>& switches,
                 std::size_t place, const DoubleTree& trees) {
  for (const auto& parent : trees.parent) {
    const std::size_t nodes = places.nodes.size();
    std::vector<std::vector<TransferId>> arrived(nodes);
    for (std::size_t node = 0; node < nodes; ++node)
      arrived[node].push_back(switches[node].reduce_to(place, 1));
    const std::vector<std::size_t> order = leaves_first(parent);
    for (const std::size_t node : order) {
      if (!parent[node]) continue;
      const auto up = static_cast<std::size_t>(*parent[node]);
      arrived[up].push_back(
          sheet.send(places.nodes[node][place], places.nodes[up][place], 1, arrived[node]));
    }
    for (std::size_t i = nodes; i-- > 0;) {
      const std::size_t node = order[i];
      if (parent[node]) {
        const auto up = static_cast<std::size_t>(*parent[node]);
        arrived[node] = {
            sheet.send(places.nodes[up][place], places.nodes[node][place], 1, arrived[up])};
      }
      switches[node].copy_from(place, 1, arrived[node]);
    }
  }
}

}  // namespace

// [M144] Each place's part of S/m goes through the node switches and two trees between nodes.
std::vector<Stage> lay_nvls_tree(const Site& site, const CollectiveCall& /*call*/,
                                 Sheet::Keep keep) {
  Stage stage{.sheet = Sheet(site.fabric, keep)};
  const DoubleTree trees = double_tree(site.nodes);
  for (const Places& places : site.groups) {
    std::vector<Switch> switches;
    for (const std::span<const GpuId> node : places.nodes) switches.emplace_back(stage.sheet, node);
    for (std::size_t place = 0; place < static_cast<std::size_t>(site.in_node); ++place)
      lay_between(stage.sheet, places, switches, place, trees);
  }
  stage.denominator = 2.0 * site.in_node;
  stage.steps_between = 2 * trees.depth;
  stage.steps_inside = 2;
  return single(std::move(stage));
}

}  // namespace scapesim::plan
