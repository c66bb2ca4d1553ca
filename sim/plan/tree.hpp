// SPDX-License-Identifier: Apache-2.0
// Two binary trees over the same nodes in which none is an inner node twice.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace scapesim::plan {

/// [M141] Parent of every node, none for the root. Sanders, Speck, Traeff 2009: in-order numbered
/// trees, the second one mirrored (an even count) or turned by one (an odd count).
struct DoubleTree {
  std::vector<std::optional<int>> parent[2];
  int depth = 0;  ///< edges from the root to the furthest node, of the deeper tree
};
DoubleTree double_tree(int nodes);
/// Every node before its parent.
std::vector<std::size_t> leaves_first(const std::vector<std::optional<int>>& parent);

}  // namespace scapesim::plan
