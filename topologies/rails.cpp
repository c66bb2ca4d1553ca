// SPDX-License-Identifier: Apache-2.0
// Rails: adapter i of every node of a rack hangs below leaf switch i of that rack. Optimized: all
// leaves are below one spine. Only: the leaves of a rail are below a spine of their own and nothing
// joins two rails (Wang et al., "Rail-only: A low-cost high-performance network for training LLMs
// with trillion parameters", 2023). Messages change rails inside the node they start from.
#include "sim/base/check.hpp"
#include "topologies/node.hpp"

namespace scapesim::topology {

namespace {

enum class Spines { one, per_rail };

/// The rails of a node together carry what one leaf of a fat tree would, and are all alike.
BytesPerSecond joint_bisection(spec::Cluster cluster, int nodes) {
  cluster.fabric.kind = spec::FabricKind::fat_tree;
  cluster.fabric.switch_radix = 0;
  cluster.fabric.racks_per_pod = 0;
  return fat_tree(cluster, nodes).bisection();
}

Fabric rails(const spec::Cluster& cluster, int nodes, Spines spines) {
  const int per_rack = cluster.fabric.nodes_per_rack;
  const int count = built_nics(cluster);
  SCAPESIM_CHECK(per_rack > 0, "{} nodes per rack", per_rack);
  const BytesPerSecond down = per_rack * node_capacity(cluster) / count;
  const Link trunk{LinkKind::trunk, down / cluster.fabric.taper};
  Fabric::Parts parts = empty_parts(cluster, nodes);
  parts.rails = true;
  parts.switch_hops = nodes <= per_rack ? 0 : 2;
  parts.levels = {{"rail of a rack", down, trunk.capacity}};
  std::vector<VertexId> spine_of(static_cast<std::size_t>(count));
  for (std::uint32_t rail = 0; rail < spine_of.size(); ++rail)
    spine_of[rail] = spines == Spines::one && rail > 0
                         ? spine_of[0]
                         : new_vertex(parts, {VertexKind::spine_switch, rail});
  std::vector<VertexId> leaves(spine_of.size());
  for (int node = 0; node < nodes; ++node) {
    if (node % per_rack == 0)
      for (std::uint32_t rail = 0; rail < leaves.size(); ++rail) {
        const auto rack = static_cast<std::uint32_t>(node / per_rack);
        leaves[rail] = new_vertex(
            parts, {VertexKind::leaf_switch, rack * static_cast<std::uint32_t>(count) + rail});
        connect(parts, leaves[rail], spine_of[rail], trunk);
      }
    add_node(parts, cluster, [&](int nic) { return leaves[static_cast<std::size_t>(nic)]; });
  }
  parts.bisection = [cluster, nodes] { return joint_bisection(cluster, nodes); };
  return Fabric(std::move(parts));
}

}  // namespace

Fabric rail_optimized(const spec::Cluster& cluster, int nodes) {
  return rails(cluster, nodes, Spines::one);
}

Fabric rail_only(const spec::Cluster& cluster, int nodes) {
  return rails(cluster, nodes, Spines::per_rail);
}

}  // namespace scapesim::topology
