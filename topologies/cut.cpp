// SPDX-License-Identifier: Apache-2.0
#include "topologies/cut.hpp"

#include <algorithm>
#include <limits>

namespace scapesim::topology {

namespace {

/// Nodes and up-links of one leaf switch.
struct Leaf {
  int nodes = 0;
  BytesPerSecond nodes_capacity;  ///< all NICs of all nodes
  BytesPerSecond node_capacity;   ///< all NICs of one node
  BytesPerSecond trunk;           ///< 0 at the root
};

/// [M28] Directed cut from the nodes of side A to the rest: `inside` nodes of this leaf are in A,
/// the root of the tree is in A or not, and the leaf's own side is chosen for the smaller cut.
BytesPerSecond leaf_cut(const Leaf& leaf, int inside, bool root_in_a) {
  const BytesPerSecond out = inside * leaf.node_capacity;
  const BytesPerSecond in = (leaf.nodes - inside) * leaf.node_capacity;
  return root_in_a ? std::min(in, out + leaf.trunk) : std::min(out, in + leaf.trunk);
}

std::vector<Leaf> leaves_of(const Fabric::Parts& parts, int nodes) {
  const Graph& graph = parts.graph;
  std::vector<Leaf> leaves;
  int nics = 0;
  for (const auto v : boost::make_iterator_range(vertices(graph))) {
    nics += graph[v].kind == VertexKind::nic;
    if (graph[v].kind != VertexKind::leaf_switch) continue;
    Leaf& leaf = leaves.emplace_back();
    for (const auto edge : boost::make_iterator_range(out_edges(v, graph))) {
      const Link& out = parts.links[index(graph[edge].id)];
      (out.kind == LinkKind::trunk ? leaf.trunk : leaf.nodes_capacity) += out.capacity;
      leaf.nodes += out.kind == LinkKind::nic;  // counts NICs until the total is known
    }
  }
  const int nics_per_node = nics / nodes;
  for (Leaf& leaf : leaves) {
    leaf.nodes /= nics_per_node;
    leaf.node_capacity = leaf.nodes_capacity / leaf.nodes;
  }
  return leaves;
}

/// What stands at each router and between routers.
struct Routers {
  std::vector<int> nodes;        ///< by ordinal
  BytesPerSecond node_capacity;  ///< all NICs of one node
  struct Cable {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    BytesPerSecond capacity;
  };
  std::vector<Cable> cables;
};

Routers routers_of(const Fabric::Parts& parts, int nodes) {
  const Graph& graph = parts.graph;
  Routers routers;
  for (const auto v : boost::make_iterator_range(vertices(graph)))
    if (graph[v].kind == VertexKind::router) routers.nodes.push_back(0);
  int nics = 0;
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const LinkId id = graph[edge].id;
    if (id.value % 2 != 0) continue;  // the way back
    const Vertex& from = graph[source(edge, graph)];
    const Vertex& to = graph[target(edge, graph)];
    if (to.kind != VertexKind::router) continue;
    const BytesPerSecond capacity = parts.links[index(id)].capacity;
    if (from.kind == VertexKind::router) {
      routers.cables.push_back({from.ordinal, to.ordinal, capacity});
    } else {
      ++routers.nodes[to.ordinal];  // counts NICs until the total is known
      ++nics;
      routers.node_capacity += capacity;  // of all nodes until then
    }
  }
  for (int& count : routers.nodes) count /= nics / nodes;
  routers.node_capacity /= nodes;
  return routers;
}

/// [M65] The first half of the nodes in this order of routers against the rest; the router that
/// holds nodes of both goes to the better side.
BytesPerSecond cut_along(const Routers& routers, const std::vector<std::uint32_t>& order,
                         int half) {
  std::vector<bool> in_a(order.size());
  int left = half;
  auto divided = order.begin();
  for (; routers.nodes[*divided] <= left; ++divided) {
    in_a[*divided] = true;
    left -= routers.nodes[*divided];
  }
  BytesPerSecond smallest(std::numeric_limits<double>::infinity());
  for (const bool divided_in_a : {false, true}) {
    in_a[*divided] = divided_in_a;
    const int away = divided_in_a ? routers.nodes[*divided] - left : left;
    BytesPerSecond cut = away * routers.node_capacity;
    for (const Routers::Cable& cable : routers.cables)
      if (in_a[cable.from] != in_a[cable.to]) cut += cable.capacity;
    smallest = std::min(smallest, cut);
  }
  return smallest;
}

}  // namespace

BytesPerSecond tree_bisection(const Fabric::Parts& parts, int nodes) {
  const std::vector<Leaf> leaves = leaves_of(parts, nodes);
  const int half = nodes / 2;
  const Leaf& last = leaves.back();  // the only one that may be smaller
  const int rest = half % leaves.front().nodes;
  BytesPerSecond smallest(std::numeric_limits<double>::infinity());
  // A leaf's cut is concave in the nodes inside, so all leaves but one are whole in an optimum.
  for (const int in_last : {0, rest, std::min(half, last.nodes)}) {
    if (in_last > last.nodes || (leaves.size() == 1 && in_last != half)) continue;
    for (const bool root_in_a : {false, true}) {
      BytesPerSecond cut = leaf_cut(last, in_last, root_in_a);
      int left = half - in_last;
      for (std::size_t i = 0; i + 1 < leaves.size(); ++i) {
        const int inside = std::min(left, leaves[i].nodes);
        cut += leaf_cut(leaves[i], inside, root_in_a);
        left -= inside;
      }
      if (left == 0) smallest = std::min(smallest, cut);
    }
  }
  return smallest;
}

BytesPerSecond routed_bisection(const Fabric::Parts& parts, int nodes) {
  const Routers routers = routers_of(parts, nodes);
  const int half = nodes / 2;
  BytesPerSecond smallest = half * routers.node_capacity;  // all routers on one side
  for (const std::vector<std::uint32_t>& order : parts.routing->orders())
    smallest = std::min(smallest, cut_along(routers, order, half));
  return smallest;
}

}  // namespace scapesim::topology
