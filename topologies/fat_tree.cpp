// SPDX-License-Identifier: Apache-2.0
// Two levels: leaf switches of nodes_per_rack nodes below one spine. Three, with racks_per_pod: a
// spine per pod, below one core. A trunk carries what is below it when full, divided by the tapers
// on the way; tapers of 1 never limit a permutation of nodes.
#include "sim/base/check.hpp"
#include "topologies/build.hpp"

namespace scapesim::topology {

Fabric fat_tree(const spec::Cluster& cluster, int nodes) {
  const spec::Fabric& fabric = cluster.fabric;
  const std::int64_t per_rack = fabric.nodes_per_rack;
  const std::int64_t per_pod = per_rack * fabric.racks_per_pod;
  SCAPESIM_CHECK(per_rack > 0 && per_pod >= 0, "{} nodes per rack", per_rack);
  SCAPESIM_CHECK(fabric.taper > 0 && fabric.pod_taper > 0, "tapers {} and {}", fabric.taper,
                 fabric.pod_taper);
  const BytesPerSecond rack = fabric.nodes_per_rack * node_capacity(cluster);
  const Link trunk{LinkKind::trunk, rack / fabric.taper};
  const Link pod_trunk{LinkKind::pod, fabric.racks_per_pod * trunk.capacity / fabric.pod_taper};

  Fabric::Parts parts = empty_parts(cluster, nodes);
  parts.levels = {{"rack", rack, trunk.capacity}};
  if (per_pod > 0) parts.levels.push_back({"pod", fabric.racks_per_pod * rack, pod_trunk.capacity});
  parts.switch_hops = nodes <= per_rack ? 0 : per_pod == 0 || nodes <= per_pod ? 2 : 4;
  const VertexId root =
      new_vertex(parts, {per_pod > 0 ? VertexKind::core_switch : VertexKind::spine_switch, 0});
  VertexId spine = root, leaf = root;
  for (int node = 0; node < nodes; ++node) {
    if (per_pod > 0 && node % per_pod == 0) {
      spine =
          new_vertex(parts, {VertexKind::spine_switch, static_cast<std::uint32_t>(node / per_pod)});
      connect(parts, spine, root, pod_trunk);
    }
    if (node % per_rack == 0) {
      leaf =
          new_vertex(parts, {VertexKind::leaf_switch, static_cast<std::uint32_t>(node / per_rack)});
      connect(parts, leaf, spine, trunk);
    }
    add_node(parts, cluster, leaf);
  }
  return Fabric(std::move(parts));
}

}  // namespace scapesim::topology
