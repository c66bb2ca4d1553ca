// SPDX-License-Identifier: Apache-2.0
// Closed forms of collectives on a flat network, each rank with one link of its own: no contention,
// no hierarchy. What the simulated collectives are held against, and a fast path for ranking plans.
#pragma once

#include "sim/base/units.hpp"

namespace scapesim::cost {

/// A ring's cost on equal links.
struct RingTerms {
  int ranks = 1;
  Seconds hop_latency;  ///< once per step
  BytesPerSecond link;  ///< per rank and direction
};

/// [M20] Ring all-reduce of `size` bytes per rank: 2(n-1) steps, each moving size/n.
/// Patarasuk and Yuan 2009: a reduce-scatter and an all-gather, both as rings.
constexpr Seconds ring_all_reduce(Bytes size, const RingTerms& ring) {
  const int steps = 2 * (ring.ranks - 1);
  const Bytes chunk = size / ring.ranks;
  return steps * (ring.hop_latency + chunk / ring.link);
}

/// [M21] Ring all-gather to `size` bytes per rank, and ring reduce-scatter of `size` bytes per
/// rank: n-1 steps, each moving size/n. Thakur, Rabenseifner, Gropp 2005.
constexpr Seconds ring_all_gather(Bytes size, const RingTerms& ring) {
  const int steps = ring.ranks - 1;
  const Bytes chunk = size / ring.ranks;
  return steps * (ring.hop_latency + chunk / ring.link);
}
constexpr Seconds ring_reduce_scatter(Bytes size, const RingTerms& ring) {
  return ring_all_gather(size, ring);
}

/// [M25] Broadcast through a ring in pieces so small that the pipeline's fill costs latency only:
/// the message once over a link, and n-1 hops. A lower bound.
constexpr Seconds ring_broadcast(Bytes size, const RingTerms& ring) {
  if (ring.ranks == 1) return Seconds(0);
  return (ring.ranks - 1) * ring.hop_latency + size / ring.link;
}

}  // namespace scapesim::cost
