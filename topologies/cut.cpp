// SPDX-License-Identifier: Apache-2.0
#include "topologies/cut.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
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

bool is_trunk(LinkKind kind) {
  return kind == LinkKind::trunk || kind == LinkKind::pod || kind == LinkKind::wan;
}

/// The leaf with its NICs and trunk; NICs become nodes later.
Leaf leaf_of(const Fabric::Parts& parts, VertexId v) {
  Leaf leaf;
  for (const auto edge : boost::make_iterator_range(out_edges(v, parts.graph))) {
    const Link& out = parts.links[index(parts.graph[edge].id)];
    (is_trunk(out.kind) ? leaf.trunk : leaf.nodes_capacity) += out.capacity;
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
    const LinkId up = graph[*out_edges(spine, graph).first].id;
    const bool leads_up = spine != v && up.value % 2 == 0;
    if (leads_up) pod.trunk = parts.links[index(up)].capacity;
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

using Neighbours = std::vector<std::vector<std::pair<std::uint32_t, BytesPerSecond>>>;

Neighbours neighbours_of(const Routers& routers) {
  Neighbours list(routers.nodes.size());
  for (const Routers::Cable& cable : routers.cables) {
    list[cable.from].push_back({cable.to, cable.capacity});
    list[cable.to].push_back({cable.from, cable.capacity});
  }
  return list;
}

/// One pass of exchanges between the places before `divided` and those behind it: the pair that
/// gains most, then the next among the rest, whether it gains or not; the best state on the way
/// stays. Pairs have equal numbers of nodes. False when no state is better than the first.
bool exchange(const Routers& routers, const Neighbours& neighbours,
              std::vector<std::uint32_t>& order, std::size_t divided) {
  const std::size_t count = order.size();
  std::vector<double> side(count, -1);  // by router: 1 before, -1 behind
  for (std::size_t i = 0; i < divided; ++i) side[order[i]] = 1;
  std::vector<BytesPerSecond> gain(count);  // of moving a router across: cut minus uncut cables
  for (const Routers::Cable& cable : routers.cables) {
    const BytesPerSecond change = -side[cable.from] * side[cable.to] * cable.capacity;
    gain[cable.from] += change;
    gain[cable.to] += change;
  }
  std::vector<bool> done(count);  // by place
  done[divided] = true;
  std::vector<BytesPerSecond> joint(count);  // cables to the router that is moved
  std::vector<std::pair<std::size_t, std::size_t>> swaps;
  BytesPerSecond total, best;
  std::size_t keep = 0;
  for (std::size_t step = 0; step < divided; ++step) {
    std::size_t a = count, b = count;
    for (std::size_t i = 0; i < divided; ++i)
      if (!done[i] && (a == count || gain[order[i]] > gain[order[a]])) a = i;
    for (const auto& [other, capacity] : neighbours[order[a]]) joint[other] += capacity;
    const auto value = [&](std::size_t place) {
      return gain[order[place]] - 2 * joint[order[place]];
    };
    for (std::size_t i = divided + 1; i < count; ++i)
      if (!done[i] && routers.nodes[order[i]] == routers.nodes[order[a]] &&
          (b == count || value(i) > value(b)))
        b = i;
    done[a] = true;
    if (b != count) {
      done[b] = true;
      total += gain[order[a]] + value(b);
      swaps.emplace_back(a, b);
      if (total > best * (1 + 1e-9)) {
        best = total;
        keep = swaps.size();
      }
      for (const std::size_t moved : {a, b})
        for (const auto& [other, capacity] : neighbours[order[moved]])
          gain[other] += 2 * side[order[moved]] * side[other] * capacity;
    }
    for (const auto& [other, capacity] : neighbours[order[a]]) joint[other] = BytesPerSecond(0);
  }
  for (std::size_t i = 0; i < keep; ++i) std::swap(order[swaps[i].first], order[swaps[i].second]);
  return keep > 0;
}

/// [M65] The order after exchanges of routers between its two halves, as long as the cut narrows
/// (Kernighan, Lin 1970); large fabrics stay as they are.
std::vector<std::uint32_t> improved(const Routers& routers, std::vector<std::uint32_t> order,
                                    int half) {
  constexpr std::size_t kMostRouters = 4096;
  constexpr int kMostPasses = 10;
  if (order.size() > kMostRouters) return order;
  std::size_t divided = 0;
  for (int left = half; routers.nodes[order[divided]] <= left; ++divided)
    left -= routers.nodes[order[divided]];
  const Neighbours neighbours = neighbours_of(routers);
  for (int pass = 0; pass < kMostPasses; ++pass)
    if (!exchange(routers, neighbours, order, divided)) break;
  return order;
}

/// [M65] The smallest cut with the first routers of an order on one side, however many: their
/// cables to the rest, and the adapters of the nodes that either side has above its half.
BytesPerSecond cut_along(const Routers& routers, const std::vector<std::uint32_t>& order,
                         int nodes) {
  const int half = nodes / 2;
  std::vector<std::size_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<BytesPerSecond> opened(order.size() + 1);  // cables less those closed, by place
  for (const Routers::Cable& cable : routers.cables) {
    const auto [first, last] = std::minmax({place[cable.from], place[cable.to]});
    opened[first] += cable.capacity;
    opened[last] -= cable.capacity;
  }
  BytesPerSecond cables, smallest = half * routers.node_capacity;
  int inside = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    inside += routers.nodes[order[i]];
    cables += opened[i];
    const int away = std::min(std::abs(inside - half), std::abs(inside - (nodes - half)));
    smallest = std::min(smallest, cables + away * routers.node_capacity);
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
  BytesPerSecond smallest(std::numeric_limits<double>::infinity());
  for (const std::vector<std::uint32_t>& order : parts.routing->orders())
    smallest = std::min({smallest, cut_along(routers, order, nodes),
                         cut_along(routers, improved(routers, order, nodes / 2), nodes)});
  return smallest;
}

}  // namespace scapesim::topology
