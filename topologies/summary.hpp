// SPDX-License-Identifier: Apache-2.0
// A fabric in numbers, and in words: what it holds, and the names of its parts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topologies/fabric.hpp"

namespace scapesim::topology {

std::string_view name_of(VertexKind kind);  ///< "leaf switch"
std::string_view name_of(LinkKind kind);    ///< "trunk"

/// Duplex cables of one kind and capacity.
struct CableCount {
  LinkKind kind = LinkKind::lane;
  BytesPerSecond capacity;  ///< of one, per direction; infinite for a lane
  int cables = 0;
};

struct VertexCount {
  VertexKind kind = VertexKind::gpu;
  int count = 0;
};

/// In the order of kinds; what does not occur is left out.
std::vector<VertexCount> vertex_counts(const Fabric& fabric);
std::vector<CableCount> cable_counts(const Fabric& fabric);

/// [M192] What a network is made of at the rate of its adapters, for a price list.
struct PartsList {
  int nics = 0;
  double cables = 0;  ///< from adapters and between switches
  double ports = 0;   ///< of switches
};
PartsList parts_list(const spec::Cluster& cluster, const Fabric& fabric);

/// One link of a route, with the names of its ends: "NIC 3", "leaf switch 0".
struct Hop {
  std::string from;
  std::string to;
  Link link;
};
std::vector<Hop> hops(const Fabric& fabric, GpuId from, GpuId to);

/// "GPU 12"
std::string name_of(const Vertex& vertex);

}  // namespace scapesim::topology
