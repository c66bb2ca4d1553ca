// SPDX-License-Identifier: Apache-2.0
// The network as a graph: GPUs, NICs, switches; directed links with capacity; routes.
#pragma once

#include <boost/graph/adjacency_list.hpp>
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

enum class VertexKind { gpu, node_switch, nic, leaf_switch, spine_switch };

struct Vertex {
  VertexKind kind = VertexKind::gpu;
  int ordinal = 0;  ///< within its kind
};

enum class LinkKind { node, nic, fabric };

/// A directed link; a duplex cable is two.
struct Link {
  LinkId id;
  LinkKind kind = LinkKind::fabric;
  BytesPerSecond capacity;
};

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, Vertex, Link>;

/// A fabric built for a number of nodes. Immutable.
class Fabric {
 public:
  struct Plan;  // how routes are computed, by generator
  Fabric(Graph graph, const spec::Cluster& cluster);

  const Graph& graph() const { return graph_; }
  int gpus() const { return static_cast<int>(gpu_vertex_.size()); }
  int links() const { return static_cast<int>(link_.size()); }
  const Link& link(LinkId id) const { return link_[index(id)]; }
  /// GPUs of a node are consecutive; GPU i sits in node i / gpus_per_node.
  int node_of(GpuId gpu) const;
  /// Links from one GPU to another in order; leaves the source node through the source GPU's NIC
  /// and enters through the destination's. Deterministic; equal-cost choices spread by destination.
  std::vector<LinkId> path(GpuId from, GpuId to) const;
  /// Latency of a message between two GPUs: the fabric's end-to-end latency between nodes, 0
  /// inside.
  Seconds latency(GpuId from, GpuId to) const;
  /// Smallest capacity that separates two halves of the nodes (bytes/s, one direction).
  BytesPerSecond bisection() const;

 private:
  Graph graph_;
  std::vector<Graph::vertex_descriptor> gpu_vertex_;
  std::vector<Link> link_;
  int gpus_per_node_;
  Seconds latency_;
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
