// SPDX-License-Identifier: Apache-2.0
// What one call of a collective puts on links when each node is full and nothing else runs: the
// closed form that phases on a fabric must equal, and what fits of timed collectives rest on.
#pragma once

#include <optional>

#include "sim/cost/network_terms.hpp"

namespace scapesim::cost {

/// Per byte of the call's size (as nccl-tests counts it), on the busiest link of each kind and the
/// busier direction. Reading and writing a link overlap, and so do the two kinds of links.
struct Traffic {
  double node_link = 0;      ///< a GPU's link to the others of its node
  double nic = 0;            ///< a NIC
  double node_steps = 0;     ///< latencies inside a node that follow one another
  double network_steps = 0;  ///< latencies between nodes that follow one another
};

/// [M120] None where the algorithm does not run the kind on that layout. Every node holds
/// ranks / nodes of the ranks; a NIC serves whole GPUs.
std::optional<Traffic> traffic_of(graph::Algorithm algorithm, graph::CollectiveKind kind,
                                  const Layout& layout);

/// [M121] What a rank passes on at a time, on which efficiency depends: a share of the size where
/// ranks pass shares around, the size itself where it streams through a tree or a switch.
Bytes piece_of(graph::Algorithm algorithm, Bytes size, const Layout& layout);

/// Line rates of one direction.
struct LineRates {
  BytesPerSecond node_link;  ///< per GPU
  BytesPerSecond nic;        ///< per NIC
};

/// [M122] Time of a call alone: its latencies, then its bytes over the busiest kind of link.
Seconds time_alone(const Traffic& traffic, const NetworkTerms& terms, Bytes size,
                   const LineRates& rates);

}  // namespace scapesim::cost
