// SPDX-License-Identifier: Apache-2.0
// The network: GPUs, NICs and switches that form a tree, or routers with a rule of their own;
// directed links with capacity; routes. Parallel cables (the up-links of a leaf, those between two
// groups of a dragonfly) are one link: traffic is taken to be spread evenly over them (adaptive
// routing), so collisions of static routes are not modelled.
#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <cstdint>
#include <functional>
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
  leaf_switch,
  spine_switch,
  core_switch,
  router
};

struct Vertex {
  VertexKind kind = VertexKind::gpu;
  std::uint32_t ordinal = 0;  ///< within its kind
};

/// lane: GPU to its NIC (PCIe or on package), unlimited here; node: GPU to node switch (NVLink);
/// nic: NIC to leaf or router; trunk: all up-links of a leaf; pod: all up-links of a pod; local and
/// global: inside a group of a dragonfly and between two; cable: neighbours of a torus.
enum class LinkKind : std::uint8_t { lane, node, nic, trunk, pod, local, global, cable };

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

/// Every vertex's first out-edge leads up, except at the root and at routers.
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, EdgeLink>;

/// The rule of a fabric whose switches are routers, not a tree. Routers are named by ordinal.
struct Routing {
  /// Appends the links from one router to another.
  std::function<void(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& path)> append;
  /// Orders of all routers whose first ones are worth cutting off, see bisection().
  std::function<std::vector<std::vector<std::uint32_t>>()> orders;
};

/// A fabric built for a number of nodes. Immutable.
class Fabric {
 public:
  /// What a generator builds.
  struct Parts {
    Graph graph;
    std::vector<Link> links;
    std::vector<Graph::vertex_descriptor> gpu_vertices;
    int gpus_per_node = 1;
    Seconds latency;
    int switch_hops = 0;             ///< links between switches on the longest route
    std::vector<Level> levels;       ///< where traffic may narrow on its way up
    std::optional<Routing> routing;  ///< none: up the tree to the nearest common switch
  };
  explicit Fabric(Parts parts) : parts_(std::move(parts)) {}

  const Graph& graph() const { return parts_.graph; }
  int gpus() const { return static_cast<int>(parts_.gpu_vertices.size()); }
  int links() const { return static_cast<int>(parts_.links.size()); }
  const Link& link(LinkId id) const { return parts_.links[index(id)]; }
  Graph::vertex_descriptor vertex(GpuId gpu) const { return parts_.gpu_vertices[index(gpu)]; }
  /// GPUs of a node are consecutive; GPU i sits in node i / gpus_per_node.
  int node_of(GpuId gpu) const { return static_cast<int>(gpu.value) / parts_.gpus_per_node; }
  /// Ordinal of the NIC through which a GPU leaves its node: local GPU i uses NIC i nics / gpus.
  std::uint32_t nic_of(GpuId gpu) const;
  /// Appends the links from one GPU to another in order: over the node switch inside a node, else
  /// from the source's NIC along the fabric's own route to the destination's NIC.
  void append_path(GpuId from, GpuId to, std::vector<LinkId>& path) const;
  std::vector<LinkId> path(GpuId from, GpuId to) const;
  /// Latency of a message between two GPUs: the fabric's end-to-end latency between nodes, 0
  /// inside.
  Seconds latency(GpuId from, GpuId to) const;
  /// [M66] Links a message crosses from NIC to NIC on the longest route; 0 within one node.
  int diameter() const { return gpus() > parts_.gpus_per_node ? parts_.switch_hops + 2 : 0; }
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
