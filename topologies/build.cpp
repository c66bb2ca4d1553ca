// SPDX-License-Identifier: Apache-2.0
#include "topologies/build.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "sim/base/check.hpp"

namespace scapesim::topology {

Fabric::Parts empty_parts(const spec::Cluster& cluster, int nodes) {
  SCAPESIM_CHECK(nodes > 0 && cluster.gpus_per_node > 0 && cluster.nics_per_node > 0,
                 "{} nodes of {} GPUs, {} NICs", nodes, cluster.gpus_per_node,
                 cluster.nics_per_node);
  SCAPESIM_CHECK(cluster.nic_bandwidth.si() > 0, "NIC {} B/s", cluster.nic_bandwidth.si());
  SCAPESIM_CHECK(cluster.gpus_per_node == 1 || cluster.node_link_bandwidth.si() > 0,
                 "{} GPUs per node without a link between them", cluster.gpus_per_node);
  Fabric::Parts parts;
  parts.gpus_per_node = cluster.gpus_per_node;
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

void add_node(Fabric::Parts& parts, const spec::Cluster& cluster, VertexId leaf) {
  const int gpus = cluster.gpus_per_node;
  const int nics = std::min(cluster.nics_per_node, gpus);
  const BytesPerSecond nic_capacity = cluster.nic_bandwidth * cluster.nics_per_node / nics;
  const Link lane{LinkKind::lane, BytesPerSecond(std::numeric_limits<double>::infinity())};
  const auto node = static_cast<std::uint32_t>(parts.gpu_vertices.size()) / gpus;

  const std::uint32_t first_nic = node * nics;
  std::vector<VertexId> nic_vertices;
  for (int nic = 0; nic < nics; ++nic) {
    nic_vertices.push_back(new_vertex(parts, {VertexKind::nic, first_nic + nic}));
    connect(parts, nic_vertices.back(), leaf, {LinkKind::nic, nic_capacity});
  }
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const auto ordinal = static_cast<std::uint32_t>(parts.gpu_vertices.size());
    parts.gpu_vertices.push_back(new_vertex(parts, {VertexKind::gpu, ordinal}));
    connect(parts, parts.gpu_vertices.back(), nic_vertices[gpu * nics / gpus], lane);
  }
  if (gpus == 1) return;
  const VertexId node_switch = new_vertex(parts, {VertexKind::node_switch, node});
  for (int gpu = 0; gpu < gpus; ++gpu)
    connect(parts, parts.gpu_vertices[node * gpus + gpu], node_switch,
            {LinkKind::node, cluster.node_link_bandwidth});
}

std::span<const Generator> generators() {
  static constexpr std::array kRows{
      Generator{spec::FabricKind::switch_, "switch", "one non-blocking switch joins all nodes",
                single_switch},
      Generator{spec::FabricKind::fat_tree, "fat_tree",
                "leaf switches below a spine, or below the spines of pods and a core; tapered",
                fat_tree},
      Generator{spec::FabricKind::dragonfly, "dragonfly",
                "groups of routers, each group joined to every other; minimal routes", dragonfly},
      Generator{spec::FabricKind::torus, "torus",
                "a node per point of a grid with wrap-around; dimension-ordered routes", torus}};
  return kRows;
}

Fabric build_fabric(const spec::Cluster& cluster, int nodes) {
  for (const Generator& generator : generators())
    if (generator.kind == cluster.fabric.kind) return generator.build(cluster, nodes);
  throw InternalError("no generator for the kind of fabric");
}

}  // namespace scapesim::topology
