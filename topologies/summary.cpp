// SPDX-License-Identifier: Apache-2.0
#include "topologies/summary.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <map>

#include "sim/base/check.hpp"

namespace scapesim::topology {

std::string_view name_of(VertexKind kind) {
  switch (kind) {
    case VertexKind::gpu:
      return "GPU";
    case VertexKind::nic:
      return "NIC";
    case VertexKind::node_switch:
      return "node switch";
    case VertexKind::pcie_switch:
      return "PCIe switch";
    case VertexKind::socket:
      return "socket";
    case VertexKind::host_memory:
      return "host memory";
    case VertexKind::leaf_switch:
      return "leaf switch";
    case VertexKind::spine_switch:
      return "spine switch";
    case VertexKind::core_switch:
      return "core switch";
    case VertexKind::router:
      return "router";
  }
  throw InternalError("kind of vertex without a name");
}

std::string_view name_of(LinkKind kind) {
  switch (kind) {
    case LinkKind::lane:
      return "GPU-NIC lane";
    case LinkKind::node:
      return "node link";
    case LinkKind::pcie:
      return "PCIe link";
    case LinkKind::socket:
      return "socket link";
    case LinkKind::memory:
      return "host memory";
    case LinkKind::nic:
      return "NIC";
    case LinkKind::trunk:
      return "rack trunk";
    case LinkKind::pod:
      return "pod trunk";
    case LinkKind::local:
      return "local link";
    case LinkKind::global:
      return "global link";
    case LinkKind::cable:
      return "cable";
    case LinkKind::wan:
      return "wide-area link";
  }
  throw InternalError("kind of link without a name");
}

std::string name_of(const Vertex& vertex) {
  return fmt::format("{} {}", name_of(vertex.kind), vertex.ordinal);
}

std::vector<VertexCount> vertex_counts(const Fabric& fabric) {
  std::map<VertexKind, int> counts;
  for (const auto vertex : boost::make_iterator_range(vertices(fabric.graph())))
    ++counts[fabric.graph()[vertex].kind];
  std::vector<VertexCount> list;
  for (const auto& [kind, count] : counts) list.push_back({kind, count});
  return list;
}

std::vector<CableCount> cable_counts(const Fabric& fabric) {
  std::map<std::pair<LinkKind, BytesPerSecond>, int> counts;
  for (std::uint32_t up = 0; up < static_cast<std::uint32_t>(fabric.links()); up += 2) {
    const Link& link = fabric.link({up});
    ++counts[{link.kind, link.capacity}];
  }
  std::vector<CableCount> list;
  for (const auto& [key, cables] : counts) list.push_back({key.first, key.second, cables});
  return list;
}

PartsList parts_list(const spec::Cluster& cluster, const Fabric& fabric) {
  PartsList list;
  for (const CableCount& row : cable_counts(fabric)) {
    if (row.kind != LinkKind::nic && !between_switches(row.kind)) continue;
    const double of_one = row.capacity / cluster.nic_bandwidth;
    const double cables = of_one * row.cables;
    const int switch_ends = row.kind == LinkKind::nic ? 1 : 2;
    list.cables += cables;
    list.ports += switch_ends * cables;
  }
  list.nics = fabric.gpus() / cluster.gpus_per_node * cluster.nics_per_node;
  return list;
}

std::vector<Hop> hops(const Fabric& fabric, GpuId from, GpuId to) {
  const Graph& graph = fabric.graph();
  std::vector<Hop> list;
  auto at = fabric.vertex(from);
  for (const LinkId id : fabric.path(from, to)) {
    const auto edges = boost::make_iterator_range(out_edges(at, graph));
    const auto edge = std::ranges::find_if(edges.begin(), edges.end(),
                                           [&](const auto& e) { return graph[e].id == id; });
    SCAPESIM_CHECK(edge != edges.end(), "link {} of a route does not leave vertex {}", id.value,
                   at);
    list.push_back({name_of(graph[at]), name_of(graph[target(*edge, graph)]), fabric.link(id)});
    at = target(*edge, graph);
  }
  return list;
}

}  // namespace scapesim::topology
