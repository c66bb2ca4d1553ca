// SPDX-License-Identifier: Apache-2.0
// Places far apart: each is a switch, or with nodes_per_rack a fat tree, and has one wide-area link
// to all others. A message between two sites takes wan_latency longer.
#include "sim/base/check.hpp"
#include "topologies/build.hpp"

namespace scapesim::topology {

Fabric sites(const spec::Cluster& cluster, int nodes) {
  const spec::Fabric& fabric = cluster.fabric;
  SCAPESIM_CHECK(fabric.nodes_per_site > 0, "{} nodes per site", fabric.nodes_per_site);
  std::vector<TreeLevel> levels;
  if (fabric.nodes_per_rack > 0)
    levels.push_back(
        {fabric.nodes_per_rack,
         {LinkKind::trunk, fabric.nodes_per_rack * node_capacity(cluster) / fabric.taper},
         "rack"});
  levels.push_back({fabric.nodes_per_site, {LinkKind::wan, fabric.wan_bandwidth}, "site"});
  Fabric::Parts parts = tree_parts(cluster, nodes, levels);
  parts.nodes_per_site = fabric.nodes_per_site;
  parts.wan_latency = fabric.wan_latency;
  return Fabric(std::move(parts));
}

}  // namespace scapesim::topology
