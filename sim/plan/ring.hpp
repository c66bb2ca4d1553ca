// SPDX-License-Identifier: Apache-2.0
// Rings of a group: one per NIC of its nodes.
#pragma once

#include "sim/plan/collectives.hpp"

namespace scapesim::plan {

/// The rings of a group: the group itself without several NICs per node, else one per NIC of the
/// node with the fewest in use; ring c leaves every node through that node's NIC c.
std::vector<Group> rings_of(const topology::Fabric& fabric, const Group& group);

/// Steps of a ring, and what crosses each of its links in all of them.
struct RingWork {
  int steps = 0;
  Bytes bytes;
};
RingWork ring_work(graph::CollectiveKind kind, Bytes size, int ranks);

}  // namespace scapesim::plan
