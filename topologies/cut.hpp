// SPDX-License-Identifier: Apache-2.0
// Bisections: the smallest capacity, of one direction, that separates two halves of the nodes.
#pragma once

#include "topologies/fabric.hpp"

namespace scapesim::topology {

/// [M28] Of a tree: exact with two levels; with three the smallest cut by whole pods and racks.
BytesPerSecond tree_bisection(const Fabric::Parts& parts, int nodes);

/// [M65] Of routers: the smallest of the cuts along the orders of Routing::orders(), also after
/// exchanges between their halves; never below the true bisection.
BytesPerSecond routed_bisection(const Fabric::Parts& parts, int nodes);

}  // namespace scapesim::topology
