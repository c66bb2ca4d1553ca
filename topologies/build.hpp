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

/// Appends one node whose NICs hang below `leaf`. With more NICs than GPUs a GPU's NICs are one of
/// their joint capacity.
void add_node(Fabric::Parts& parts, const spec::Cluster& cluster, VertexId leaf);

Fabric single_switch(const spec::Cluster& cluster, int nodes);
Fabric fat_tree(const spec::Cluster& cluster, int nodes);
Fabric dragonfly(const spec::Cluster& cluster, int nodes);
Fabric torus(const spec::Cluster& cluster, int nodes);

}  // namespace scapesim::topology
