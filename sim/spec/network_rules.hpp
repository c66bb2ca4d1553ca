// SPDX-License-Identifier: Apache-2.0
// Rules of nodes and of drawn networks, apart from those of the generated fabrics.
#pragma once

#include <vector>

#include "sim/spec/spec.hpp"

namespace scapesim::spec {

/// What joins the GPUs of a node, and their adapters.
void check_node(const Cluster& cluster, std::vector<Violation>& list);
/// ECMP and degraded cables.
void check_routing(const Cluster& cluster, std::vector<Violation>& list);
/// A network given as a graph.
void check_graph(const Cluster& cluster, std::vector<Violation>& list);

}  // namespace scapesim::spec
