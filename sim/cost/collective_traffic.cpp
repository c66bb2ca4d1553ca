// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/collective_traffic.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"

namespace scapesim::cost {

namespace {

using graph::Algorithm;
using graph::CollectiveKind;

/// A layout in the numbers that the formulas use.
struct Shape {
  double n;  ///< ranks
  double nodes;
  double local;  ///< ranks of a node
  double nics;   ///< of a node, that these ranks use
  bool inside() const { return nodes == 1; }
  int levels_between() const { return static_cast<int>(std::ceil(std::log2(nodes))); }
};

bool reduces_and_spreads(CollectiveKind kind) { return kind == CollectiveKind::all_reduce; }
bool one_way(CollectiveKind kind) {
  return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather;
}

/// One ring inside a node, else one per NIC. A ring leaves its node at one GPU, whose node link it
/// then spares; with a ring per GPU every link is spared once.
std::optional<Traffic> ring(CollectiveKind kind, const Shape& s) {
  const double around = s.n - 1;
  Traffic t;
  double steps = around;
  if (reduces_and_spreads(kind)) {
    t.node_link = 2 * around / s.n;
    steps = 2 * around;
  } else if (one_way(kind)) {
    t.node_link = around / s.n;
  } else if (kind == CollectiveKind::broadcast) {
    t.node_link = 1;
  } else {
    return std::nullopt;
  }
  const double hops_between = s.inside() ? 0 : s.nodes / s.n;  // [M26]
  t.nic = s.inside() ? 0 : t.node_link / s.nics;
  if (!s.inside() && s.nics == s.local) t.node_link *= 1 - 1 / s.local;
  t.network_steps = steps * hops_between;
  t.node_steps = steps - t.network_steps;
  return t;
}

/// What a node sends and receives in a double binary tree: with two nodes each is the leaf of one
/// tree and the root of the other; with more, an inner one has two children.
double tree_node_bytes(double nodes) { return nodes == 1 ? 0 : nodes == 2 ? 1 : 2; }

std::optional<Traffic> tree(CollectiveKind kind, const Shape& s) {
  if (!reduces_and_spreads(kind)) return std::nullopt;
  return Traffic{.node_link = 2 * (s.local - 1) / s.local,
                 .nic = tree_node_bytes(s.nodes) / s.nics,
                 .node_steps = 2 * (s.local - 1),
                 .network_steps = 2.0 * s.levels_between()};
}

/// The switch of the node adds and multicasts: a GPU sends all of its data up and gets the sum of
/// its share, then the same the other way.
std::optional<double> nvls_node_link(CollectiveKind kind, double local) {
  if (reduces_and_spreads(kind)) return 1 + 1 / local;
  if (one_way(kind)) return 1;
  return std::nullopt;
}

std::optional<Traffic> nvls(CollectiveKind kind, const Shape& s) {
  const auto load = nvls_node_link(kind, s.local);
  if (!s.inside() || !load) return std::nullopt;
  return Traffic{.node_link = *load, .nic = 0, .node_steps = 2, .network_steps = 0};
}

std::optional<Traffic> nvls_tree(CollectiveKind kind, const Shape& s) {
  if (s.inside() || !reduces_and_spreads(kind)) return std::nullopt;
  return Traffic{.node_link = 1 + 1 / s.local,
                 .nic = tree_node_bytes(s.nodes) / s.nics,
                 .node_steps = 2,
                 .network_steps = 2.0 * s.levels_between()};
}

/// The network's switches add: a node sends its data once and gets the sum once. Inside, shares are
/// scattered and gathered among the node's GPUs.
std::optional<Traffic> sharp(CollectiveKind kind, const Shape& s) {
  if (s.inside() || !reduces_and_spreads(kind)) return std::nullopt;
  return Traffic{.node_link = 2 * (s.local - 1) / s.local,
                 .nic = 1 / s.nics,
                 .node_steps = 2 * (s.local - 1),
                 .network_steps = 2};
}

/// Inside, then between the GPUs of equal place in their nodes, then inside; all as rings.
std::optional<Traffic> hierarchical(CollectiveKind kind, const Shape& s) {
  if (s.inside() || s.local == 1) return std::nullopt;
  if (!reduces_and_spreads(kind) && !one_way(kind)) return std::nullopt;
  const double passes = reduces_and_spreads(kind) ? 2 : 1;
  return Traffic{.node_link = passes * (s.local - 1) / s.local,
                 .nic = passes * (s.nodes - 1) / s.nodes / s.nics,
                 .node_steps = passes * (s.local - 1),
                 .network_steps = passes * (s.nodes - 1)};
}

/// Neighbours first: what is left when partners sit in other nodes is a share of the data.
std::optional<Traffic> halving_doubling(CollectiveKind kind, const Shape& s) {
  const auto power_of_two = [](double x) { return std::exp2(std::round(std::log2(x))) == x; };
  if (!power_of_two(s.local) || !power_of_two(s.nodes)) return std::nullopt;
  if (!reduces_and_spreads(kind) && !one_way(kind)) return std::nullopt;
  const double passes = reduces_and_spreads(kind) ? 2 : 1;
  return Traffic{.node_link = passes * (s.local - 1) / s.local,
                 .nic = passes * (s.nodes - 1) / s.nodes / s.nics,
                 .node_steps = passes * std::log2(s.local),
                 .network_steps = passes * std::log2(s.nodes)};
}

/// Every rank sends a share to every other; a message is all of a send.
std::optional<Traffic> pairwise(CollectiveKind kind, const Shape& s) {
  if (kind == CollectiveKind::send_recv) {
    const double inside = s.inside() ? 1 : 0;
    return Traffic{.node_link = inside,
                   .nic = (1 - inside) * s.local / s.nics,
                   .node_steps = inside,
                   .network_steps = 1 - inside};
  }
  if (kind != CollectiveKind::all_to_all) return std::nullopt;
  return Traffic{.node_link = (s.local - 1) / s.n,
                 .nic = s.local * (s.n - s.local) / s.n / s.nics,
                 .node_steps = s.local - 1,
                 .network_steps = s.n - s.local};
}

/// Parallel aggregated trees, one rank per node.
std::optional<Traffic> pat(CollectiveKind kind, const Shape& s) {
  if (!one_way(kind) || s.inside() || s.local != 1) return std::nullopt;
  return Traffic{.node_link = 0,
                 .nic = (s.n - 1) / s.n,
                 .node_steps = 0,
                 .network_steps = static_cast<double>(s.levels_between())};
}

}  // namespace

// [M120]
std::optional<Traffic> traffic_of(Algorithm algorithm, CollectiveKind kind, const Layout& layout) {
  SCAPESIM_CHECK(layout.ranks >= 2 && layout.nodes >= 1 && layout.nics_per_node >= 1,
                 "{} ranks, {} nodes, {} NICs", layout.ranks, layout.nodes, layout.nics_per_node);
  const double local = static_cast<double>(layout.ranks) / layout.nodes;
  const Shape shape{.n = static_cast<double>(layout.ranks),
                    .nodes = static_cast<double>(layout.nodes),
                    .local = local,
                    .nics = std::min(static_cast<double>(layout.nics_per_node), local)};
  switch (algorithm) {
    case Algorithm::ring:
      return ring(kind, shape);
    case Algorithm::tree:
      return tree(kind, shape);
    case Algorithm::nvls:
      return nvls(kind, shape);
    case Algorithm::nvls_tree:
      return nvls_tree(kind, shape);
    case Algorithm::sharp:
      return sharp(kind, shape);
    case Algorithm::hierarchical:
      return hierarchical(kind, shape);
    case Algorithm::halving_doubling:
      return halving_doubling(kind, shape);
    case Algorithm::pairwise:
      return pairwise(kind, shape);
    case Algorithm::pat:
      return pat(kind, shape);
  }
  throw InternalError("unknown algorithm");
}

// [M121]
Bytes piece_of(Algorithm algorithm, Bytes size, const Layout& layout) {
  switch (algorithm) {
    case Algorithm::tree:
    case Algorithm::nvls:
    case Algorithm::nvls_tree:
    case Algorithm::sharp:
      return size;
    default:
      return size / layout.ranks;
  }
}

// [M122]
Seconds time_alone(const Traffic& traffic, const NetworkTerms& terms, Bytes size,
                   const LineRates& rates) {
  const Seconds latency = terms.base_latency + traffic.node_steps * terms.node_hop_latency +
                          traffic.network_steps * terms.hop_latency.value_or(Seconds(0));
  Seconds busiest(0);
  const auto load = [&](double share, BytesPerSecond rate) {
    if (share > 0 && rate.si() > 0) busiest = std::max(busiest, share * size / rate);
  };
  load(traffic.node_link, terms.node_efficiency * rates.node_link);
  load(traffic.nic, terms.efficiency * rates.nic);
  load(traffic.nic, terms.transport_cap);
  return latency + busiest;
}

}  // namespace scapesim::cost
