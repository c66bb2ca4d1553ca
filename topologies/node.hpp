// SPDX-License-Identifier: Apache-2.0
// The inside of a node: GPUs, NICs and what joins them.
#pragma once

#include <functional>

#include "topologies/build.hpp"

namespace scapesim::topology {

/// The parts of one node: NICs, then GPUs, then what joins them. Cables are in the order of their
/// links; those of the NICs to the network come first and are not among them.
struct NodeShape {
  struct Cable {
    std::uint32_t lower = 0;
    std::uint32_t upper = 0;
    Link link;
  };
  std::uint32_t nics = 0;
  std::uint32_t gpus = 0;
  std::vector<VertexKind> others;
  std::vector<Cable> cables;

  std::uint32_t nic(std::uint32_t i) const { return i; }
  std::uint32_t gpu(std::uint32_t i) const { return nics + i; }
  std::uint32_t add(VertexKind kind) {
    others.push_back(kind);
    return nics + gpus + static_cast<std::uint32_t>(others.size() - 1);
  }
  /// The directed link up the new cable, counted from the node's first one; down is the next.
  std::uint32_t join(std::uint32_t lower, std::uint32_t upper, Link link) {
    cables.push_back({lower, upper, link});
    return 2 * (nics + static_cast<std::uint32_t>(cables.size() - 1));
  }
};

/// NICs of a node that are built: more NICs than GPUs are as many as GPUs, of their joint capacity.
int built_nics(const spec::Cluster& cluster);

/// Shape and ways of the cluster's nodes.
void describe_node(const spec::Cluster& cluster, Fabric::Parts& parts);

/// Appends one node; `leaf_of` is the switch that each of its NICs hangs below.
void add_node(Fabric::Parts& parts, const spec::Cluster& cluster,
              const std::function<VertexId(int nic)>& leaf_of);

}  // namespace scapesim::topology
