// SPDX-License-Identifier: Apache-2.0
// One non-blocking switch: only the NICs limit what crosses it.
#include "topologies/build.hpp"

namespace scapesim::topology {

Fabric single_switch(const spec::Cluster& cluster, int nodes) {
  Fabric::Parts parts = empty_parts(cluster, nodes);
  const VertexId leaf = new_vertex(parts, {VertexKind::leaf_switch, 0});
  for (int node = 0; node < nodes; ++node) add_node(parts, cluster, leaf);
  return Fabric(std::move(parts));
}

}  // namespace scapesim::topology
