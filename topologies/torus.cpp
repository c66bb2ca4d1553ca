// SPDX-License-Identifier: Apache-2.0
// A grid with wrap-around in one to four dimensions, a router and a node per point. Routes go
// through the dimensions in order, in each the shorter way round, upwards where both are equal
// (Dally, Towles, Principles and Practices of Interconnection Networks, 2004, ch. 5 and 8). Two
// points of a dimension of two are joined by one cable. The whole grid is built, also for a job on
// a part of it: its routes may pass through the rest.
#include <algorithm>
#include <numeric>

#include "sim/base/check.hpp"
#include "topologies/build.hpp"

namespace scapesim::topology {

namespace {

struct Dimension {
  std::uint32_t extent = 1;
  std::uint32_t stride = 1;       ///< between neighbours, in ordinals
  std::uint32_t first_cable = 0;  ///< its cables follow in order of their lower end

  std::uint32_t at(std::uint32_t router) const { return router / stride % extent; }
  std::uint32_t next(std::uint32_t router) const {
    return at(router) + 1 < extent ? router + stride : router - (extent - 1) * stride;
  }
  std::uint32_t previous(std::uint32_t router) const {
    return at(router) > 0 ? router - stride : router + (extent - 1) * stride;
  }
  /// Has a cable of its own to the next.
  bool leads(std::uint32_t router) const { return extent > 2 || (extent == 2 && at(router) == 0); }
  /// The cable from a router that leads.
  std::uint32_t cable(std::uint32_t router) const {
    return first_cable + (extent > 2 ? router : router / (2 * stride) * stride + router % stride);
  }
  LinkId up(std::uint32_t router) const {
    return leads(router) ? LinkId{2 * cable(router)} : LinkId{2 * cable(next(router)) + 1};
  }
  LinkId down(std::uint32_t router) const { return {2 * cable(previous(router)) + 1}; }
};

using Grid = std::vector<Dimension>;

Grid grid_of(const std::vector<int>& extents) {
  Grid grid(extents.size());
  std::uint32_t points = 1;
  for (std::size_t i = extents.size(); i-- > 0; points *= grid[i].extent)
    grid[i] = {.extent = static_cast<std::uint32_t>(extents[i]), .stride = points};
  std::uint32_t cables = 0;
  for (Dimension& dimension : grid) {
    dimension.first_cable = cables;
    cables += dimension.extent > 2 ? points : dimension.extent == 2 ? points / 2 : 0;
  }
  return grid;
}

void append(const Grid& grid, std::uint32_t from, std::uint32_t to, std::vector<LinkId>& path) {
  for (const Dimension& dimension : grid) {
    const std::uint32_t upwards =
        (dimension.at(to) + dimension.extent - dimension.at(from)) % dimension.extent;
    if (2 * upwards <= dimension.extent)
      for (std::uint32_t i = 0; i < upwards; ++i, from = dimension.next(from))
        path.push_back(dimension.up(from));
    else
      for (std::uint32_t i = upwards; i < dimension.extent; ++i, from = dimension.previous(from))
        path.push_back(dimension.down(from));
  }
}

/// Row by row, for every choice of which dimension changes slowest.
std::vector<std::vector<std::uint32_t>> orders(Grid grid, std::uint32_t points) {
  const auto key = [](const Dimension& dimension) { return dimension.stride; };
  std::vector<std::vector<std::uint32_t>> list;
  std::ranges::sort(grid, {}, key);
  do {
    std::vector<std::uint32_t>& order = list.emplace_back(points);
    for (std::uint32_t router = 0; router < points; ++router) {
      std::uint32_t place = 0;
      for (const Dimension& dimension : grid)
        place = place * dimension.extent + dimension.at(router);
      order[place] = router;
    }
  } while (std::ranges::next_permutation(grid, {}, key).found);
  return list;
}

/// Links between routers on the longest route between the first `nodes` points: below the first
/// dimension in which they fill more than one layer, every layer but the last is whole.
int longest(const Grid& grid, std::uint32_t nodes) {
  std::uint32_t total = 0;
  for (const Dimension& dimension : grid) {
    const std::uint32_t layers =
        total > 0 ? dimension.extent : (nodes + dimension.stride - 1) / dimension.stride;
    total += std::min(layers - 1, dimension.extent / 2);
  }
  return static_cast<int>(total);
}

}  // namespace

Fabric torus(const spec::Cluster& cluster, int nodes) {
  const Grid grid = grid_of(cluster.fabric.dimensions);
  const std::uint32_t points = std::accumulate(
      grid.begin(), grid.end(), 1U,
      [](std::uint32_t product, const Dimension& dimension) { return product * dimension.extent; });
  SCAPESIM_CHECK(static_cast<std::uint32_t>(nodes) <= points, "{} nodes on {} points", nodes,
                 points);
  const Link cable{LinkKind::cable, cluster.fabric.cable_bandwidth};

  Fabric::Parts parts = empty_parts(cluster, nodes);
  const std::vector<VertexId> routers = new_routers(parts, points);
  int neighbours = 0;
  for (const Dimension& dimension : grid) {
    neighbours += dimension.extent > 2 ? 2 : dimension.extent == 2 ? 1 : 0;
    for (std::uint32_t router = 0; router < points; ++router)
      if (dimension.leads(router))
        connect(parts, routers[router], routers[dimension.next(router)], cable);
  }
  for (int node = 0; node < nodes; ++node)
    add_node(parts, cluster, routers[static_cast<std::size_t>(node)]);

  if (neighbours > 0)
    parts.levels = {{"router", node_capacity(cluster), neighbours * cable.capacity}};
  parts.switch_hops = longest(grid, static_cast<std::uint32_t>(nodes));
  parts.routing = Routing{[grid](std::uint32_t from, std::uint32_t to, std::uint64_t,
                                 std::vector<LinkId>& path) { append(grid, from, to, path); },
                          [grid, points] { return orders(grid, points); }};
  return Fabric(std::move(parts));
}

}  // namespace scapesim::topology
