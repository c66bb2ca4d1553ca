// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/lower_bound.hpp"

#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/plan/link_classes.hpp"

namespace scapesim::plan {

namespace {

using cost::Mode;
using graph::Algorithm;
using graph::CollectiveKind;
using topology::LinkKind;

/// Different links, one on each of several paths.
class WayOut {
 public:
  explicit WayOut(const topology::Fabric& fabric) : fabric_(fabric) {}
  /// The first link that counts.
  void add(topology::GpuId from, topology::GpuId to, bool (*counts)(LinkKind)) {
    path_.clear();
    fabric_.append_path(from, to, path_);
    const auto id = std::ranges::find_if(
        path_, [&](topology::LinkId link) { return counts(fabric_.link(link).kind); });
    if (id == path_.end() || std::ranges::find(seen_, *id) != seen_.end()) return;
    seen_.push_back(*id);
    links_.push_back(fabric_.link(*id));
  }
  const std::vector<topology::Link>& links() const { return links_; }
  BytesPerSecond capacity() const {
    BytesPerSecond sum;
    for (const topology::Link& link : links_) sum += link.capacity;
    return sum;
  }

 private:
  const topology::Fabric& fabric_;
  std::vector<topology::LinkId> seen_, path_;
  std::vector<topology::Link> links_;
};

constexpr std::size_t kNodesLookedAt = 64;

/// What one of `units` nodes or ranks sends at least, whoever carries it: a share of the size.
double least_share(const CollectiveCall& call, Algorithm algorithm, int ranks, int units) {
  const double others = (units - 1.0) / units;
  const bool switch_adds = algorithm == Algorithm::sharp || algorithm == Algorithm::nvls;
  switch (call.kind) {
    case CollectiveKind::all_reduce:
      return switch_adds ? 1 : 2 * others;
    case CollectiveKind::reduce_scatter:
      return others;
    case CollectiveKind::all_gather:
      return others / (switch_adds ? units : 1);
    case CollectiveKind::all_to_all:
      return call.peer_shares.empty() ? others * ranks / units : 0;
    case CollectiveKind::broadcast:
    case CollectiveKind::send_recv:
      return 1;
  }
  throw InternalError("kind of collective without a bound");
}

}  // namespace

std::vector<topology::Link> way_out(const Site& site) {
  const Places& places = site.groups.front();
  if (site.nodes == 1) {
    WayOut way(site.fabric);
    for (const topology::GpuId gpu : places.ranks)
      way.add(places.ranks.front(), gpu, [](LinkKind) { return true; });
    return way.links();
  }
  std::vector<topology::Link> widest;
  BytesPerSecond most;
  const std::size_t nodes = places.nodes.size();
  for (std::size_t node = 0; node < nodes; node += nodes / kNodesLookedAt + 1) {
    WayOut way(site.fabric);
    const auto& here = places.nodes[node];
    const auto& there = places.nodes[(node + 1) % nodes];
    for (std::size_t place = 0; place < std::min(here.size(), there.size()); ++place)
      way.add(here[place], there[place], [](LinkKind kind) { return kind == LinkKind::nic; });
    if (way.capacity() <= most) continue;
    most = way.capacity();
    widest = way.links();
  }
  return widest;
}

/// [M151] Neither faster than the fabric, where its latency counts, nor than a node can send what
/// others need of it.
Seconds lower_bound(const Site& site, std::span<const topology::Link> way_out,
                    const CollectiveCall& call, const Mode& mode) {
  const NetworkTerms& terms = mode.terms;
  if (site.in_node == 0) return Seconds(0);
  const Places& places = site.groups.front();
  const bool between = site.nodes > 1;
  Seconds hop;
  if (between && !terms.hop_latency)
    hop = site.fabric.latency(places.ranks.front(), places.ranks.back());
  BytesPerSecond capacity;
  for (const topology::Link& link : way_out) capacity += usable(link.kind, link.capacity, terms);
  const int units = between ? site.nodes : site.ranks;
  Seconds bytes;
  if (capacity.si() > 0)
    bytes = least_share(call, mode.algorithm, site.ranks, units) * call.size / capacity;
  return std::max(hop, bytes);
}

}  // namespace scapesim::plan
