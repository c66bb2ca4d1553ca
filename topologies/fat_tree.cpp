// SPDX-License-Identifier: Apache-2.0
// Two levels: leaf switches of nodes_per_rack nodes below one spine. Three, with racks_per_pod: a
// spine per pod, below one core. A trunk carries what is below it when full, divided by the tapers
// on the way; tapers of 1 never limit a permutation of nodes.
#include "sim/base/check.hpp"
#include "topologies/build.hpp"

namespace scapesim::topology {

namespace {

VertexKind kind_of_level(std::size_t level, std::size_t levels) {
  if (level == 0) return VertexKind::leaf_switch;
  return level + 1 > levels && levels > 1 ? VertexKind::core_switch : VertexKind::spine_switch;
}

}  // namespace

Fabric::Parts tree_parts(const spec::Cluster& cluster, int nodes,
                         std::span<const TreeLevel> levels) {
  Fabric::Parts parts = empty_parts(cluster, nodes);
  for (std::size_t level = levels.size(); level-- > 0;)
    if (nodes <= levels[level].nodes) parts.switch_hops = static_cast<int>(2 * level);
  if (nodes > levels.back().nodes) parts.switch_hops = static_cast<int>(2 * levels.size());
  // The switch of every level that the next node is below; the root is behind the last.
  std::vector<VertexId> at(levels.size() + 1);
  at.back() = new_vertex(parts, {kind_of_level(levels.size(), levels.size()), 0});
  for (int node = 0; node < nodes; ++node) {
    for (std::size_t level = levels.size(); level-- > 0;) {
      if (node % levels[level].nodes != 0) continue;
      const auto ordinal = static_cast<std::uint32_t>(node / levels[level].nodes);
      at[level] = new_vertex(parts, {kind_of_level(level, levels.size()), ordinal});
      connect(parts, at[level], at[level + 1], levels[level].trunk);
    }
    add_node(parts, cluster, at.front());
  }
  for (const TreeLevel& level : levels)
    parts.levels.push_back({level.name, static_cast<double>(level.nodes) * node_capacity(cluster),
                            level.trunk.capacity});
  return parts;
}

Fabric fat_tree(const spec::Cluster& cluster, int nodes) {
  const spec::TreeShape shape = spec::tree_shape(cluster);
  SCAPESIM_CHECK(shape.nodes_per_rack > 0 && shape.racks_per_pod >= 0, "{} nodes per rack",
                 shape.nodes_per_rack);
  SCAPESIM_CHECK(shape.taper > 0 && shape.pod_taper > 0, "tapers {} and {}", shape.taper,
                 shape.pod_taper);
  const auto rack = static_cast<double>(shape.nodes_per_rack) * node_capacity(cluster);
  const Link trunk{LinkKind::trunk, rack / shape.taper};
  const auto racks = static_cast<double>(shape.racks_per_pod);
  const Link pod_trunk{LinkKind::pod, racks * trunk.capacity / shape.pod_taper};
  std::vector<TreeLevel> levels = {{shape.nodes_per_rack, trunk, "rack"}};
  if (shape.racks_per_pod > 0)
    levels.push_back({shape.nodes_per_rack * shape.racks_per_pod, pod_trunk, "pod"});
  if (cluster.fabric.routing == spec::Routing::ecmp) return ecmp_tree(cluster, nodes, levels);
  return Fabric(tree_parts(cluster, nodes, levels));
}

}  // namespace scapesim::topology
