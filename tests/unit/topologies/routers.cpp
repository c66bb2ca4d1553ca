// SPDX-License-Identifier: Apache-2.0
// Dragonflies and tori: hand-checked routes, cuts and counts.
#include <catch2/catch.hpp>

#include "tests/support/max_flow.hpp"
#include "topologies/summary.hpp"

using namespace scapesim;
using namespace scapesim::literals;
using namespace scapesim::topology;
using scapesim::test::smallest_flow;
using enum LinkKind;

namespace {

spec::Cluster one_gpu_nodes() {
  spec::Cluster cluster;
  cluster.nic_bandwidth = 50_GBps;
  cluster.fabric.latency = 5_us;
  return cluster;
}

struct Groups {
  int groups = 0;
  int routers = 1;
  int nodes = 1;  ///< per router
  BytesPerSecond global = 50_GBps;
};

spec::Cluster dragonfly_of(Groups shape) {
  spec::Cluster cluster = one_gpu_nodes();
  cluster.fabric.kind = spec::FabricKind::dragonfly;
  cluster.fabric.groups = shape.groups;
  cluster.fabric.routers_per_group = shape.routers;
  cluster.fabric.nodes_per_router = shape.nodes;
  cluster.fabric.local_bandwidth = 50_GBps;
  cluster.fabric.global_bandwidth = shape.global;
  return cluster;
}

spec::Cluster torus_of(std::vector<int> dimensions, BytesPerSecond cable = 50_GBps) {
  spec::Cluster cluster = one_gpu_nodes();
  cluster.fabric.kind = spec::FabricKind::torus;
  cluster.fabric.dimensions = std::move(dimensions);
  cluster.fabric.cable_bandwidth = cable;
  return cluster;
}

/// Routers on the way, by ordinal.
std::vector<int> routers_between(const Fabric& fabric, GpuId from, GpuId to) {
  std::vector<int> list;
  for (const Hop& hop : hops(fabric, from, to))
    if (hop.to.starts_with("router ")) list.push_back(std::stoi(hop.to.substr(7)));
  return list;
}

std::vector<LinkKind> kinds(const Fabric& fabric, GpuId from, GpuId to) {
  std::vector<LinkKind> list;
  for (const LinkId id : fabric.path(from, to)) list.push_back(fabric.link(id).kind);
  return list;
}

}  // namespace

TEST_CASE("a torus goes through its dimensions in order, each the shorter way round") {
  const Fabric fabric = build_fabric(torus_of({4, 5}), 20);  // node 5 a + b is the point (a, b)
  CHECK(routers_between(fabric, {0}, {7}) == std::vector{0, 5, 6, 7});
  CHECK(routers_between(fabric, {0}, {19}) == std::vector{0, 15, 19});  // backwards in both
  CHECK(routers_between(fabric, {1}, {11}) == std::vector{1, 6, 11});   // a tie goes upwards
  CHECK(routers_between(fabric, {11}, {1}) == std::vector{11, 16, 1});
  CHECK(kinds(fabric, {0}, {1}) == std::vector{lane, nic, cable, nic, lane});
}

TEST_CASE("the two points of a dimension of two are joined by one cable") {
  const Fabric fabric = build_fabric(torus_of({2, 3, 2}), 12);
  CHECK(cable_counts(fabric).back().cables == 6 + 12 + 6);
  CHECK(fabric.path({0}, {1})[2].value == (fabric.path({1}, {0})[2].value ^ 1U));
  CHECK(routers_between(fabric, {11}, {0}) == std::vector{11, 5, 1, 0});
}

TEST_CASE("a dragonfly goes to the gateway, over the global link, and on") {
  // 5 groups of 2 routers: the links of group i to i+1 and i+2 leave by its first router, those to
  // i+3 and i+4 by its second.
  const Fabric fabric = build_fabric(dragonfly_of({.groups = 5, .routers = 2}), 10);
  CHECK(routers_between(fabric, {1}, {2}) == std::vector{1, 0, 3, 2});
  CHECK(routers_between(fabric, {0}, {3}) == std::vector{0, 3});
  CHECK(routers_between(fabric, {9}, {0}) == std::vector{9, 8, 1, 0});
  CHECK(kinds(fabric, {1}, {2}) == std::vector{lane, nic, local, global, local, nic, lane});
  CHECK(kinds(fabric, {0}, {1}) == std::vector{lane, nic, local, nic, lane});
}

TEST_CASE("groups that hold no node are not built") {
  const Fabric fabric =
      build_fabric(dragonfly_of({.groups = 25, .routers = 4, .nodes = 2}), 2 * 8 + 1);
  CHECK(vertex_counts(fabric).back().count == 3 * 4);
  CHECK(cable_counts(fabric).back().cables == 3);
  CHECK(build_fabric(dragonfly_of({.groups = 25, .nodes = 8}), 8).diameter() == 2);
}

TEST_CASE("[M65] bisection of a torus is two cables of every ring cut, of an odd one a step more") {
  CHECK(build_fabric(torus_of({4, 4}), 16).bisection() == 8 * 50_GBps);
  CHECK(build_fabric(torus_of({8, 4, 4}, 10_GBps), 128).bisection() == 2 * 16 * 10_GBps);
  CHECK(build_fabric(torus_of({3, 3}, 10_GBps), 9).bisection() == 8 * 10_GBps);
  CHECK(build_fabric(torus_of({64}), 64).bisection() == 2 * 50_GBps);
}

TEST_CASE("[M65] bisection of routers is the smallest maximal flow over all halves of the nodes") {
  const spec::Cluster cluster =
      GENERATE(torus_of({8}), torus_of({2, 4}), torus_of({3, 3}, 10_GBps), torus_of({2, 2, 2}),
               torus_of({2, 5}), torus_of({3, 2, 2}, 100_GBps), torus_of({7}, 10_GBps),
               dragonfly_of({.groups = 5, .routers = 2}), dragonfly_of({.groups = 4, .nodes = 2}),
               dragonfly_of({.groups = 3, .nodes = 3}),
               dragonfly_of({.groups = 2, .routers = 2, .nodes = 2, .global = 10_GBps}),
               dragonfly_of({.groups = 4, .nodes = 3, .global = 20_GBps}),
               dragonfly_of({.groups = 3, .routers = 3, .global = 100_GBps}));
  int nodes =
      cluster.fabric.groups * cluster.fabric.routers_per_group * cluster.fabric.nodes_per_router;
  if (cluster.fabric.kind == spec::FabricKind::torus) {
    nodes = 1;
    for (const int extent : cluster.fabric.dimensions) nodes *= extent;
  }
  const Fabric fabric = build_fabric(cluster, nodes);
  CAPTURE(nodes, cluster.fabric.dimensions, cluster.fabric.groups);
  CHECK(fabric.bisection() / 10_GBps ==
        Approx(static_cast<double>(smallest_flow(fabric, 10_GBps))).epsilon(1e-12));
}

TEST_CASE("[M66] a torus on a part of its points is as wide as that part") {
  CHECK(build_fabric(torus_of({4, 6}), 24).diameter() == 2 + 2 + 3);
  CHECK(build_fabric(torus_of({4, 6}), 3).diameter() == 2 + 2);
  CHECK(build_fabric(torus_of({4, 6}), 7).diameter() == 2 + 1 + 3);
  CHECK(build_fabric(torus_of({4, 6}), 1).diameter() == 0);
}
