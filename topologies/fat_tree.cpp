// SPDX-License-Identifier: Apache-2.0
// Two levels: leaf switches of nodes_per_rack nodes below one spine. A leaf's trunk carries what
// its full rack can send, divided by the taper; taper 1 never limits a permutation of nodes.
#include "sim/base/check.hpp"
#include "topologies/build.hpp"

namespace scapesim::topology {

Fabric fat_tree(const spec::Cluster& cluster, int nodes) {
  const int per_rack = cluster.fabric.nodes_per_rack;
  SCAPESIM_CHECK(per_rack > 0, "{} nodes per rack", per_rack);
  SCAPESIM_CHECK(cluster.fabric.taper > 0, "taper {}", cluster.fabric.taper);
  const BytesPerSecond rack = per_rack * cluster.nics_per_node * cluster.nic_bandwidth;
  const Link trunk{LinkKind::trunk, rack / cluster.fabric.taper};

  Fabric::Parts parts = empty_parts(cluster, nodes);
  parts.switch_hops = nodes > per_rack ? 2 : 0;
  parts.levels = {{"rack", rack, trunk.capacity}};
  const VertexId spine = new_vertex(parts, {VertexKind::spine_switch, 0});
  VertexId leaf = spine;
  for (int node = 0; node < nodes; ++node) {
    if (node % per_rack == 0) {
      const auto ordinal = static_cast<std::uint32_t>(node / per_rack);
      leaf = new_vertex(parts, {VertexKind::leaf_switch, ordinal});
      connect(parts, leaf, spine, trunk);
    }
    add_node(parts, cluster, leaf);
  }
  return Fabric(std::move(parts));
}

}  // namespace scapesim::topology
