// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/network_terms.hpp"

namespace scapesim::cost {

// A regime's number, else the bulk one.
std::vector<Mode> modes_of(const Profile* profile, graph::CollectiveKind kind, Bytes size,
                           const Layout& /*layout*/) {
  using enum graph::CollectiveKind;
  const graph::Algorithm algorithm =
      kind == all_to_all || kind == send_recv ? graph::Algorithm::pairwise : graph::Algorithm::ring;
  NetworkTerms terms;
  if (profile == nullptr) return {{.algorithm = algorithm, .terms = terms}};
  const bool small = profile->has("network.small_below_B") &&
                     size < Bytes(profile->number("network.small_below_B"));
  const auto key = [&](std::string_view small_key, std::string_view bulk_key) {
    return small && profile->has(small_key) ? small_key : bulk_key;
  };
  terms.efficiency = profile->number(key("network.small_efficiency", "network.efficiency"));
  if (profile->has("network.transport_cap_Bps"))
    terms.transport_cap = BytesPerSecond(profile->number("network.transport_cap_Bps"));
  const auto latency = key("network.small_hop_latency_s", "network.hop_latency_s");
  if (profile->has(latency)) terms.hop_latency = Seconds(profile->number(latency));
  if (profile->has("network.node_efficiency"))
    terms.node_efficiency = profile->number("network.node_efficiency");
  if (profile->has("network.node_hop_latency_s"))
    terms.node_hop_latency = Seconds(profile->number("network.node_hop_latency_s"));
  return {{.algorithm = algorithm, .terms = terms}};
}

}  // namespace scapesim::cost
