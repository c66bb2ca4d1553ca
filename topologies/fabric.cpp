// SPDX-License-Identifier: Apache-2.0
// Routes and cuts of a tree of switches.
#include "topologies/fabric.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/check.hpp"

namespace scapesim::topology {

namespace {

LinkId reverse(LinkId link) { return {link.value ^ 1u}; }

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

}  // namespace

Fabric::Step Fabric::up(Graph::vertex_descriptor from) const {
  const auto edge = *out_edges(from, parts_.graph).first;
  return {target(edge, parts_.graph), parts_.graph[edge].id};
}

std::uint32_t Fabric::nic_of(GpuId gpu) const { return parts_.graph[up(vertex(gpu)).to].ordinal; }

void Fabric::append_path(GpuId from, GpuId to, std::vector<LinkId>& path) const {
  if (from == to) return;
  if (node_of(from) == node_of(to)) {
    const auto second = [&](GpuId gpu) {
      return parts_.graph[*std::next(out_edges(vertex(gpu), parts_.graph).first)].id;
    };
    path.push_back(second(from));
    path.push_back(reverse(second(to)));
    return;
  }
  const std::size_t first_down = path.size();
  Graph::vertex_descriptor source = vertex(from);
  Graph::vertex_descriptor destination = vertex(to);
  std::size_t ups = 0;
  while (source != destination) {
    const Step source_step = up(source);
    const Step destination_step = up(destination);
    path.insert(path.begin() + static_cast<std::ptrdiff_t>(first_down + ups++), source_step.up);
    path.insert(path.begin() + static_cast<std::ptrdiff_t>(first_down + ups),
                reverse(destination_step.up));
    source = source_step.to;
    destination = destination_step.to;
  }
}

std::vector<LinkId> Fabric::path(GpuId from, GpuId to) const {
  std::vector<LinkId> links;
  append_path(from, to, links);
  return links;
}

Seconds Fabric::latency(GpuId from, GpuId to) const {
  return node_of(from) == node_of(to) ? Seconds(0) : parts_.latency;
}

BytesPerSecond Fabric::bisection() const {
  const int nodes = gpus() / parts_.gpus_per_node;
  const std::vector<Leaf> leaves = leaves_of(parts_, nodes);
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

}  // namespace scapesim::topology
