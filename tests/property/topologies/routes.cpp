// SPDX-License-Identifier: Apache-2.0
// What holds for routes and cuts of every kind of fabric.
#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <set>

#include "sim/base/random.hpp"
#include "tests/support/fabrics.hpp"
#include "tests/support/max_flow.hpp"
#include "topologies/summary.hpp"

using namespace scapesim;
using namespace scapesim::topology;
using namespace scapesim::test;

namespace {

/// Links on the shortest way between two nodes that takes one global link at most, which is the
/// rule of a minimal route (a detour over a third group may have fewer links, but two global ones).
std::map<std::size_t, int> distances(const Fabric& fabric, GpuId from) {
  struct State {
    std::size_t vertex = 0;
    bool went_global = false;
    auto operator<=>(const State&) const = default;
  };
  const Graph& graph = fabric.graph();
  std::map<State, int> reached = {{{fabric.vertex(from), false}, 0}};
  std::deque<State> queue = {reached.begin()->first};
  while (!queue.empty()) {
    const State at = queue.front();
    queue.pop_front();
    for (const auto edge : boost::make_iterator_range(out_edges(at.vertex, graph))) {
      const LinkKind kind = fabric.link(graph[edge].id).kind;
      if (kind == LinkKind::node || kind == LinkKind::memory) continue;
      if (kind == LinkKind::global && at.went_global) continue;
      const State next{target(edge, graph), at.went_global || kind == LinkKind::global};
      if (reached.try_emplace(next, reached[at] + 1).second) queue.push_back(next);
    }
  }
  std::map<std::size_t, int> nearest;
  for (const auto& [state, links] : reached) {
    const auto [entry, is_new] = nearest.try_emplace(state.vertex, links);
    entry->second = std::min(entry->second, links);
  }
  return nearest;
}

/// The GPU whose NIC a message leaves by.
GpuId exit_of(const Fabric& fabric, GpuId from, GpuId to) {
  std::string exit = "GPU " + std::to_string(from.value);
  for (const Hop& hop : hops(fabric, from, to)) {
    if (hop.to.starts_with("NIC ")) break;
    if (hop.to.starts_with("GPU ")) exit = hop.to;
  }
  return {static_cast<std::uint32_t>(std::stoi(exit.substr(4)))};
}

std::vector<GpuId> all_gpus(const Fabric& fabric) {
  std::vector<GpuId> gpus(static_cast<std::size_t>(fabric.gpus()));
  for (std::uint32_t i = 0; i < gpus.size(); ++i) gpus[i] = {i};
  return gpus;
}

}  // namespace

TEST_CASE("every kind of fabric has a row in the table of small clusters") {
  std::set<spec::FabricKind> kinds;
  for (const NamedCluster& row : small_clusters()) kinds.insert(row.cluster.fabric.kind);
  for (const Generator& generator : generators()) {
    INFO(generator.name);
    CHECK(kinds.contains(generator.kind));
  }
  CHECK(generators().size() == names<spec::FabricKind>().size());
}

TEST_CASE("the small clusters break no rule") {
  for (NamedCluster row : small_clusters()) {
    INFO(row.name);
    row.cluster.gpus = row.nodes * row.cluster.gpus_per_node;
    CHECK(spec::violations(row.cluster).empty());
  }
}

TEST_CASE("a route joins any two GPUs over links that exist, in order, none twice") {
  for (const NamedCluster& row : small_clusters()) {
    INFO(row.name);
    const Fabric fabric = build_fabric(row.cluster, row.nodes);
    for (const GpuId from : all_gpus(fabric))
      for (const GpuId to : all_gpus(fabric)) {
        const std::vector<Hop> route = hops(fabric, from, to);  // throws where a link does not fit
        REQUIRE(route.empty() == (from == to));
        if (from == to) continue;
        REQUIRE(route.back().to == "GPU " + std::to_string(to.value));
        const std::vector<LinkId> links = fabric.path(from, to);
        REQUIRE(std::set(links.begin(), links.end()).size() == links.size());
      }
  }
}

TEST_CASE("no allowed way between two nodes has fewer links than their route") {
  for (const NamedCluster& row : small_clusters()) {
    INFO(row.name);
    const Fabric fabric = build_fabric(row.cluster, row.nodes);
    std::map<GpuId, std::map<std::size_t, int>> shortest;
    for (const GpuId from : all_gpus(fabric)) shortest[from] = distances(fabric, from);
    for (const GpuId from : all_gpus(fabric))
      for (const GpuId to : all_gpus(fabric)) {
        if (fabric.node_of(from) == fabric.node_of(to)) continue;
        const GpuId exit = exit_of(fabric, from, to);
        const std::size_t inside = exit == from ? 0 : fabric.path(from, exit).size();
        REQUIRE(static_cast<int>(fabric.path(from, to).size() - inside) ==
                shortest.at(exit).at(fabric.vertex(to)));
      }
  }
}

TEST_CASE("on rails a message enters the network on the rail of its destination") {
  for (const NamedCluster& row : small_clusters()) {
    if (row.cluster.fabric.kind != spec::FabricKind::rail_only &&
        row.cluster.fabric.kind != spec::FabricKind::rail_optimized)
      continue;
    INFO(row.name);
    const Fabric fabric = build_fabric(row.cluster, row.nodes);
    const auto rails = static_cast<std::uint32_t>(row.cluster.nics_per_node);
    for (const GpuId from : all_gpus(fabric))
      for (const GpuId to : all_gpus(fabric)) {
        std::vector<std::string> leaves;
        for (const Hop& hop : hops(fabric, from, to))
          if (hop.to.starts_with("leaf switch ")) leaves.push_back(hop.to.substr(12));
        REQUIRE(leaves.empty() == (fabric.node_of(from) == fabric.node_of(to)));
        for (const std::string& leaf : leaves)
          REQUIRE(static_cast<std::uint32_t>(std::stoi(leaf)) % rails == fabric.nic_of(to) % rails);
      }
  }
}

TEST_CASE("[M66] the diameter is the longest route between its NICs") {
  for (const NamedCluster& row : small_clusters()) {
    INFO(row.name);
    const Fabric fabric = build_fabric(row.cluster, row.nodes);
    std::ptrdiff_t longest = 0;
    for (const GpuId from : all_gpus(fabric))
      for (const GpuId to : all_gpus(fabric))
        longest = std::max(longest, std::ranges::count_if(fabric.path(from, to), [&](LinkId id) {
                             const LinkKind kind = fabric.link(id).kind;
                             return kind != LinkKind::lane && !inside_node(kind);
                           }));
    CHECK(fabric.diameter() == longest);
  }
}

TEST_CASE("[M28, M65] no bisection is below the smallest maximal flow between two halves") {
  const BytesPerSecond unit(5e9);
  for (const NamedCluster& row : small_clusters()) {
    if (row.nodes > 12 || row.cluster.nvlink_domain_nodes > 1) continue;  // 924 halves
    INFO(row.name);
    const Fabric fabric = build_fabric(row.cluster, row.nodes);
    CHECK(fabric.bisection() / unit >=
          static_cast<double>(smallest_flow(fabric, unit)) * (1 - 1e-12));
  }
}

TEST_CASE("[M28] bisection of random trees of three levels is the smallest maximal flow") {
  Random random(5);
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  for (int i = 0; i < 200; ++i) {
    spec::Cluster cluster =
        pod_tree_cluster(between(2, 12), between(1, 3), between(1, 4), between(1, 4));
    cluster.fabric.taper = between(1, 3);
    const Fabric fabric = build_fabric(cluster, cluster.nodes);
    const BytesPerSecond unit =
        BytesPerSecond(50e9) / (cluster.fabric.taper * cluster.fabric.pod_taper);
    CAPTURE(cluster.nodes, cluster.fabric.nodes_per_rack, cluster.fabric.racks_per_pod,
            cluster.fabric.taper, cluster.fabric.pod_taper);
    CHECK(fabric.bisection() / unit ==
          Approx(static_cast<double>(smallest_flow(fabric, unit))).epsilon(1e-12));
  }
}

TEST_CASE("[M65] bisection of random tori is the smallest maximal flow") {
  Random random(7);
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  const BytesPerSecond unit(5e9);
  for (int tried = 0; tried < 100;) {
    const spec::Cluster cluster =
        torus_cluster({between(1, 5), between(1, 4), between(1, 3)}, 5e9 * between(1, 15));
    if (cluster.nodes > 12) continue;  // 924 halves
    ++tried;
    const Fabric fabric = build_fabric(cluster, cluster.nodes);
    CAPTURE(cluster.fabric.dimensions, cluster.fabric.cable_bandwidth.si());
    CHECK(fabric.bisection() / unit ==
          Approx(static_cast<double>(smallest_flow(fabric, unit))).epsilon(1e-12));
  }
}

TEST_CASE("[M65] bisection of random dragonflies is rarely above the smallest maximal flow") {
  Random random(8);
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low + 1)));
  };
  const BytesPerSecond unit(5e9);
  int equal = 0;
  for (int tried = 0; tried < 100;) {
    spec::Cluster cluster =
        dragonfly_cluster(between(1, 5), between(1, 4), between(1, 3), 5e9 * between(1, 15));
    cluster.fabric.local_bandwidth = between(1, 15) * unit;
    if (cluster.nodes > 12) continue;  // 924 halves
    ++tried;
    const Fabric fabric = build_fabric(cluster, cluster.nodes);
    const double smallest = static_cast<double>(smallest_flow(fabric, unit));
    CAPTURE(cluster.fabric.groups, cluster.fabric.routers_per_group);
    CHECK(fabric.bisection() / unit >= smallest * (1 - 1e-12));
    CHECK(fabric.bisection() / unit <= smallest * 1.7);
    equal += fabric.bisection() / unit <= smallest * (1 + 1e-12);
  }
  CHECK(equal >= 97);  // of 100; a search by exchanges may end in a local minimum
}
