// SPDX-License-Identifier: Apache-2.0
#include "topologies/summary.hpp"

#include <catch2/catch.hpp>

using namespace scapesim;
using namespace scapesim::literals;
using namespace scapesim::topology;

namespace {

/// Two racks of two nodes, each of four GPUs on two NICs, 2:1.
Fabric two_racks() {
  spec::Cluster cluster;
  cluster.gpus_per_node = 4;
  cluster.nics_per_node = 2;
  cluster.nic_bandwidth = 50_GBps;
  cluster.node_link_bandwidth = 300_GBps;
  cluster.fabric.kind = spec::FabricKind::fat_tree;
  cluster.fabric.nodes_per_rack = 2;
  cluster.fabric.taper = 2;
  return build_fabric(cluster, 4);
}

}  // namespace

TEST_CASE("parts and cables of a fabric are counted by kind") {
  const Fabric fabric = two_racks();
  std::vector<int> parts;
  for (const VertexCount& row : vertex_counts(fabric)) parts.push_back(row.count);
  CHECK(parts == std::vector{16, 8, 4, 2, 1});  // GPUs, NICs, node, leaf and spine switches
  std::vector<int> cables;
  int links = 0;
  for (const CableCount& row : cable_counts(fabric)) {
    cables.push_back(row.cables);
    links += 2 * row.cables;
  }
  CHECK(cables == std::vector{16, 16, 8, 2});  // lanes, node links, NICs, trunks
  CHECK(links == fabric.links());
  CHECK(cable_counts(fabric)[3].capacity == 100_GBps);
}

TEST_CASE("oversubscription is what a full rack sends over what its trunk carries") {
  const Fabric fabric = two_racks();
  REQUIRE(fabric.levels().size() == 1);
  CHECK(fabric.levels()[0].down == 200_GBps);
  CHECK(fabric.levels()[0].up == 100_GBps);
  CHECK(fabric.levels()[0].taper() == 2);
}

TEST_CASE("[M192] cables and ports are counted at the rate of an adapter") {
  spec::Cluster cluster;
  cluster.gpus_per_node = 4;
  cluster.nics_per_node = 2;
  cluster.nic_bandwidth = 50_GBps;
  const PartsList list = parts_list(cluster, two_racks());
  CHECK(list.nics == 8);
  CHECK(list.cables == 8 + 2 * 2);  // trunks of 100 GB/s are two each
  CHECK(list.ports == 8 + 2 * 4);
}

TEST_CASE("hops name both ends of every link of a route") {
  std::vector<std::string> names;
  for (const Hop& hop : hops(two_racks(), {0}, {15})) names.push_back(hop.from + ">" + hop.to);
  CHECK(names == std::vector<std::string>{
                     "GPU 0>NIC 0", "NIC 0>leaf switch 0", "leaf switch 0>spine switch 0",
                     "spine switch 0>leaf switch 1", "leaf switch 1>NIC 7", "NIC 7>GPU 15"});
  CHECK(hops(two_racks(), {3}, {3}).empty());
}
