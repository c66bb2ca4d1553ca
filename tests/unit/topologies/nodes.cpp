// SPDX-License-Identifier: Apache-2.0
// The inside of nodes: NVSwitch, pairwise NVLink, shared NVLink domains, PCIe trees; checked by
// hand.
#include <catch2/catch.hpp>
#include <map>

#include "tests/support/fabrics.hpp"
#include "topologies/summary.hpp"

using namespace scapesim;
using namespace scapesim::literals;
using namespace scapesim::topology;
using namespace scapesim::test;

namespace {

/// "GPU 0>PCIe switch 0>socket 0"
std::string walk(const Fabric& fabric, GpuId from, GpuId to) {
  std::string text = "GPU " + std::to_string(from.value);
  for (const Hop& hop : hops(fabric, from, to)) text += ">" + hop.to;
  return text;
}

std::vector<std::uint32_t> nics(const Fabric& fabric) {
  std::vector<std::uint32_t> list;
  for (std::uint32_t gpu = 0; gpu < static_cast<std::uint32_t>(fabric.gpus()); ++gpu)
    list.push_back(fabric.nic_of({gpu}));
  return list;
}

std::vector<std::string> broken(const spec::Cluster& cluster) {
  std::vector<std::string> list;
  for (const spec::Violation& violation : spec::violations(cluster))
    list.push_back(violation.key + ": " + violation.what);
  return list;
}

}  // namespace

TEST_CASE("in a mesh every pair of GPUs has a link of its share") {
  const spec::Cluster cluster =
      with_mesh(with_gpus_per_node(bare_cluster(spec::FabricKind::switch_, 2), 4, 4));
  const Fabric fabric = build_fabric(cluster, 2);
  for (std::uint32_t from = 4; from < 8; ++from)
    for (std::uint32_t to = 4; to < 8; ++to) {
      if (from == to) continue;
      const std::vector<LinkId> path = fabric.path({from}, {to});
      REQUIRE(path.size() == 1);
      CHECK(fabric.link(path[0]).capacity == 100_GBps);  // 300 GB/s of a GPU, to three others
      CHECK(fabric.path({to}, {from})[0].value == (path[0].value ^ 1U));
    }
  CHECK(cable_counts(fabric)[1].cables == 2 * 6);
  CHECK(walk(fabric, {3}, {4}) == "GPU 3>NIC 3>leaf switch 0>NIC 4>GPU 4");
}

TEST_CASE("[M193] rings of a mesh use all its links alike") {
  for (const int gpus : {2, 3, 4, 5, 7, 8}) {
    const Fabric fabric = build_fabric(
        with_mesh(with_gpus_per_node(bare_cluster(spec::FabricKind::switch_, 1), gpus, 1)), 1);
    std::vector<GpuId> all;
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(gpus); ++i) all.push_back({i});
    std::map<std::uint32_t, int> load;
    const auto rings = fabric.node_rings(all);
    for (const auto& ring : rings)
      for (std::size_t i = 0; i < ring.size(); ++i)
        for (const LinkId link : fabric.path(ring[i], ring[(i + 1) % ring.size()]))
          ++load[link.value];
    for (const auto& [link, flows] : load) CHECK(flows == load.begin()->second);
    // A mesh of eight has no rings by steps of 2, 4 and 6.
    CHECK(static_cast<int>(load.size()) == (gpus == 8 ? 8 * 4 : gpus * (gpus - 1)));
    CHECK(rings.size() * static_cast<std::size_t>(gpus) ==
          load.size() * static_cast<std::size_t>(load.begin()->second));
  }
}

TEST_CASE("nodes of one NVLink domain reach each other over its switch, others over their NICs") {
  spec::Cluster cluster = with_gpus_per_node(bare_cluster(spec::FabricKind::switch_, 5), 2, 2);
  cluster.nvlink_domain_nodes = 3;
  const Fabric fabric = build_fabric(cluster, 5);
  CHECK(walk(fabric, {0}, {5}) == "GPU 0>node switch 0>GPU 5");
  CHECK(walk(fabric, {6}, {9}) == "GPU 6>node switch 1>GPU 9");
  CHECK(walk(fabric, {5}, {6}) == "GPU 5>NIC 5>leaf switch 0>NIC 6>GPU 6");
  CHECK(fabric.node_of({5}) == 0);
  CHECK(fabric.node_of({6}) == 1);
  CHECK(fabric.latency({0}, {5}) == 0_s);
  CHECK(fabric.latency({5}, {6}) == 5_us);
  CHECK(fabric.diameter() == 2);
  CHECK(build_fabric(cluster, 3).diameter() == 0);
}

TEST_CASE("an NVL72 of one-GPU nodes is a switch of its own") {
  spec::Cluster cluster = bare_cluster(spec::FabricKind::switch_, 4);
  cluster.nvlink_domain_nodes = 2;
  const Fabric fabric = build_fabric(cluster, 4);
  CHECK(walk(fabric, {0}, {1}) == "GPU 0>node switch 0>GPU 1");
  CHECK(walk(fabric, {1}, {2}) == "GPU 1>NIC 1>leaf switch 0>NIC 2>GPU 2");
}

TEST_CASE("GPUs use the NIC that the cluster names") {
  spec::Cluster cluster = with_gpus_per_node(bare_cluster(spec::FabricKind::switch_, 2), 4, 2);
  cluster.nic_affinity = {1, 0, 0, 1};
  const Fabric fabric = build_fabric(cluster, 2);
  CHECK(nics(fabric) == std::vector<std::uint32_t>{1, 0, 0, 1, 3, 2, 2, 3});
  CHECK(walk(fabric, {0}, {5}) == "GPU 0>NIC 1>leaf switch 0>NIC 2>GPU 5");
}

TEST_CASE("PCIe peers meet at their nearest common part") {
  const Fabric fabric = build_fabric(pcie_cluster(2, spec::PeerAccess::all), 2);
  CHECK(walk(fabric, {0}, {1}) == "GPU 0>PCIe switch 0>GPU 1");
  CHECK(walk(fabric, {2}, {3}) == "GPU 2>socket 1>GPU 3");
  CHECK(walk(fabric, {1}, {2}) == "GPU 1>PCIe switch 0>socket 0>socket 1>GPU 2");
  CHECK(walk(fabric, {7}, {0}) == "GPU 7>socket 3>NIC 3>leaf switch 0>NIC 0>PCIe switch 0>GPU 0");
  const std::vector<LinkId> path = fabric.path({1}, {2});
  CHECK(fabric.link(path[0]).capacity == 32_GBps);
  CHECK(fabric.link(path[2]).capacity == 20_GBps);  // between the sockets
}

TEST_CASE("without peer access data turn in host memory") {
  const Fabric none = build_fabric(pcie_cluster(1, spec::PeerAccess::none), 1);
  CHECK(walk(none, {0}, {1}) ==
        "GPU 0>PCIe switch 0>socket 0>host memory 0>socket 0>PCIe switch 0>GPU 1");
  CHECK(none.link(none.path({0}, {1})[2]).capacity ==
        100_GBps);  // of a socket, to write; as much to read
  const Fabric socket = build_fabric(pcie_cluster(1, spec::PeerAccess::socket), 1);
  CHECK(walk(socket, {0}, {1}) == "GPU 0>PCIe switch 0>GPU 1");
  CHECK(walk(socket, {1}, {3}) ==
        "GPU 1>PCIe switch 0>socket 0>host memory 0>socket 0>socket 1>GPU 3");
}

TEST_CASE("PCIe GPUs use the nearest NIC, and all of several that are as near") {
  spec::Cluster cluster = pcie_cluster(1, spec::PeerAccess::all);
  CHECK(nics(build_fabric(cluster, 1)) == std::vector<std::uint32_t>{0, 0, 1, 1});
  cluster.pcie_tree = {{"socket 0", {"GPU 0", "GPU 1", "GPU 2", "GPU 3", "NIC 0", "NIC 1"}}};
  CHECK(nics(build_fabric(cluster, 1)) == std::vector<std::uint32_t>{0, 1, 0, 1});
  cluster.pcie_tree.clear();  // the same
  CHECK(walk(build_fabric(cluster, 2), {1}, {6}) ==
        "GPU 1>socket 0>NIC 1>leaf switch 0>NIC 2>socket 1>GPU 6");
}

TEST_CASE("every fault of a PCIe tree is told") {
  spec::Cluster cluster = pcie_cluster(1, spec::PeerAccess::all);
  cluster.socket_bandwidth = BytesPerSecond(0);
  cluster.pcie_tree = {{"socket 0", {"GPU 0", "GPU 9", "switch 3"}},
                       {"switch 1", {"switch 2", "GPU 1"}},
                       {"switch 2", {"switch 1"}},
                       {"switch 3", {"GPU 0"}},
                       {"switch 4", {"GPU 2"}},
                       {"socket 1", {"NIC 0", "socket 0"}},
                       {"GPU 3", {"NIC 1"}}};
  CHECK(broken(cluster) ==
        std::vector<std::string>{
            "cluster.pcie_tree: the node has no \"GPU 9\"",
            "cluster.pcie_tree: \"GPU 0\" is below \"socket 0\" and \"switch 3\"",
            "cluster.pcie_tree: \"socket 0\" is below \"socket 1\"",
            "cluster.pcie_tree: nothing hangs below \"GPU 3\"",
            "cluster.pcie_tree: \"switch 4\" is below no socket",
            "cluster.pcie_tree: \"switch 1\" is below itself",
            "cluster.pcie_tree: \"GPU 3\" is missing"});
}

TEST_CASE("a node's keys have to fit each other") {
  spec::Cluster cluster = with_gpus_per_node(bare_cluster(spec::FabricKind::torus, 4), 4, 2);
  cluster.fabric.dimensions = {4};
  cluster.fabric.cable_bandwidth = 10_GBps;
  cluster.node_fabric = spec::NodeFabric::mesh;
  cluster.nvlink_domain_nodes = 2;
  cluster.nic_affinity = {0, 2};
  cluster.pcie_tree = {{"socket 0", {"GPU 0"}}};
  CHECK(broken(cluster).size() == 5);
}
