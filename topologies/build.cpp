// SPDX-License-Identifier: Apache-2.0
#include "topologies/build.hpp"

#include <array>
#include <utility>

#include "sim/base/check.hpp"
#include "topologies/node.hpp"

namespace scapesim::topology {

Fabric::Parts empty_parts(const spec::Cluster& cluster, int nodes) {
  SCAPESIM_CHECK(nodes > 0 && cluster.gpus_per_node > 0 && cluster.nics_per_node > 0,
                 "{} nodes of {} GPUs, {} NICs", nodes, cluster.gpus_per_node,
                 cluster.nics_per_node);
  SCAPESIM_CHECK(cluster.nic_bandwidth.si() > 0, "NIC {} B/s", cluster.nic_bandwidth.si());
  SCAPESIM_CHECK((cluster.gpus_per_node == 1 && cluster.nvlink_domain_nodes == 1) ||
                     cluster.node_link_bandwidth.si() > 0,
                 "{} GPUs per node without a link between them", cluster.gpus_per_node);
  Fabric::Parts parts;
  describe_node(cluster, parts);
  parts.latency = cluster.fabric.latency;
  const std::size_t gpus = static_cast<std::size_t>(nodes) * cluster.gpus_per_node;
  parts.gpu_vertices.reserve(gpus);
  parts.links.reserve(6 * gpus + 2);
  parts.graph.m_vertices.reserve(3 * gpus + 2);
  return parts;
}

VertexId new_vertex(Fabric::Parts& parts, Vertex vertex) {
  const VertexId id = add_vertex(parts.graph);
  parts.graph[id] = vertex;
  return id;
}

std::vector<VertexId> new_routers(Fabric::Parts& parts, std::uint32_t count) {
  std::vector<VertexId> routers;
  for (std::uint32_t ordinal = 0; ordinal < count; ++ordinal)
    routers.push_back(new_vertex(parts, {VertexKind::router, ordinal}));
  return routers;
}

BytesPerSecond node_capacity(const spec::Cluster& cluster) {
  return cluster.nics_per_node * cluster.nic_bandwidth;
}

void connect(Fabric::Parts& parts, VertexId lower, VertexId upper, Link link) {
  const LinkId up{static_cast<std::uint32_t>(parts.links.size())};
  const LinkId down{up.value + 1};
  parts.links.insert(parts.links.end(), 2, link);
  add_edge(lower, upper, EdgeLink{up}, parts.graph);
  add_edge(upper, lower, EdgeLink{down}, parts.graph);
}

std::span<const Generator> generators() {
  static constexpr std::array kRows{
      Generator{spec::FabricKind::switch_, "switch", "one non-blocking switch joins all nodes",
                single_switch},
      Generator{spec::FabricKind::fat_tree, "fat_tree",
                "leaf switches below a spine, or below the spines of pods and a core; tapered",
                fat_tree},
      Generator{spec::FabricKind::rail_optimized, "rail_optimized",
                "a leaf switch per adapter of the node (rail) and rack, all below one spine",
                rail_optimized},
      Generator{spec::FabricKind::rail_only, "rail_only",
                "a fat tree of its own per adapter of the node; no way from rail to rail",
                rail_only},
      Generator{spec::FabricKind::dragonfly, "dragonfly",
                "groups of routers, each group joined to every other; minimal routes", dragonfly},
      Generator{spec::FabricKind::dragonfly_plus, "dragonfly_plus",
                "groups of leaf routers below spines, the spines of all groups joined pairwise",
                dragonfly_plus},
      Generator{spec::FabricKind::torus, "torus",
                "a node per point of a grid with wrap-around; dimension-ordered routes", torus},
      Generator{spec::FabricKind::hyperx, "hyperx",
                "a grid of routers, each joined to all others of its row in every dimension",
                hyperx},
      Generator{spec::FabricKind::sites, "sites",
                "places far apart, each a switch or a fat tree, over wide-area links", sites},
      Generator{spec::FabricKind::graph, "graph",
                "switches and cables from a file (GraphML or CSV); shortest routes", graph}};
  return kRows;
}

namespace {

/// Nodes that share an NVLink switch are one node to the network, also where the last are fewer.
BytesPerSecond domain_bisection(spec::Cluster cluster, int nodes) {
  const int shared = std::exchange(cluster.nvlink_domain_nodes, 1);
  cluster.gpus_per_node *= shared;
  cluster.nics_per_node *= shared;
  cluster.nic_affinity.clear();
  cluster.fabric.degraded.clear();
  for (int* count : {&cluster.fabric.nodes_per_rack, &cluster.fabric.nodes_per_router,
                     &cluster.fabric.nodes_per_site})
    *count /= shared;
  return build_fabric(cluster, (nodes + shared - 1) / shared).bisection();
}

Fabric with_domains(Fabric fabric, const spec::Cluster& cluster, int nodes) {
  if (cluster.nvlink_domain_nodes == 1) return fabric;
  Fabric::Parts parts = fabric.parts();
  parts.bisection = [cluster, nodes] { return domain_bisection(cluster, nodes); };
  return Fabric(std::move(parts));
}

}  // namespace

Fabric build_fabric(const spec::Cluster& cluster, int nodes) {
  for (const Generator& generator : generators())
    if (generator.kind == cluster.fabric.kind)
      return degraded(with_domains(generator.build(cluster, nodes), cluster, nodes), cluster);
  throw InternalError("no generator for the kind of fabric");
}

}  // namespace scapesim::topology
