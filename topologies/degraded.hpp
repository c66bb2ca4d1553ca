// SPDX-License-Identifier: Apache-2.0
// Slow and failed cables as a what-if: whether they name cables of the cluster.
#pragma once

#include <vector>

#include "topologies/fabric.hpp"

namespace scapesim::topology {

/// Cables that the whole machine does not have, and parts that nothing joins any more. Of a cluster
/// without other violations.
std::vector<spec::Violation> degraded_violations(const spec::Cluster& cluster);

}  // namespace scapesim::topology
