// SPDX-License-Identifier: Apache-2.0
#include "topologies/cut.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>

namespace scapesim::topology {

namespace {

using VertexId = Graph::vertex_descriptor;

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

/// Leaf switches below one switch, and that switch's way up.
struct Pod {
  std::vector<Leaf> leaves;
  BytesPerSecond trunk;  ///< 0 at the root
};

/// The leaf with its NICs and trunk; NICs become nodes later.
Leaf leaf_of(const Fabric::Parts& parts, VertexId v) {
  Leaf leaf;
  for (const auto edge : boost::make_iterator_range(out_edges(v, parts.graph))) {
    const Link& out = parts.links[index(parts.graph[edge].id)];
    (out.kind == LinkKind::trunk ? leaf.trunk : leaf.nodes_capacity) += out.capacity;
    leaf.nodes += out.kind == LinkKind::nic;
  }
  return leaf;
}

/// A single switch is a pod of one leaf without a trunk.
std::vector<Pod> pods_of(const Fabric::Parts& parts, int nodes) {
  const Graph& graph = parts.graph;
  std::map<VertexId, Pod> pods;
  int nics = 0;
  for (const auto v : boost::make_iterator_range(vertices(graph))) {
    if (graph[v].kind != VertexKind::leaf_switch) continue;
    const Leaf leaf = leaf_of(parts, v);
    nics += leaf.nodes;
    const VertexId spine = leaf.trunk.si() > 0 ? target(*out_edges(v, graph).first, graph) : v;
    Pod& pod = pods[spine];
    pod.leaves.push_back(leaf);
    const Link& up = parts.links[index(graph[*out_edges(spine, graph).first].id)];
    if (up.kind == LinkKind::pod) pod.trunk = up.capacity;
  }
  std::vector<Pod> list;
  for (auto& [spine, pod] : pods) {
    for (Leaf& leaf : pod.leaves) {
      leaf.nodes /= nics / nodes;
      leaf.node_capacity = leaf.nodes_capacity / leaf.nodes;
    }
    list.push_back(std::move(pod));
  }
  return list;
}

/// A leaf by its pod and its place there.
struct Place {
  std::size_t pod = 0;
  std::size_t leaf = 0;
};

/// [M28] The first half of the nodes in this order of leaves against the rest, every switch on its
/// better side.
BytesPerSecond cut_along(const std::vector<Pod>& pods, const std::vector<Place>& order, int half) {
  std::vector<std::array<BytesPerSecond, 2>> pod_cut(pods.size());  // by the side of its switch
  for (const Place& place : order) {
    const Leaf& leaf = pods[place.pod].leaves[place.leaf];
    const int inside = std::min(half, leaf.nodes);
    half -= inside;
    for (const bool in_a : {false, true}) pod_cut[place.pod][in_a] += leaf_cut(leaf, inside, in_a);
  }
  std::array<BytesPerSecond, 2> whole;  // by the side of the root
  for (std::size_t i = 0; i < pods.size(); ++i)
    for (const bool in_a : {false, true})
      whole[in_a] += std::min(pod_cut[i][in_a], pod_cut[i][!in_a] + pods[i].trunk);
  return std::min(whole[false], whole[true]);
}

/// The list with its last item moved to place `at`.
template <class T>
std::vector<T> last_moved_to(std::vector<T> list, std::size_t at) {
  std::rotate(list.begin() + static_cast<std::ptrdiff_t>(at), list.end() - 1, list.end());
  return list;
}

/// Pods and in them leaves in order, but for the last pod and the last leaf, which may be smaller:
/// they come first, last, or after the last whole ones that fit into the half.
std::vector<std::vector<Place>> leaf_orders(const std::vector<Pod>& pods, int half) {
  const auto whole = [&](auto nodes_of, std::size_t count) {
    int left = half;
    std::size_t fit = 0;
    while (fit + 1 < count && nodes_of(fit) <= left) left -= nodes_of(fit++);
    return fit;
  };
  const auto nodes_of_pod = [&](std::size_t pod) {
    int nodes = 0;
    for (const Leaf& leaf : pods[pod].leaves) nodes += leaf.nodes;
    return nodes;
  };
  std::vector<std::size_t> all(pods.size());
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::vector<Place>> list;
  for (const std::size_t at : {std::size_t{0}, whole(nodes_of_pod, all.size()), all.size() - 1}) {
    std::vector<Place> order;
    for (const std::size_t pod : last_moved_to(all, at))
      for (std::size_t leaf = 0; leaf < pods[pod].leaves.size(); ++leaf)
        order.push_back({pod, leaf});
    list.push_back(order);
    const auto last = std::ranges::find_if(order, [&](const Place& place) {
      return place.pod + 1 == pods.size() && place.leaf + 1 == pods.back().leaves.size();
    });
    std::rotate(last, last + 1, order.end());  // to the end
    const auto nodes_of_leaf = [&](std::size_t i) {
      return pods[order[i].pod].leaves[order[i].leaf].nodes;
    };
    list.push_back(last_moved_to(order, 0));
    list.push_back(last_moved_to(order, whole(nodes_of_leaf, order.size())));
    list.push_back(order);
  }
  return list;
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
  const std::vector<Pod> pods = pods_of(parts, nodes);
  const int half = nodes / 2;
  BytesPerSecond smallest(std::numeric_limits<double>::infinity());
  // A leaf's cut is concave in the nodes inside, so all leaves but one are whole in an optimum.
  for (const std::vector<Place>& order : leaf_orders(pods, half))
    smallest = std::min(smallest, cut_along(pods, order, half));
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
