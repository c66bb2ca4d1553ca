// SPDX-License-Identifier: Apache-2.0
// Tree all-reduce: the ranks of a node are a chain whose head is joined to other nodes by a double
// binary tree; sums go up and come down again, piece by piece. There is a pair of trees per place
// in a node, with another head each.
#include "sim/plan/tree.hpp"

#include <algorithm>

#include "sim/plan/algorithms.hpp"

namespace scapesim::plan {

namespace {

using topology::GpuId;
using Parents = std::vector<std::optional<int>>;

/// In the in-order tree a node's subtree spans the numbers that share its bits above the lowest
/// set one; where the parent does not exist, the next one up does.
std::optional<int> in_order_parent(int node, int nodes) {
  if (node == 0) return std::nullopt;
  const int bit = node & -node;
  const int parent = (node ^ bit) | (bit << 1);
  return parent < nodes ? parent : node ^ bit;
}

int depth_of(const Parents& parent, std::size_t node) {
  int depth = 0;
  for (auto at = parent[node]; at; at = parent[static_cast<std::size_t>(*at)]) ++depth;
  return depth;
}

/// The chain of a node, from its head on.
Group chain_of(std::span<const GpuId> node, std::size_t head) {
  Group chain(node.begin(), node.end());
  std::ranges::rotate(chain, chain.begin() + static_cast<std::ptrdiff_t>(head));
  return chain;
}

/// One tree of one place: its chains, and its edges between their heads; one unit each way.
class TreeOfPlace {
 public:
  TreeOfPlace(Sheet& sheet, const std::vector<Group>& chains, const Parents& parent)
      : sheet_(sheet), chains_(chains), parent_(parent), arrived_(chains.size()) {}

  void lay(const std::vector<std::size_t>& leaves_first) {
    for (const std::size_t node : leaves_first) up(node);
    for (std::size_t i = leaves_first.size(); i-- > 0;) down(leaves_first[i]);
  }

 private:
  /// The node's sum reaches its head, and with its children's the parent's head.
  void up(std::size_t node) {
    const Group& chain = chains_[node];
    std::vector<TransferId> last;
    for (std::size_t i = chain.size(); i-- > 1;)
      last = {sheet_.send(chain[i], chain[i - 1], 1, last)};
    std::vector<TransferId>& here = arrived_[node];
    here.insert(here.end(), last.begin(), last.end());
    if (!parent_[node]) return;
    const auto parent = static_cast<std::size_t>(*parent_[node]);
    arrived_[parent].push_back(sheet_.send(chain.front(), chains_[parent].front(), 1, here));
  }
  /// What the head has (the root when all sums have arrived, others from the parent) goes down.
  void down(std::size_t node) {
    const Group& chain = chains_[node];
    std::vector<TransferId>& here = arrived_[node];
    if (parent_[node]) {
      const auto parent = static_cast<std::size_t>(*parent_[node]);
      here = {sheet_.send(chains_[parent].front(), chain.front(), 1, arrived_[parent])};
    }
    std::vector<TransferId> last = here;
    for (std::size_t i = 1; i < chain.size(); ++i)
      last = {sheet_.send(chain[i - 1], chain[i], 1, last)};
  }

  Sheet& sheet_;
  const std::vector<Group>& chains_;
  const Parents& parent_;
  std::vector<std::vector<TransferId>> arrived_;  ///< at the head
};

}  // namespace

std::vector<std::size_t> leaves_first(const Parents& parent) {
  std::vector<std::pair<int, std::size_t>> order;
  for (std::size_t node = 0; node < parent.size(); ++node)
    order.emplace_back(-depth_of(parent, node), node);
  std::ranges::sort(order);
  std::vector<std::size_t> nodes;
  for (const auto& [depth, node] : order) nodes.push_back(node);
  return nodes;
}

DoubleTree double_tree(int nodes) {
  DoubleTree trees;
  for (int node = 0; node < nodes; ++node) trees.parent[0].push_back(in_order_parent(node, nodes));
  trees.parent[1].resize(trees.parent[0].size());
  const bool even = nodes % 2 == 0;
  const auto place = [&](int node) { return even ? nodes - 1 - node : (node + 1) % nodes; };
  for (int node = 0; node < nodes; ++node) {
    const std::optional<int> parent = trees.parent[0][static_cast<std::size_t>(node)];
    if (parent) trees.parent[1][static_cast<std::size_t>(place(node))] = place(*parent);
    trees.depth = std::max(trees.depth, depth_of(trees.parent[0], static_cast<std::size_t>(node)));
  }
  return trees;
}

// [M142] Each of the 2 m trees carries S / 2m bytes up and down every edge. Latency: from the
// furthest rank to the root and back.
std::vector<Stage> lay_tree(const Site& site, const CollectiveCall& /*call*/, Sheet::Keep keep) {
  Stage stage{.sheet = Sheet(site.fabric, keep)};
  std::size_t longest = 1;
  int depth = 0;
  for (const Places& places : site.groups) {
    const DoubleTree trees = double_tree(static_cast<int>(places.nodes.size()));
    depth = std::max(depth, trees.depth);
    const std::vector<std::size_t> orders[] = {leaves_first(trees.parent[0]),
                                               leaves_first(trees.parent[1])};
    for (std::size_t head = 0; head < static_cast<std::size_t>(site.fewest_in_node); ++head) {
      std::vector<Group> chains;
      for (const std::span<const GpuId> node : places.nodes) {
        chains.push_back(chain_of(node, head));
        longest = std::max(longest, node.size());
      }
      for (const std::size_t tree : {0, 1})
        TreeOfPlace(stage.sheet, chains, trees.parent[tree]).lay(orders[tree]);
    }
  }
  stage.denominator = 2.0 * site.fewest_in_node;
  stage.steps_between = 2 * depth;
  stage.steps_inside = 2 * (static_cast<double>(longest) - 1);
  return single(std::move(stage));
}

}  // namespace scapesim::plan
