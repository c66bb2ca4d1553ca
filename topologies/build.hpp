// SPDX-License-Identifier: Apache-2.0
// What generators share: empty parts, switches, cables and whole nodes.
#pragma once

#include "topologies/fabric.hpp"

namespace scapesim::topology {

using VertexId = Graph::vertex_descriptor;

Fabric::Parts empty_parts(const spec::Cluster& cluster, int nodes);

VertexId new_vertex(Fabric::Parts& parts, Vertex vertex);

/// A duplex cable. Call it for a vertex's way up before any of its ways down.
void connect(Fabric::Parts& parts, VertexId lower, VertexId upper, Link link);

/// Vertices of `count` routers, in order of their ordinals.
std::vector<VertexId> new_routers(Fabric::Parts& parts, std::uint32_t count);

/// NICs of a node together.
BytesPerSecond node_capacity(const spec::Cluster& cluster);

/// Appends one node whose NICs all hang below `leaf`.
void add_node(Fabric::Parts& parts, const spec::Cluster& cluster, VertexId leaf);

/// A tree of switches: how many nodes are below one switch of a level, and its way up.
struct TreeLevel {
  std::int64_t nodes = 0;
  Link trunk;
  std::string_view name;
};

/// Levels from the leaves on, below one root; parallel switches and cables are one.
Fabric::Parts tree_parts(const spec::Cluster& cluster, int nodes,
                         std::span<const TreeLevel> levels);

/// [M190] The same tree with as many parallel switches as a leaf has ports upwards; a hash of its
/// ends gives every flow one way.
Fabric ecmp_tree(const spec::Cluster& cluster, int nodes, std::span<const TreeLevel> levels);

/// By cable so far (half the number of its links) whether it failed; empty when none did.
std::vector<bool> failed_cables(const Fabric::Parts& parts, const spec::Cluster& cluster);

/// The fabric with the capacities that its degraded cables have left.
Fabric degraded(const Fabric& fabric, const spec::Cluster& cluster);

/// [M190] A number that depends on all of its arguments, the same on every machine.
std::uint64_t mixed(std::uint64_t seed, std::uint64_t flow, std::uint64_t place);

Fabric single_switch(const spec::Cluster& cluster, int nodes);
Fabric fat_tree(const spec::Cluster& cluster, int nodes);
Fabric rail_optimized(const spec::Cluster& cluster, int nodes);
Fabric rail_only(const spec::Cluster& cluster, int nodes);
Fabric dragonfly(const spec::Cluster& cluster, int nodes);
Fabric dragonfly_plus(const spec::Cluster& cluster, int nodes);
Fabric torus(const spec::Cluster& cluster, int nodes);
Fabric hyperx(const spec::Cluster& cluster, int nodes);
Fabric sites(const spec::Cluster& cluster, int nodes);
Fabric graph(const spec::Cluster& cluster, int nodes);

}  // namespace scapesim::topology
