// SPDX-License-Identifier: Apache-2.0
// Trees by radix, rails, dragonfly+, HyperX, sites, graphs, ECMP, degraded cables: checked by hand.
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "tests/support/fabrics.hpp"
#include "tests/support/max_flow.hpp"
#include "topologies/degraded.hpp"
#include "topologies/network_graph.hpp"
#include "topologies/summary.hpp"

using namespace scapesim;
using namespace scapesim::literals;
using namespace scapesim::topology;
using namespace scapesim::test;

namespace {

std::string walk(const Fabric& fabric, GpuId from, GpuId to) {
  std::string text = "GPU " + std::to_string(from.value);
  for (const Hop& hop : hops(fabric, from, to)) text += ">" + hop.to;
  return text;
}

std::map<std::string, int> counts(const Fabric& fabric) {
  std::map<std::string, int> list;
  for (const auto& [kind, count] : vertex_counts(fabric)) list[std::string(name_of(kind))] = count;
  return list;
}

spec::Cluster by_radix(int nodes, int radix, int levels, double taper) {
  spec::Cluster cluster = fat_tree_cluster(nodes, 0, taper);
  cluster.fabric.switch_radix = radix;
  cluster.fabric.tree_levels = levels;
  return cluster;
}

}  // namespace

TEST_CASE("[M191] a radix gives racks, pods and the largest tree") {
  const auto shape = [](int radix, int levels, double taper, int nics) {
    spec::Cluster cluster = by_radix(1, radix, levels, taper);
    cluster.nics_per_node = cluster.gpus_per_node = nics;
    const spec::TreeShape tree = spec::tree_shape(cluster);
    return std::vector<double>{static_cast<double>(tree.nodes_per_rack),
                               static_cast<double>(tree.racks_per_pod), tree.taper,
                               static_cast<double>(tree.most_nodes)};
  };
  CHECK(shape(64, 2, 1, 1) == std::vector<double>{32, 0, 1, 2048});    // k^2/2
  CHECK(shape(64, 3, 1, 1) == std::vector<double>{32, 32, 1, 65536});  // k^3/4
  CHECK(shape(64, 1, 1, 1) == std::vector<double>{64, 0, 1, 64});
  CHECK(shape(48, 2, 3, 1) == std::vector<double>{36, 0, 3, 36 * 48});
  CHECK(shape(64, 2, 1, 8) == std::vector<double>{4, 0, 1, 256});
  CHECK(shape(40, 2, 1, 8) == std::vector<double>{2, 0, 0.8, 80});  // 16 of 20 ports down
}

TEST_CASE("a tree that its switches cannot make is refused with all reasons") {
  spec::Cluster cluster = by_radix(129, 16, 2, 1);
  CHECK(spec::violations(cluster).at(0).what ==
        "2 levels of 16-port switches hold 128 nodes, the cluster has 129");
  cluster.fabric.nodes_per_rack = 8;
  cluster.nics_per_node = 9;
  const auto list = spec::violations(cluster);
  REQUIRE(list.size() == 2);
  CHECK(list[0].what == "gives racks and pods, which are given too");
  CHECK(list[1].what == "16 ports at a taper of 1 do not hold the 9 adapters of a node");
}

TEST_CASE("rails meet at one spine or not at all") {
  const Fabric joined = build_fabric(rails_cluster(spec::FabricKind::rail_optimized, 6, 3, 1), 6);
  CHECK(counts(joined)["leaf switch"] == 8);
  CHECK(counts(joined)["spine switch"] == 1);
  CHECK(walk(joined, {1}, {9}) == "GPU 1>NIC 1>leaf switch 1>NIC 9>GPU 9");
  CHECK(walk(joined, {1}, {8}) == "GPU 1>node switch 0>GPU 0>NIC 0>leaf switch 0>NIC 8>GPU 8");
  CHECK(walk(joined, {1}, {13}) ==
        "GPU 1>NIC 1>leaf switch 1>spine switch 0>leaf switch 5>NIC 13>GPU 13");
  const Fabric apart = build_fabric(rails_cluster(spec::FabricKind::rail_only, 6, 3, 1), 6);
  CHECK(counts(apart)["spine switch"] == 4);
  CHECK(walk(apart, {1}, {13}) ==
        "GPU 1>NIC 1>leaf switch 1>spine switch 1>leaf switch 5>NIC 13>GPU 13");
}

TEST_CASE("rails have the bisection of the fat tree that their leaves make together") {
  for (const auto kind : {spec::FabricKind::rail_optimized, spec::FabricKind::rail_only})
    for (const double taper : {1.0, 2.0, 4.0})
      for (const int nodes : {4, 5, 6, 7}) {
        const Fabric fabric = build_fabric(rails_cluster(kind, nodes, 3, taper), nodes);
        CAPTURE(nodes, taper);
        CHECK(fabric.bisection() / 2.5_GBps ==
              Approx(static_cast<double>(smallest_flow(fabric, 2.5_GBps))).epsilon(1e-12));
      }
}

TEST_CASE("a dragonfly+ goes up to its group's spine, over and down") {
  const Fabric fabric = build_fabric(dragonfly_plus_cluster(4, 3, 2, 2), 24);
  CHECK(walk(fabric, {0}, {1}) == "GPU 0>NIC 0>router 0>NIC 1>GPU 1");
  CHECK(walk(fabric, {0}, {2}) == "GPU 0>NIC 0>router 0>router 12>router 1>NIC 2>GPU 2");
  CHECK(walk(fabric, {0}, {23}) ==
        "GPU 0>NIC 0>router 0>router 12>router 15>router 11>NIC 23>GPU 23");
  CHECK(fabric.link(fabric.path({0}, {2})[2]).capacity == 50_GBps);  // 2 x 50 GB/s, 2:1
  CHECK(fabric.levels()[1].taper() == 3 * 100e9 / (3 * 40e9));
}

TEST_CASE("a HyperX corrects one dimension after the other") {
  const Fabric fabric = build_fabric(hyperx_cluster({3, 4}, 1, 10e9), 12);
  CHECK(walk(fabric, {1}, {11}) == "GPU 1>NIC 1>router 1>router 9>router 11>NIC 11>GPU 11");
  CHECK(fabric.diameter() == 4);
  CHECK(cable_counts(fabric).back().cables == 4 * 3 + 3 * 6);
  // Four routers of a row: two against two have four cables; three rows of these.
  CHECK(fabric.bisection() == 3 * 4 * 10_GBps);
}

TEST_CASE("a message between sites is late by the wide-area latency") {
  spec::Cluster cluster = sites_cluster(2, 4, 2, 10e9);
  cluster.fabric.wan_latency = 20_ms;
  const Fabric fabric = build_fabric(cluster, 8);
  CHECK(fabric.latency({0}, {3}) == 5_us);
  CHECK(fabric.latency({0}, {4}) == 5_us + 20_ms);
  CHECK(fabric.bisection() == 10_GBps);
  CHECK(fabric.link(fabric.path({0}, {7})[3]).kind == LinkKind::wan);
}

TEST_CASE("[M190] ECMP flows collide as balls in bins, and keep their way") {
  spec::Cluster cluster = with_ecmp(fat_tree_cluster(64, 32, 1));  // 32 spines
  const Fabric fabric = build_fabric(cluster, 64);
  CHECK(counts(fabric)["spine switch"] == 32);
  std::map<std::uint32_t, int> load;
  for (std::uint32_t gpu = 0; gpu < 32; ++gpu) {
    const std::vector<LinkId> path = fabric.path({gpu}, {gpu + 32});
    CHECK(path == fabric.path({gpu}, {gpu + 32}));
    CHECK(fabric.link(path[2]).capacity == 50_GBps);
    ++load[path[2].value];
  }
  CHECK(load.size() < 32);  // 32 (1 - (1 - 1/32)^32) = 20.4 are expected
  CHECK(load.size() > 14);
  cluster.fabric.routing_seed = 8;
  int changed = 0;
  const Fabric other = build_fabric(cluster, 64);
  for (std::uint32_t gpu = 0; gpu < 32; ++gpu)
    changed += other.path({gpu}, {gpu + 32}) != fabric.path({gpu}, {gpu + 32});
  CHECK(changed > 16);
  CHECK(fabric.bisection() == build_fabric(fat_tree_cluster(64, 32, 1), 64).bisection());
}

TEST_CASE("ECMP over many flows loads all ways alike") {
  const Fabric fabric = build_fabric(with_ecmp(pod_tree_cluster(64, 4, 4, 1)), 64);
  std::map<std::uint32_t, int> load;
  for (std::uint32_t from = 0; from < 16; ++from)
    for (std::uint32_t to = 16; to < 64; ++to) ++load[fabric.path({from}, {to})[3].value];
  CHECK(load.size() == 4 * 4);  // spines of a pod x cores of a plane
  for (const auto& [link, flows] : load) {
    CHECK(flows > 48 / 2);
    CHECK(flows < 48 * 2);
  }
}

TEST_CASE("a failed cable is avoided, a slow one is slow") {
  spec::Cluster cluster = with_ecmp(fat_tree_cluster(8, 4, 1));
  cluster.fabric.degraded = {{"leaf switch 0", "spine switch 1", 0},
                             {"spine switch 2", "leaf switch 1", 0.25},
                             {"NIC 3", "", 0.5}};
  CHECK(spec::violations(cluster).empty());
  CHECK(degraded_violations(cluster).empty());
  const Fabric fabric = build_fabric(cluster, 8);
  std::set<std::string> spines;
  for (std::uint32_t from = 0; from < 4; ++from)
    for (std::uint32_t to = 4; to < 8; ++to) {
      const auto route = hops(fabric, {from}, {to});
      spines.insert(route[2].to);
      CHECK(route[3].link.capacity == (route[2].to == "spine switch 2" ? 12.5_GBps : 50_GBps));
      CHECK(route[1].link.capacity == (from == 3 ? 25_GBps : 50_GBps));
    }
  CHECK_FALSE(spines.contains("spine switch 1"));
  CHECK(spines.contains("spine switch 2"));
}

TEST_CASE("cables that are not there, and the last that fails, are told") {
  spec::Cluster cluster = with_ecmp(fat_tree_cluster(4, 2, 2));  // one spine
  cluster.fabric.degraded = {{"leaf switch 0", "leaf switch 1", 0.5},
                             {"NIC 9", "", 0.5},
                             {"leaf switch 1", "spine switch 0", 0}};
  std::vector<std::string> what;
  for (const spec::Violation& violation : degraded_violations(cluster))
    what.push_back(violation.what);
  CHECK(what == std::vector<std::string>{"no cable joins \"leaf switch 0\" and \"leaf switch 1\"",
                                         "there is no \"NIC 9\"",
                                         "no way from GPU 0 to GPU 2 is left"});
  cluster.fabric.routing = spec::Routing::spray;
  CHECK(spec::violations(cluster).at(0).what == "there is no way around \"leaf switch 1\"");
}

TEST_CASE("a network is read from CSV and from GraphML alike") {
  const std::string csv =
      "from,to,bandwidth,count\nnode 0,a,,\nnode 1,b,,\nnode 2,c,,\na,b,100Gbps,2\nb,c,200Gbps,\n";
  const std::string graphml = R"(<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="name" attr.type="string"/>
  <key id="d1" for="edge" attr.name="bandwidth" attr.type="string"/>
  <key id="d2" for="edge" attr.name="count" attr.type="int"/>
  <graph id="G" edgedefault="undirected">
    <node id="n0"><data key="d0">node 0</data></node>
    <node id="n1"><data key="d0">node 1</data></node>
    <node id="node 2"/>
    <node id="a"/><node id="b"/><node id="c"/>
    <edge source="n0" target="a"/>
    <edge source="n1" target="b"/>
    <edge source="node 2" target="c"/>
    <edge source="a" target="b"><data key="d1">100Gbps</data><data key="d2">2</data></edge>
    <edge source="b" target="c"><data key="d1">200Gbps</data></edge>
  </graph>
</graphml>)";
  for (const auto& [text, file] : {std::pair(csv, "x.csv"), std::pair(graphml, "x.graphml")}) {
    INFO(file);
    Problems problems;
    spec::Cluster cluster = bare_cluster(spec::FabricKind::graph, 3);
    cluster.fabric.graph = read_network(text, file, problems);
    CHECK(problems.empty());
    CHECK(spec::violations(cluster).empty());
    const Fabric fabric = build_fabric(cluster, 3);
    CHECK(walk(fabric, {0}, {2}) == "GPU 0>NIC 0>router 0>router 1>router 2>NIC 2>GPU 2");
    CHECK(fabric.link(fabric.path({0}, {2})[3]).capacity == 25_GBps);
    CHECK(fabric.diameter() == 4);
  }
}

TEST_CASE("every fault of a drawn network is told") {
  spec::Cluster cluster = graph_cluster({0, 1, 2}, {{0, 1}});
  cluster.nodes = 4;
  cluster.fabric.graph.edges.push_back({"node 0", "node 1", 1_GBps});
  cluster.fabric.graph.edges.push_back({"s0", "s1", BytesPerSecond(0)});
  cluster.fabric.graph.edges.push_back({"node 7", "s1", BytesPerSecond(0)});
  cluster.fabric.graph.edges.push_back({"s1", "s1", 1_GBps});
  std::vector<std::string> what;
  for (const spec::Violation& violation : spec::violations(cluster)) what.push_back(violation.what);
  CHECK(what == std::vector<std::string>{"\"node 0\" is cabled to \"node 1\"",
                                         "\"s0\" to \"s1\" has no bandwidth",
                                         "node 7 of a cluster of 4", "\"s1\" is cabled to itself",
                                         "1 of 4 nodes have no cable, the first is node 3",
                                         "nothing joins \"node 0\" and \"node 2\""});
}

TEST_CASE("a network file that is cut anywhere is an error or a network, never a crash") {
  const std::string csv = "from,to,bandwidth,count\nnode 0,a,,\na,b,100Gbps,2\n";
  const std::string xml =
      "<graphml><key id=\"k\" attr.name=\"bandwidth\"/><graph><node id=\"a\"/><node id=\"b\"/>"
      "<edge source=\"a\" target=\"b\"><data key=\"k\">1Gbps</data></edge></graph></graphml>";
  for (const auto& [text, file] : {std::pair(csv, "x.csv"), std::pair(xml, "x.graphml")})
    for (std::size_t length = 0; length < text.size(); ++length) {
      Problems problems;
      read_network(text.substr(0, length), file, problems);
      if (file == std::string("x.graphml")) CHECK_FALSE(problems.empty());
    }
}
