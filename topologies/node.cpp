// SPDX-License-Identifier: Apache-2.0
#include "topologies/node.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "sim/base/check.hpp"

namespace scapesim::topology {

namespace {

using Shape = NodeShape;

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

/// A shape with its ways.
struct Built {
  Shape shape;
  NodePaths paths;
};

std::uint32_t even_share(std::uint32_t gpu, std::uint32_t nics, std::uint32_t gpus) {
  return gpu * nics / gpus;
}

Built empty_node(const spec::Cluster& cluster) {
  Built node;
  node.shape.nics = static_cast<std::uint32_t>(built_nics(cluster));
  node.shape.gpus = static_cast<std::uint32_t>(cluster.gpus_per_node);
  for (std::uint32_t gpu = 0; gpu < node.shape.gpus; ++gpu)
    node.paths.nic.push_back(cluster.nic_affinity.empty()
                                 ? even_share(gpu, node.shape.nics, node.shape.gpus)
                                 : static_cast<std::uint32_t>(cluster.nic_affinity[gpu]));
  return node;
}

/// GPUs reach their NICs by lanes of their own, and each other by NVLink.
Built nvlink_node(const spec::Cluster& cluster) {
  const Link lane{LinkKind::lane, BytesPerSecond(std::numeric_limits<double>::infinity())};
  Built node = empty_node(cluster);
  Shape& shape = node.shape;
  NodePaths& paths = node.paths;
  for (std::uint32_t gpu = 0; gpu < shape.gpus; ++gpu)
    paths.to_nic.push_back({shape.join(shape.gpu(gpu), shape.nic(paths.nic[gpu]), lane)});
  if (cluster.node_fabric == spec::NodeFabric::switch_) {
    if (shape.gpus == 1 && cluster.nvlink_domain_nodes == 1) return node;
    const std::uint32_t node_switch = shape.add(VertexKind::node_switch);
    for (std::uint32_t gpu = 0; gpu < shape.gpus; ++gpu)
      paths.up.push_back(
          shape.join(shape.gpu(gpu), node_switch, {LinkKind::node, cluster.node_link_bandwidth}));
    return node;
  }
  paths.between.resize(std::size_t{shape.gpus} * shape.gpus);
  for (std::uint32_t low = 0; low < shape.gpus; ++low)
    for (std::uint32_t high = low + 1; high < shape.gpus; ++high) {
      const Link pair{LinkKind::node, cluster.node_link_bandwidth / (cluster.gpus_per_node - 1)};
      const std::uint32_t up = shape.join(shape.gpu(low), shape.gpu(high), pair);
      paths.between[low * shape.gpus + high] = {up};
      paths.between[high * shape.gpus + low] = {up + 1};
    }
  return node;
}

/// Where every part of a PCIe tree hangs, by its number in the shape.
class PcieTree {
 public:
  PcieTree(const spec::Cluster& cluster, Shape& shape) : parents_(shape.nics + shape.gpus) {
    std::vector<spec::PcieBranch> branches = cluster.pcie_tree;
    if (branches.empty()) branches.push_back(one_socket(shape));
    std::map<std::string, std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < shape.nics; ++i)
      numbers["NIC " + std::to_string(i)] = shape.nic(i);
    for (std::uint32_t i = 0; i < shape.gpus; ++i)
      numbers["GPU " + std::to_string(i)] = shape.gpu(i);
    const auto number = [&](const std::string& name) {
      const auto [entry, is_new] = numbers.try_emplace(name, kNone);
      if (is_new) {
        const bool socket = name.starts_with("socket");
        entry->second = shape.add(socket ? VertexKind::socket : VertexKind::pcie_switch);
        parents_.push_back({});
        if (socket) sockets_[entry->second] = {};
      }
      return entry->second;
    };
    for (const spec::PcieBranch& branch : branches)
      for (const std::string& child : branch.children) {
        const std::uint32_t upper = number(branch.parent), lower = number(child);
        parents_[lower] = {upper,
                           shape.join(lower, upper, {LinkKind::pcie, cluster.node_link_bandwidth})};
      }
    join_sockets(cluster, shape);
  }

  /// Up to the nearest common part and down again, or over two sockets; `staged` ways turn in the
  /// memory of the source's socket.
  NodePaths::Way way(std::uint32_t from, std::uint32_t to, bool staged) const {
    std::vector<std::uint32_t> ups = to_root(from), downs = to_root(to);
    NodePaths::Way list;
    const std::uint32_t source = root(from), destination = root(to);
    if (source == destination && !staged)
      while (!ups.empty() && !downs.empty() && ups.back() == downs.back()) {
        ups.pop_back();
        downs.pop_back();
      }
    for (const std::uint32_t part : ups) list.push_back(parents_[part].link);
    if (staged) {
      list.push_back(*sockets_.at(source).memory);
      list.push_back(*sockets_.at(source).memory + 1);
    }
    if (source != destination) list.push_back(sockets_.at(source).to.at(destination));
    for (std::size_t i = downs.size(); i-- > 0;) list.push_back(parents_[downs[i]].link + 1);
    return list;
  }

  std::uint32_t root(std::uint32_t part) const {
    while (parents_[part].upper != kNone) part = parents_[part].upper;
    return part;
  }

 private:
  struct Parent {
    std::uint32_t upper = kNone;
    std::uint32_t link = 0;  ///< up
  };
  struct Socket {
    std::optional<std::uint32_t> memory;        ///< link to it
    std::map<std::uint32_t, std::uint32_t> to;  ///< links to the other sockets
  };

  static spec::PcieBranch one_socket(const Shape& shape) {
    spec::PcieBranch branch{.parent = "socket 0", .children = {}};
    for (std::uint32_t i = 0; i < shape.gpus; ++i)
      branch.children.push_back("GPU " + std::to_string(i));
    for (std::uint32_t i = 0; i < shape.nics; ++i)
      branch.children.push_back("NIC " + std::to_string(i));
    return branch;
  }

  void join_sockets(const spec::Cluster& cluster, Shape& shape) {
    const int count = static_cast<int>(sockets_.size());
    for (auto& [number, socket] : sockets_) {
      for (auto& [other, there] : sockets_)
        if (number < other) {
          socket.to[other] =
              shape.join(number, other, {LinkKind::socket, cluster.socket_bandwidth});
          there.to[number] = socket.to[other] + 1;
        }
      if (cluster.peer_access != spec::PeerAccess::all)
        socket.memory = shape.join(number, shape.add(VertexKind::host_memory),
                                   {LinkKind::memory, cluster.host_memory_bandwidth / (2 * count)});
    }
  }

  /// The parts from one up to, but without, its socket.
  std::vector<std::uint32_t> to_root(std::uint32_t part) const {
    std::vector<std::uint32_t> list;
    for (; parents_[part].upper != kNone; part = parents_[part].upper) list.push_back(part);
    return list;
  }

  std::vector<Parent> parents_;
  std::map<std::uint32_t, Socket> sockets_;
};

/// The nearest NIC of a GPU, and of several the one with the fewest GPUs so far.
std::uint32_t nearest_nic(const PcieTree& tree, const Shape& shape, std::uint32_t gpu,
                          std::vector<int>& taken) {
  std::uint32_t best = 0;
  const auto distance = [&](std::uint32_t nic) {
    return std::pair(tree.way(shape.gpu(gpu), shape.nic(nic), false).size(), taken[nic]);
  };
  for (std::uint32_t nic = 1; nic < shape.nics; ++nic)
    if (distance(nic) < distance(best)) best = nic;
  ++taken[best];
  return best;
}

Built pcie_node(const spec::Cluster& cluster) {
  Built node = empty_node(cluster);
  Shape& shape = node.shape;
  const PcieTree tree(cluster, shape);
  std::vector<int> taken(shape.nics);
  for (std::uint32_t gpu = 0; gpu < shape.gpus; ++gpu) {
    if (cluster.nic_affinity.empty()) node.paths.nic[gpu] = nearest_nic(tree, shape, gpu, taken);
    node.paths.to_nic.push_back(tree.way(shape.gpu(gpu), shape.nic(node.paths.nic[gpu]), false));
  }
  for (std::uint32_t from = 0; from < shape.gpus; ++from)
    for (std::uint32_t to = 0; to < shape.gpus; ++to) {
      const std::uint32_t a = shape.gpu(from), b = shape.gpu(to);
      const bool staged =
          cluster.peer_access == spec::PeerAccess::none ||
          (cluster.peer_access == spec::PeerAccess::socket && tree.root(a) != tree.root(b));
      node.paths.between.push_back(from == to ? NodePaths::Way{} : tree.way(a, b, staged));
    }
  return node;
}

}  // namespace

int built_nics(const spec::Cluster& cluster) {
  return std::min(cluster.nics_per_node, cluster.gpus_per_node);
}

void describe_node(const spec::Cluster& cluster, Fabric::Parts& parts) {
  Built node =
      cluster.node_fabric == spec::NodeFabric::pcie ? pcie_node(cluster) : nvlink_node(cluster);
  parts.shape = std::make_shared<const NodeShape>(std::move(node.shape));
  parts.node = std::move(node.paths);
  parts.gpus_per_node = cluster.gpus_per_node;
  parts.nics_per_node = built_nics(cluster);
  parts.domain_nodes = cluster.nvlink_domain_nodes;
  parts.mesh = cluster.node_fabric == spec::NodeFabric::mesh;
}

void add_node(Fabric::Parts& parts, const spec::Cluster& cluster,
              const std::function<VertexId(int nic)>& leaf_of) {
  const NodeShape& shape = *parts.shape;
  const Link nic{LinkKind::nic,
                 cluster.nic_bandwidth * cluster.nics_per_node / parts.nics_per_node};
  const auto node = static_cast<std::uint32_t>(parts.first_links.size());
  parts.first_links.push_back(static_cast<std::uint32_t>(parts.links.size()));
  std::vector<VertexId> vertices;
  for (std::uint32_t i = 0; i < shape.nics; ++i) {
    vertices.push_back(new_vertex(parts, {VertexKind::nic, node * shape.nics + i}));
    parts.nic_vertices.push_back(vertices.back());
    connect(parts, vertices.back(), leaf_of(static_cast<int>(i)), nic);
  }
  for (std::uint32_t i = 0; i < shape.gpus; ++i) {
    vertices.push_back(new_vertex(parts, {VertexKind::gpu, node * shape.gpus + i}));
    parts.gpu_vertices.push_back(vertices.back());
  }
  std::map<VertexKind, std::uint32_t> count;
  for (const VertexKind kind : shape.others) ++count[kind];
  std::map<VertexKind, std::uint32_t> next;
  for (const VertexKind kind : shape.others) {
    const auto domain = static_cast<std::uint32_t>(parts.domain_nodes);
    if (kind != VertexKind::node_switch) {
      vertices.push_back(new_vertex(parts, {kind, node * count[kind] + next[kind]++}));
    } else {
      if (node % domain == 0) parts.domain_switch = new_vertex(parts, {kind, node / domain});
      vertices.push_back(parts.domain_switch);
    }
  }
  for (const NodeShape::Cable& cable : shape.cables)
    connect(parts, vertices[cable.lower], vertices[cable.upper], cable.link);
}

void add_node(Fabric::Parts& parts, const spec::Cluster& cluster, VertexId leaf) {
  add_node(parts, cluster, [leaf](int) { return leaf; });
}

}  // namespace scapesim::topology
