// SPDX-License-Identifier: Apache-2.0
// A grid of routers, in each dimension every router joined to all others of its row; routes correct
// one dimension after the other (Ahn, Binkert, Davis, McLaren, Schreiber, "HyperX: topology,
// routing, and packaging of efficient large-scale networks", SC 2009). One dimension is a full mesh
// of routers. The whole grid is built, also for a job on a part of it.
#include <algorithm>
#include <memory>
#include <numeric>

#include "sim/base/check.hpp"
#include "topologies/build.hpp"

namespace scapesim::topology {

namespace {

struct HyperX {
  std::vector<std::uint32_t> extents;
  std::vector<std::uint32_t> strides;  ///< between neighbours, in ordinals
  std::uint32_t routers = 1;
  std::uint32_t ports = 0;      ///< of a router: one per place of each dimension, its own included
  std::vector<LinkId> link_to;  ///< by router and port

  std::uint32_t at(std::uint32_t router, std::size_t dimension) const {
    return router / strides[dimension] % extents[dimension];
  }
  LinkId& port(std::uint32_t router, std::size_t dimension, std::uint32_t place) {
    return link_to[port_number(router, dimension, place)];
  }
  std::size_t port_number(std::uint32_t router, std::size_t dimension, std::uint32_t place) const {
    const auto before = std::accumulate(
        extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(dimension), 0U);
    return std::size_t{router} * ports + before + place;
  }
  void append(std::uint32_t from, std::uint32_t to, std::vector<LinkId>& path) const {
    for (std::size_t d = 0; d < extents.size(); ++d) {
      const std::uint32_t here = at(from, d), there = at(to, d);
      if (here == there) continue;
      path.push_back(link_to[port_number(from, d, there)]);
      from = from - here * strides[d] + there * strides[d];
    }
  }
  /// Row by row, each dimension once the slowest.
  std::vector<std::vector<std::uint32_t>> orders() const {
    std::vector<std::vector<std::uint32_t>> list;
    for (std::size_t slowest = 0; slowest < extents.size(); ++slowest) {
      std::vector<std::uint32_t>& order = list.emplace_back(routers);
      std::iota(order.begin(), order.end(), 0U);
      std::ranges::stable_sort(order, {}, [&](std::uint32_t r) { return at(r, slowest); });
    }
    return list;
  }
};

HyperX grid_of(const std::vector<int>& extents) {
  HyperX grid;
  grid.extents.assign(extents.begin(), extents.end());
  grid.strides.resize(extents.size());
  for (std::size_t i = extents.size(); i-- > 0; grid.routers *= grid.extents[i])
    grid.strides[i] = grid.routers;
  grid.ports = std::accumulate(grid.extents.begin(), grid.extents.end(), 0U);
  grid.link_to.resize(std::size_t{grid.routers} * grid.ports);
  return grid;
}

/// Links between routers on the longest route between the first `routers` routers: the dimensions
/// from the first in which they differ on.
int longest(const HyperX& grid, std::uint32_t routers) {
  int total = 0;
  for (std::size_t d = 0; d < grid.extents.size(); ++d)
    total += grid.extents[d] > 1 && routers > grid.strides[d];
  return total;
}

}  // namespace

Fabric hyperx(const spec::Cluster& cluster, int nodes) {
  const int per_router = cluster.fabric.nodes_per_router;
  auto grid = std::make_shared<HyperX>(grid_of(cluster.fabric.dimensions));
  SCAPESIM_CHECK(per_router > 0 && nodes <= per_router * static_cast<std::int64_t>(grid->routers),
                 "{} nodes on {} routers of {}", nodes, grid->routers, per_router);
  const Link cable{LinkKind::cable, cluster.fabric.cable_bandwidth};
  Fabric::Parts parts = empty_parts(cluster, nodes);
  const std::vector<VertexId> routers = new_routers(parts, grid->routers);
  for (std::size_t d = 0; d < grid->extents.size(); ++d)
    for (std::uint32_t router = 0; router < grid->routers; ++router) {
      const std::uint32_t here = grid->at(router, d);
      for (std::uint32_t there = here + 1; there < grid->extents[d]; ++there) {
        const std::uint32_t other = router + (there - here) * grid->strides[d];
        const LinkId up{static_cast<std::uint32_t>(parts.links.size())};
        connect(parts, routers[router], routers[other], cable);
        grid->port(router, d, there) = up;
        grid->port(other, d, here) = {up.value + 1};
      }
    }
  for (int node = 0; node < nodes; ++node)
    add_node(parts, cluster, routers[static_cast<std::size_t>(node / per_router)]);

  const auto neighbours =
      static_cast<int>(grid->ports) - static_cast<int>(cluster.fabric.dimensions.size());
  if (neighbours > 0)
    parts.levels = {{"router", per_router * node_capacity(cluster), neighbours * cable.capacity}};
  parts.switch_hops =
      longest(*grid, static_cast<std::uint32_t>((nodes + per_router - 1) / per_router));
  parts.routing = Routing{[grid](std::uint32_t from, std::uint32_t to, std::uint64_t,
                                 std::vector<LinkId>& path) { grid->append(from, to, path); },
                          [grid] { return grid->orders(); }};
  return Fabric(std::move(parts));
}

}  // namespace scapesim::topology
