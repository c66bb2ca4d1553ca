// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/network_terms.hpp"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "sim/cost/collective_traffic.hpp"

namespace scapesim::cost {

using graph::Algorithm;
using graph::CollectiveKind;
using graph::Protocol;

namespace {

/// The algorithm of a call where a profile names none.
Algorithm plain_algorithm(CollectiveKind kind) {
  const bool exchange = kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_recv;
  return exchange ? Algorithm::pairwise : Algorithm::ring;
}

/// Terms of a profile that names no algorithms: two regimes, a regime's number else the bulk one.
NetworkTerms plain_terms(const Profile& profile, Bytes size) {
  NetworkTerms terms;
  const bool small =
      profile.has("network.small_below_B") && size < Bytes(profile.number("network.small_below_B"));
  const auto key = [&](std::string_view small_key, std::string_view bulk_key) {
    return small && profile.has(small_key) ? small_key : bulk_key;
  };
  terms.efficiency = profile.number(key("network.small_efficiency", "network.efficiency"));
  if (profile.has("network.transport_cap_Bps"))
    terms.transport_cap = BytesPerSecond(profile.number("network.transport_cap_Bps"));
  const auto latency = key("network.small_hop_latency_s", "network.hop_latency_s");
  if (profile.has(latency)) terms.hop_latency = Seconds(profile.number(latency));
  if (profile.has("network.node_efficiency"))
    terms.node_efficiency = profile.number("network.node_efficiency");
  if (profile.has("network.node_hop_latency_s"))
    terms.node_hop_latency = Seconds(profile.number("network.node_hop_latency_s"));
  if (profile.has("network.base_latency_s"))
    terms.base_latency = Seconds(profile.number("network.base_latency_s"));
  return terms;
}

/// Whether the profile knows any mode of this scope; most plain profiles know none.
bool names_modes(const Profile& profile, std::string_view prefix) {
  const auto first = profile.curves.lower_bound(prefix);
  return first != profile.curves.end() && first->first.starts_with(prefix);
}

bool uses_nvls(Algorithm algorithm) {
  return algorithm == Algorithm::nvls || algorithm == Algorithm::nvls_tree;
}

/// The terms of one mode, none where the profile does not know it.
std::optional<Mode> mode_of(const Profile& profile, Algorithm algorithm, Protocol protocol,
                            Bytes size, const Layout& layout) {
  const Scope scope = layout.nodes == 1 ? Scope::inside : Scope::between;
  const auto key = [&](std::string_view what) {
    return mode_key(scope, algorithm, protocol, what);
  };
  const auto efficiency = profile.curves.find(key("efficiency"));
  if (efficiency == profile.curves.end()) return std::nullopt;
  const Bytes piece = piece_of(algorithm, size, layout);
  Mode mode{.algorithm = algorithm, .protocol = protocol, .terms = plain_terms(profile, size)};
  NetworkTerms& terms = mode.terms;
  // A draw for an interval may move a curve above the line rate.
  const auto share = [&](const Curve& curve) { return std::min(curve.at(piece.si()), 1.0); };
  const auto seconds = [&](std::string_view what) {
    return profile.has(key(what)) ? std::optional(Seconds(profile.number(key(what))))
                                  : std::nullopt;
  };
  terms.base_latency = seconds("base_latency_s").value_or(Seconds(0));
  terms.node_hop_latency = seconds("node_hop_latency_s").value_or(terms.node_hop_latency);
  if (scope == Scope::inside) {
    terms.node_efficiency = share(efficiency->second);
  } else {
    terms.efficiency = share(efficiency->second);
    if (const auto latency = seconds("hop_latency_s")) terms.hop_latency = latency;
    if (const auto inside = profile.curves.find(key("node_efficiency"));
        inside != profile.curves.end())
      terms.node_efficiency = share(inside->second);
  }
  const auto limit = [&](std::string_view what, double none) {
    return Bytes(profile.has(key(what)) ? profile.number(key(what)) : none);
  };
  mode.offered = size >= limit("from_B", 0) && size < limit("below_B", size.si() + 1);
  return mode;
}

}  // namespace

bool has_protocol(Algorithm algorithm, Protocol protocol) {
  return protocol == Protocol::simple || algorithm == Algorithm::ring ||
         algorithm == Algorithm::tree;
}

std::string mode_key(Scope scope, Algorithm algorithm, Protocol protocol, std::string_view what) {
  std::string mode = fmt::format("{}_{}", name_of(algorithm), name_of(protocol));
  for (char& c : mode)
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return fmt::format("network.{}.{}.{}", scope == Scope::inside ? "inside" : "between", mode, what);
}

namespace {

/// [M123] Between two nodes a tree sends no more than a ring, and in a node a switch that adds
/// sends less: for all-reduces of these the library does not try rings where it has the other.
void withdraw_rings(std::vector<Mode>& modes, CollectiveKind kind, const Layout& layout) {
  if (kind != CollectiveKind::all_reduce || layout.nodes > 2) return;
  const auto better = [](const Mode& mode) {
    return mode.algorithm != Algorithm::ring && mode.protocol == Protocol::simple;
  };
  if (std::ranges::none_of(modes, better)) return;
  for (Mode& mode : modes)
    if (mode.algorithm == Algorithm::ring &&
        (layout.nodes == 2 || mode.protocol == Protocol::simple))
      mode.offered = false;
}

}  // namespace

namespace {

std::vector<Mode> uncapped_modes(const Profile* profile, CollectiveKind kind, Bytes size,
                                 const Layout& layout) {
  const Algorithm plain = plain_algorithm(kind);
  if (profile == nullptr) return {{.algorithm = plain, .terms = {}}};
  if (layout.ranks < 2 ||
      !names_modes(*profile, layout.nodes == 1 ? "network.inside." : "network.between."))
    return {{.algorithm = plain, .terms = plain_terms(*profile, size)}};
  std::vector<Mode> modes;
  const double local = static_cast<double>(layout.ranks) / layout.nodes;
  const double fewest =
      profile->has("network.nvls_ranks") ? profile->number("network.nvls_ranks") : 1;
  for (const auto& [algorithm, name] : names<Algorithm>()) {
    if (uses_nvls(algorithm) && local < fewest) continue;
    if (!traffic_of(algorithm, kind, layout)) continue;
    for (const auto& [protocol, protocol_name] : names<Protocol>())
      if (has_protocol(algorithm, protocol))
        if (const auto mode = mode_of(*profile, algorithm, protocol, size, layout))
          modes.push_back(*mode);
  }
  const auto is_plain = [&](const Mode& mode) {
    return mode.algorithm == plain && mode.protocol == Protocol::simple;
  };
  withdraw_rings(modes, kind, layout);
  const bool some_offered = std::ranges::any_of(modes, &Mode::offered);
  if (std::ranges::none_of(modes, is_plain))
    modes.push_back(
        {.algorithm = plain, .terms = plain_terms(*profile, size), .offered = modes.empty()});
  if (!some_offered) {
    for (Mode& mode : modes) mode.offered = mode.protocol == Protocol::simple;
    withdraw_rings(modes, kind, layout);
  }
  return modes;
}

/// [M475] Ranks of a node with a NIC each: a ring that comes in by the NIC of one leaves from
/// another, whose way back to that NIC crosses the node.
bool crosses_nodes(const Layout& layout) {
  const int in_node = layout.ranks / std::max(layout.nodes, 1);
  return layout.nodes > 1 && in_node > 1 && in_node == layout.nics_per_node;
}

}  // namespace

std::vector<Mode> modes_of(const Profile* profile, CollectiveKind kind, Bytes size,
                           const Layout& layout) {
  std::vector<Mode> modes = uncapped_modes(profile, kind, size, layout);
  if (profile == nullptr || !profile->has("network.crossing_cap_Bps") || !crosses_nodes(layout))
    return modes;
  const BytesPerSecond cap(profile->number("network.crossing_cap_Bps"));
  for (Mode& mode : modes) {
    BytesPerSecond& known = mode.terms.transport_cap;
    known = known.si() > 0 ? std::min(known, cap) : cap;
  }
  return modes;
}

}  // namespace scapesim::cost
