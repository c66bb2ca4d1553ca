// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/network_terms.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/support/profile.hpp"

namespace {

using namespace scapesim;
using cost::Mode;
using cost::Profile;
using cost::Scope;
using graph::Algorithm;
using graph::CollectiveKind;
using graph::Protocol;
using test::round_profile;

constexpr cost::Layout kInside{8, 1, 8};
constexpr cost::Layout kBetween{32, 4, 8};

void know(Profile& profile, Scope scope, Algorithm algorithm, Protocol protocol,
          std::vector<std::array<double, 2>> points) {
  profile.curves[cost::mode_key(scope, algorithm, protocol, "efficiency")] = {
      .x = "piece_B", .y = "share", .points = std::move(points), .origin = {}};
}

const Mode* find(const std::vector<Mode>& modes, Algorithm algorithm, Protocol protocol) {
  const auto found = std::ranges::find_if(modes, [&](const Mode& mode) {
    return mode.algorithm == algorithm && mode.protocol == protocol;
  });
  return found == modes.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("[M29] a profile that names no algorithms knows a ring, or the pairwise exchange") {
  const Profile profile = round_profile();
  for (const cost::Layout& layout : {kInside, kBetween}) {
    const auto modes = cost::modes_of(&profile, CollectiveKind::all_reduce, Bytes(1e9), layout);
    REQUIRE(modes.size() == 1);
    CHECK(modes[0].algorithm == Algorithm::ring);
    CHECK(modes[0].offered);
    CHECK(modes[0].terms.efficiency == profile.number("network.efficiency"));
    CHECK(cost::modes_of(&profile, CollectiveKind::all_to_all, Bytes(1), layout)[0].algorithm ==
          Algorithm::pairwise);
    CHECK(cost::modes_of(nullptr, CollectiveKind::send_recv, Bytes(1), layout)[0].algorithm ==
          Algorithm::pairwise);
  }
}

TEST_CASE("[M29] a mode takes its efficiency at the piece, and counts in its own scope only") {
  Profile profile = round_profile();
  know(profile, Scope::inside, Algorithm::ring, Protocol::simple, {{1e6, 0.5}, {4e6, 1}});
  const auto inside = cost::modes_of(&profile, CollectiveKind::all_reduce, Bytes(16e6), kInside);
  CHECK(find(inside, Algorithm::ring, Protocol::simple)->terms.node_efficiency ==
        Approx(0.5 * std::sqrt(2)));  // pieces of 2 MB, half way in logarithms
  const auto between = cost::modes_of(&profile, CollectiveKind::all_reduce, Bytes(16e6), kBetween);
  CHECK(between.size() == 1);
  CHECK(between[0].terms.efficiency == profile.number("network.efficiency"));
}

TEST_CASE("[M29] outside its sizes a mode is known but not offered, and something always is") {
  Profile profile = round_profile();
  know(profile, Scope::inside, Algorithm::ring, Protocol::ll, {{1, 0.5}});
  know(profile, Scope::inside, Algorithm::ring, Protocol::simple, {{1, 0.5}});
  const auto key = [](Protocol protocol, std::string_view what) {
    return cost::mode_key(Scope::inside, Algorithm::ring, protocol, what);
  };
  profile.numbers[key(Protocol::ll, "below_B")] = test::exactly(1e4, cost::Factor::latency);
  profile.numbers[key(Protocol::simple, "from_B")] = test::exactly(1e5, cost::Factor::latency);
  const auto offered = [&](double size) {
    std::set<Protocol> set;
    for (const Mode& mode :
         cost::modes_of(&profile, CollectiveKind::all_gather, Bytes(size), kInside))
      if (mode.offered) set.insert(mode.protocol);
    return set;
  };
  CHECK(offered(9'999) == std::set{Protocol::ll});
  CHECK(offered(10'000) == std::set{Protocol::simple});  // nothing is: the bulk protocol
  CHECK(offered(100'000) == std::set{Protocol::simple});
}

TEST_CASE("[M29] NVLS needs as many ranks in the node as the profile says") {
  Profile profile = round_profile();
  know(profile, Scope::inside, Algorithm::nvls, Protocol::simple, {{1, 0.7}});
  know(profile, Scope::between, Algorithm::nvls_tree, Protocol::simple, {{1, 0.7}});
  profile.numbers["network.nvls_ranks"] = test::exactly(5, cost::Factor::latency);
  const auto knows = [&](Algorithm algorithm, const cost::Layout& layout) {
    return find(cost::modes_of(&profile, CollectiveKind::all_reduce, Bytes(1e9), layout), algorithm,
                Protocol::simple) != nullptr;
  };
  CHECK_FALSE(knows(Algorithm::nvls, {4, 1, 4}));
  CHECK(knows(Algorithm::nvls, {5, 1, 5}));
  CHECK_FALSE(knows(Algorithm::nvls_tree, {8, 2, 4}));
  CHECK(knows(Algorithm::nvls_tree, {16, 2, 8}));
}

TEST_CASE("[M123] of two nodes a known tree runs, not the ring; of more the faster one") {
  Profile profile = round_profile();
  know(profile, Scope::between, Algorithm::tree, Protocol::simple, {{1, 0.7}});
  know(profile, Scope::between, Algorithm::ring, Protocol::simple, {{1, 0.9}});
  const auto offered = [&](CollectiveKind kind, const cost::Layout& layout) {
    return find(cost::modes_of(&profile, kind, Bytes(1e9), layout), Algorithm::ring,
                Protocol::simple)
        ->offered;
  };
  CHECK_FALSE(offered(CollectiveKind::all_reduce, {16, 2, 8}));
  CHECK(offered(CollectiveKind::all_reduce, {24, 3, 8}));
  CHECK(offered(CollectiveKind::all_gather, {16, 2, 8}));
}

TEST_CASE("keys of modes are named apart, and only ring and tree have the small protocols") {
  CHECK(cost::mode_key(Scope::between, Algorithm::nvls_tree, Protocol::simple, "efficiency") ==
        "network.between.nvls_tree_simple.efficiency");
  std::set<std::string_view> names;
  for (const cost::ProfileKey& key : cost::number_keys()) CHECK(names.insert(key.name).second);
  for (const cost::ProfileKey& key : cost::curve_keys()) CHECK(names.insert(key.name).second);
  CHECK(names.contains("network.inside.tree_ll128.base_latency_s"));
  CHECK_FALSE(names.contains("network.inside.nvls_ll.base_latency_s"));
  CHECK_FALSE(names.contains("network.inside.ring_ll.hop_latency_s"));
}

TEST_CASE("[M475] groups of several ranks per node with a NIC each meet the cap for crossing") {
  Profile profile = round_profile();
  const auto cap_of = [&](const cost::Layout& layout) {
    const auto modes = cost::modes_of(&profile, CollectiveKind::all_reduce, Bytes(1e9), layout);
    return modes.at(0).terms.transport_cap.si();
  };
  constexpr cost::Layout kApart{8, 4, 2};   // two ranks of a node, far from each other
  constexpr cost::Layout kPairs{32, 4, 4};  // full nodes: two ranks share each NIC
  constexpr cost::Layout kSingle{4, 4, 1};
  constexpr cost::Layout kOneNode{4, 1, 4};
  const double none = cap_of(kApart);
  profile.numbers["network.crossing_cap_Bps"] = test::exactly(4e9, cost::Factor::network);
  CHECK(cap_of(kApart) == 4e9);
  for (const cost::Layout& layout : {kPairs, kSingle, kOneNode}) CHECK(cap_of(layout) == none);
  profile.numbers["network.transport_cap_Bps"] = test::exactly(3e9, cost::Factor::network);
  CHECK(cap_of(kApart) == 3e9);
  CHECK(cap_of(kPairs) == 3e9);
}
