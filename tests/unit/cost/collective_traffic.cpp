// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/collective_traffic.hpp"

#include <catch2/catch.hpp>

#include "sim/cost/collective_forms.hpp"

namespace {

using namespace scapesim;
using cost::Layout;
using cost::LineRates;
using cost::Traffic;
using graph::Algorithm;
using graph::CollectiveKind;

constexpr CollectiveKind kKinds[] = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                     CollectiveKind::all_gather, CollectiveKind::broadcast,
                                     CollectiveKind::all_to_all, CollectiveKind::send_recv};
constexpr Layout kLayouts[] = {{2, 1, 1},  {5, 1, 8},    {8, 1, 8},     {16, 2, 8},
                               {16, 2, 4}, {24, 3, 8},   {4, 4, 1},     {64, 64, 1},
                               {64, 8, 8}, {128, 32, 4}, {1024, 128, 8}};

Approx exactly(double value) { return Approx(value).epsilon(1e-12); }

}  // namespace

TEST_CASE("[M120] one GPU per node: rings cost what the closed forms of flat networks say") {
  const LineRates rates{.node_link = BytesPerSecond(450e9), .nic = BytesPerSecond(50e9)};
  for (const int ranks : {2, 3, 64, 1000}) {
    cost::NetworkTerms terms;
    terms.hop_latency = Seconds(5e-6);
    const cost::RingTerms ring{.ranks = ranks, .hop_latency = Seconds(5e-6), .link = rates.nic};
    const auto time = [&](CollectiveKind kind) {
      const Layout layout{.ranks = ranks, .nodes = ranks, .nics_per_node = 1};
      return cost::time_alone(*cost::traffic_of(Algorithm::ring, kind, layout), terms, Bytes(1e9),
                              rates)
          .si();
    };
    CHECK(time(CollectiveKind::all_reduce) ==
          exactly(cost::ring_all_reduce(Bytes(1e9), ring).si()));
    CHECK(time(CollectiveKind::all_gather) ==
          exactly(cost::ring_all_gather(Bytes(1e9), ring).si()));
    CHECK(time(CollectiveKind::broadcast) == exactly(cost::ring_broadcast(Bytes(1e9), ring).si()));
  }
}

TEST_CASE("[M120] no algorithm moves less across a node's border than the collective needs") {
  for (const auto& [algorithm, name] : names<Algorithm>())
    for (const CollectiveKind kind : kKinds)
      for (const Layout& layout : kLayouts) {
        const auto traffic = cost::traffic_of(algorithm, kind, layout);
        if (!traffic || layout.nodes == 1) continue;
        INFO(name << " " << name_of(kind) << " " << layout.ranks << "/" << layout.nodes);
        // What must enter a node: the others' data, added up where the switches of the network
        // or partners can add, but never less than what the node lacks.
        const double n = layout.ranks;
        const double nodes = layout.nodes;
        const double local = n / nodes;
        double needed = 1;
        if (kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter)
          needed = 1 - 1 / nodes;
        if (kind == CollectiveKind::all_to_all) needed = local * (n - local) / n;
        if (kind == CollectiveKind::all_reduce) needed = 1 - 1e-12;
        const double nics = std::min<double>(layout.nics_per_node, local);
        CHECK(traffic->nic * nics >= needed * (1 - 1e-12));
      }
}

TEST_CASE("[M120] NVLS passes the wire rate: 2(n-1)/(n+1) of a GPU's link, from two thirds up") {
  for (const int ranks : {2, 5, 8, 72}) {
    const Layout layout{.ranks = ranks, .nodes = 1, .nics_per_node = 1};
    const auto traffic =
        cost::traffic_of(Algorithm::nvls, CollectiveKind::all_reduce, layout).value();
    const double bus_over_size = 2.0 * (ranks - 1) / ranks;
    CHECK(bus_over_size / traffic.node_link == exactly(2.0 * (ranks - 1) / (ranks + 1)));
  }
}

TEST_CASE("[M120] with two nodes a tree sends each byte once, from three nodes on twice") {
  for (const Algorithm algorithm : {Algorithm::tree, Algorithm::nvls_tree}) {
    const auto nic = [&](int nodes) {
      return cost::traffic_of(algorithm, CollectiveKind::all_reduce, {8 * nodes, nodes, 8})->nic;
    };
    CHECK(nic(2) == exactly(1.0 / 8));
    CHECK(nic(3) == exactly(2.0 / 8));
    CHECK(nic(64) == exactly(2.0 / 8));
  }
}

TEST_CASE("[M120] algorithms are refused for what they do not do") {
  const Layout inside{8, 1, 8};
  const Layout between{16, 2, 8};
  const auto runs = [](Algorithm algorithm, CollectiveKind kind, const Layout& layout) {
    return cost::traffic_of(algorithm, kind, layout).has_value();
  };
  CHECK_FALSE(runs(Algorithm::nvls, CollectiveKind::all_reduce, between));
  CHECK_FALSE(runs(Algorithm::nvls_tree, CollectiveKind::all_reduce, inside));
  CHECK_FALSE(runs(Algorithm::nvls_tree, CollectiveKind::all_gather, between));
  CHECK_FALSE(runs(Algorithm::ring, CollectiveKind::all_to_all, between));
  CHECK_FALSE(runs(Algorithm::pat, CollectiveKind::all_gather, between));
  CHECK_FALSE(runs(Algorithm::halving_doubling, CollectiveKind::all_reduce, {24, 3, 8}));
  CHECK(runs(Algorithm::pat, CollectiveKind::all_gather, {5, 5, 1}));
  for (const CollectiveKind kind : kKinds)
    for (const Layout& layout : kLayouts)
      CHECK((runs(Algorithm::ring, kind, layout) || runs(Algorithm::pairwise, kind, layout)));
}

TEST_CASE("[M121] rings pass shares of the size, trees and switches stream all of it") {
  CHECK(cost::piece_of(Algorithm::ring, Bytes(64), {16, 2, 8}) == Bytes(4));
  CHECK(cost::piece_of(Algorithm::tree, Bytes(64), {16, 2, 8}) == Bytes(64));
  CHECK(cost::piece_of(Algorithm::nvls, Bytes(64), {8, 1, 8}) == Bytes(64));
}

TEST_CASE("[M122] the busiest kind of link decides, and a transport cap counts as a NIC") {
  const Traffic traffic{.node_link = 1, .nic = 0.25, .node_steps = 3, .network_steps = 2};
  const LineRates rates{.node_link = BytesPerSecond(100), .nic = BytesPerSecond(50)};
  cost::NetworkTerms terms;
  terms.base_latency = Seconds(1);
  terms.node_hop_latency = Seconds(10);
  terms.hop_latency = Seconds(100);
  CHECK(cost::time_alone(traffic, terms, Bytes(1000), rates).si() == exactly(1 + 30 + 200 + 10));
  terms.efficiency = 0.25;
  CHECK(cost::time_alone(traffic, terms, Bytes(1000), rates).si() == exactly(231 + 20));
  terms.transport_cap = BytesPerSecond(5);
  CHECK(cost::time_alone(traffic, terms, Bytes(1000), rates).si() == exactly(231 + 50));
}
