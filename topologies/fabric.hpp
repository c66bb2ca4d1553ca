// SPDX-License-Identifier: Apache-2.0
// The network: GPUs, NICs and switches that form a tree, or routers with a rule of their own;
// directed links with capacity; routes. Parallel cables (the up-links of a leaf, those between two
// groups of a dragonfly) are one link: traffic is taken to be spread evenly over them (adaptive
// routing). With routing = "ecmp" they are links of their own and every flow has one of them.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/id.hpp"
#include "sim/base/units.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::topology {

using LinkId = Id<struct LinkTag>;
using GpuId = Id<struct GpuTag>;

enum class VertexKind : std::uint8_t {
  gpu,
  nic,
  node_switch,
  pcie_switch,
  socket,
  host_memory,
  leaf_switch,
  spine_switch,
  core_switch,
  router
};

struct Vertex {
  VertexKind kind = VertexKind::gpu;
  std::uint32_t ordinal = 0;  ///< within its kind
};

/// lane: GPU to its NIC (PCIe or on package), unlimited here; node: GPU to node switch or GPU to
/// GPU (NVLink); pcie, socket and memory: inside a node without NVLink; nic: NIC to leaf or router;
/// trunk: all up-links of a leaf; pod: all up-links of a pod; local and global: inside a group of a
/// dragonfly and between two; cable: between routers of a torus, a HyperX or a graph; wan: of a
/// site. With ecmp a trunk or pod link is one of several.
enum class LinkKind : std::uint8_t {
  lane,
  node,
  pcie,
  socket,
  memory,
  nic,
  trunk,
  pod,
  local,
  global,
  cable,
  wan
};

/// Belongs to a node's own fabric.
constexpr bool inside_node(LinkKind kind) {
  return kind == LinkKind::node || kind == LinkKind::pcie || kind == LinkKind::socket ||
         kind == LinkKind::memory;
}

/// Belongs to the network behind the adapters.
constexpr bool between_switches(LinkKind kind) {
  return !inside_node(kind) && kind != LinkKind::lane && kind != LinkKind::nic;
}

/// A directed link. A duplex cable is two: up has the even id 2k, down has 2k + 1.
struct Link {
  LinkKind kind = LinkKind::lane;
  BytesPerSecond capacity;
};

/// What arrives from below at one place of the network, and what can go on from there.
struct Level {
  std::string_view name;
  BytesPerSecond down;  ///< all nodes below
  BytesPerSecond up;
  /// Oversubscription: 1 or less never limits what the nodes send.
  double taper() const { return down / up; }
};

/// What an edge of the graph carries: the key into Fabric::link().
struct EdgeLink {
  LinkId id;
};

/// The first out-edge of a NIC and of every switch above it leads up, except at the root and at
/// routers.
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, EdgeLink>;

/// The rule of a fabric whose switches are routers, not a tree. Routers are named by ordinal.
struct Routing {
  /// Appends the links from one router to another; `flow` tells flows of equal ends apart.
  std::function<void(std::uint32_t from, std::uint32_t to, std::uint64_t flow,
                     std::vector<LinkId>& path)>
      append;
  /// Orders of all routers whose first ones are worth cutting off, see bisection().
  std::function<std::vector<std::vector<std::uint32_t>>()> orders;
  /// Whether there is a way; empty: always. Only failed cables break one.
  std::function<bool(std::uint32_t from, std::uint32_t to)> joined = {};
};

/// Ways inside a node, the same in all of them, as directed links counted from the node's first
/// one.
struct NodePaths {
  using Way = std::vector<std::uint32_t>;
  std::vector<std::uint32_t> nic;  ///< of each GPU
  std::vector<Way> to_nic;         ///< from each GPU
  std::vector<std::uint32_t> up;   ///< from each GPU to the node switch; empty without one
  std::vector<Way> between;        ///< GPU to GPU, row by row; empty with a node switch
};

struct NodeShape;

/// A fabric built for a number of nodes. Immutable.
class Fabric {
 public:
  /// What a generator builds.
  struct Parts {
    Graph graph;
    std::vector<Link> links;
    std::vector<Graph::vertex_descriptor> gpu_vertices;
    std::vector<Graph::vertex_descriptor> nic_vertices;
    std::vector<std::uint32_t> first_links;  ///< of every node
    std::shared_ptr<const NodeShape> shape;
    NodePaths node;
    Graph::vertex_descriptor domain_switch = 0;  ///< of the last node
    int gpus_per_node = 1;
    int nics_per_node = 1;
    int domain_nodes = 1;  ///< that share one NVLink switch
    bool mesh = false;     ///< every pair of GPUs of a node has a link of its own
    bool rails = false;    ///< a message enters the network on the rail of its destination
    Seconds latency;
    int nodes_per_site = 0;                     ///< 0: one site
    Seconds wan_latency;                        ///< between sites, on top
    int switch_hops = 0;                        ///< links between switches on the longest route
    std::vector<Level> levels;                  ///< where traffic may narrow on its way up
    std::optional<Routing> routing;             ///< none: up the tree to the nearest common switch
    std::function<BytesPerSecond()> bisection;  ///< empty: by the cuts of cut.hpp
  };
  explicit Fabric(Parts parts) : parts_(std::move(parts)) {}

  const Parts& parts() const { return parts_; }
  const Graph& graph() const { return parts_.graph; }
  int gpus() const { return static_cast<int>(parts_.gpu_vertices.size()); }
  int links() const { return static_cast<int>(parts_.links.size()); }
  const Link& link(LinkId id) const { return parts_.links[index(id)]; }
  Graph::vertex_descriptor vertex(GpuId gpu) const { return parts_.gpu_vertices[index(gpu)]; }
  /// GPUs that NVLink or PCIe joins without the network are a node: one of gpus_per_node
  /// consecutive GPUs, or several such that share an NVLink switch.
  int node_of(GpuId gpu) const {
    return static_cast<int>(gpu.value) / (parts_.gpus_per_node * parts_.domain_nodes);
  }
  /// Ordinal of the NIC through which a GPU leaves its node: local GPU i uses NIC i nics / gpus, or
  /// as the cluster says.
  std::uint32_t nic_of(GpuId gpu) const {
    return machine_of(gpu) * static_cast<std::uint32_t>(parts_.nics_per_node) +
           parts_.node.nic[local(gpu)];
  }
  /// Ordinal of the switch or router behind a GPU's NIC.
  std::uint32_t switch_of(GpuId gpu) const {
    return parts_.graph[up(parts_.nic_vertices[nic_of(gpu)]).to].ordinal;
  }
  /// Appends the links from one GPU to another in order: over the node's own links inside a node,
  /// else from the source's NIC along the fabric's own route to the destination's NIC. On rails a
  /// message first goes to the GPU of its node that has the destination's rail (NCCL's PXN).
  void append_path(GpuId from, GpuId to, std::vector<LinkId>& path) const;
  std::vector<LinkId> path(GpuId from, GpuId to) const;
  /// Latency of a message between two GPUs: the fabric's end-to-end latency between nodes, 0
  /// inside.
  Seconds latency(GpuId from, GpuId to) const;
  /// [M66] Links a message crosses from NIC to NIC on the longest route; 0 within one node.
  int diameter() const {
    return gpus() > parts_.gpus_per_node * parts_.domain_nodes ? parts_.switch_hops + 2 : 0;
  }
  /// Orders of GPUs of one node in which rings use all links between them alike: the given one on
  /// a switch or PCIe; on a mesh of up to five GPUs all ways round, on a larger one those by equal
  /// steps.
  std::vector<std::vector<GpuId>> node_rings(std::span<const GpuId> gpus) const;
  std::span<const Level> levels() const { return parts_.levels; }
  /// Smallest capacity that separates two halves of the nodes (bytes/s, one direction), see
  /// cut.hpp.
  BytesPerSecond bisection() const;

 private:
  struct Step {
    Graph::vertex_descriptor to;
    LinkId up;
  };
  Step up(Graph::vertex_descriptor vertex) const;
  std::uint32_t machine_of(GpuId gpu) const {
    return gpu.value / static_cast<std::uint32_t>(parts_.gpus_per_node);
  }
  std::uint32_t local(GpuId gpu) const {
    return gpu.value % static_cast<std::uint32_t>(parts_.gpus_per_node);
  }
  LinkId node_link(GpuId gpu, std::uint32_t number) const {
    return {parts_.first_links[machine_of(gpu)] + number};
  }
  GpuId on_rail_of(GpuId gpu, GpuId destination) const;
  void append_inside(GpuId from, GpuId to, std::vector<LinkId>& path) const;
  void append_network(GpuId from, GpuId to, std::vector<LinkId>& path) const;

  Parts parts_;
};

/// A kind of fabric: one generator file and one row.
struct Generator {
  spec::FabricKind kind;
  std::string_view name;
  std::string_view help;
  Fabric (*build)(const spec::Cluster&, int nodes);
};
std::span<const Generator> generators();

/// The part of the cluster's fabric that `nodes` packed nodes use. Throws InternalError for a
/// cluster that spec::violations() would refuse.
Fabric build_fabric(const spec::Cluster& cluster, int nodes);

}  // namespace scapesim::topology
