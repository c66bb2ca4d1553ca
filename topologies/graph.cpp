// SPDX-License-Identifier: Apache-2.0
// A network as drawn: switches and cables of any shape. Routes have the fewest cables; of several a
// hash of the flow's ends takes one, also with routing = "spray": only parallel cables between the
// same two switches share all traffic. NIC i of a node uses the node's i-th cable.
#include <algorithm>
#include <memory>
#include <set>

#include "sim/base/check.hpp"
#include "topologies/network_graph.hpp"
#include "topologies/node.hpp"

namespace scapesim::topology {

namespace {

/// Ways between routers: cables to neighbours, and how far each is from every router.
struct Ways {
  struct Neighbour {
    std::uint32_t router = 0;
    LinkId link;
  };
  std::vector<std::vector<Neighbour>> neighbours;
  std::vector<std::vector<std::uint32_t>> distance;  ///< by destination, then router
  std::uint64_t seed = 0;

  void append(std::uint32_t from, std::uint32_t to, std::uint64_t flow,
              std::vector<LinkId>& path) const {
    const std::vector<std::uint32_t>& left = distance[to];
    std::vector<const Neighbour*> nearer;
    while (from != to) {
      nearer.clear();
      for (const Neighbour& neighbour : neighbours[from])
        if (left[neighbour.router] + 1 == left[from]) nearer.push_back(&neighbour);
      SCAPESIM_CHECK(!nearer.empty(), "no way from router {} to {}", from, to);
      const Neighbour& next = *nearer[mixed(seed, flow, from) % nearer.size()];
      path.push_back(next.link);
      from = next.router;
    }
  }
  std::vector<std::uint32_t> distances_to(std::uint32_t to) const {
    std::vector<std::uint32_t> left(neighbours.size(), kFar);
    std::vector<std::uint32_t> queue = {to};
    left[to] = 0;
    for (std::size_t i = 0; i < queue.size(); ++i)
      for (const Neighbour& neighbour : neighbours[queue[i]])
        if (left[neighbour.router] == kFar) {
          left[neighbour.router] = left[queue[i]] + 1;
          queue.push_back(neighbour.router);
        }
    return left;
  }
  /// In order of distance from each of a few routers.
  std::vector<std::vector<std::uint32_t>> orders() const {
    constexpr std::size_t kStarts = 8;
    std::vector<std::vector<std::uint32_t>> list;
    const std::size_t count = neighbours.size();
    for (std::size_t start = 0; start < count; start += std::max<std::size_t>(count / kStarts, 1)) {
      std::vector<std::uint32_t>& order = list.emplace_back(count);
      for (std::uint32_t i = 0; i < count; ++i) order[i] = i;
      std::ranges::stable_sort(order, {}, [&](std::uint32_t r) { return distance[start][r]; });
    }
    return list;
  }

  static constexpr std::uint32_t kFar = 0xffffffffU;
};

}  // namespace

Fabric graph(const spec::Cluster& cluster, int nodes) {
  const NetworkParts network = network_parts(cluster.fabric.graph);
  Fabric::Parts parts = empty_parts(cluster, nodes);
  auto ways = std::make_shared<Ways>();
  ways->seed = static_cast<std::uint64_t>(cluster.fabric.routing_seed);
  ways->neighbours.resize(network.switches.size());
  const std::vector<VertexId> routers =
      new_routers(parts, static_cast<std::uint32_t>(network.switches.size()));
  std::vector<LinkId> cables;
  for (const NetworkParts::Cable& cable : network.cables) {
    cables.push_back({static_cast<std::uint32_t>(parts.links.size())});
    connect(parts, routers[cable.from], routers[cable.to], {LinkKind::cable, cable.capacity});
  }
  const std::vector<bool> failed = failed_cables(parts, cluster);
  for (std::size_t i = 0; i < cables.size(); ++i) {
    if (!failed.empty() && failed[cables[i].value / 2]) continue;
    const NetworkParts::Cable& cable = network.cables[i];
    ways->neighbours[cable.from].push_back({cable.to, cables[i]});
    ways->neighbours[cable.to].push_back({cable.from, {cables[i].value + 1}});
  }
  for (std::uint32_t router = 0; router < routers.size(); ++router)
    ways->distance.push_back(ways->distances_to(router));
  for (int node = 0; node < nodes; ++node) {
    const std::vector<std::uint32_t>& at = network.nodes.at(static_cast<std::size_t>(node));
    add_node(parts, cluster,
             [&](int nic) { return routers[at[static_cast<std::size_t>(nic) % at.size()]]; });
  }
  const std::set<std::uint32_t> holders = network.holders(nodes);
  for (const std::uint32_t from : holders)
    for (const std::uint32_t to : holders)
      parts.switch_hops = std::max(parts.switch_hops, static_cast<int>(ways->distance[to][from]));
  parts.routing = Routing{[ways](std::uint32_t from, std::uint32_t to, std::uint64_t flow,
                                 std::vector<LinkId>& path) { ways->append(from, to, flow, path); },
                          [ways] { return ways->orders(); },
                          [ways](std::uint32_t from, std::uint32_t to) {
                            return ways->distance[to][from] != Ways::kFar;
                          }};
  return Fabric(std::move(parts));
}

}  // namespace scapesim::topology
