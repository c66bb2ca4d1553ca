// SPDX-License-Identifier: Apache-2.0
#include "sim/spec/network_rules.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <set>
#include <utility>

namespace scapesim::spec {
namespace {

using Violations = std::vector<Violation>;

void add_tree(Violations& list, std::string what, std::string hint) {
  list.push_back({"cluster.pcie_tree", std::move(what), std::move(hint)});
}

/// The number behind a word, "GPU 3".
std::optional<int> number_of(std::string_view name, std::string_view word) {
  if (!name.starts_with(word)) return std::nullopt;
  name.remove_prefix(word.size());
  int number = 0;
  const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (failure != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

bool is_known_part(const std::string& name, const Cluster& cluster) {
  const std::optional<int> gpu = number_of(name, "GPU "), nic = number_of(name, "NIC ");
  return (gpu && *gpu < cluster.gpus_per_node) ||
         (nic && *nic < std::min(cluster.nics_per_node, cluster.gpus_per_node)) ||
         number_of(name, "socket ") || number_of(name, "switch ");
}

using Parents = std::map<std::string, std::string>;

Parents parents_of(const Cluster& cluster, Violations& list) {
  Parents parents;
  for (const PcieBranch& branch : cluster.pcie_tree) {
    if (!number_of(branch.parent, "socket ") && !number_of(branch.parent, "switch "))
      add_tree(list, fmt::format("nothing hangs below \"{}\"", branch.parent),
               "\"socket N\" or \"switch N\"");
    for (const std::string& child : branch.children) {
      if (number_of(child, "socket "))
        add_tree(list, fmt::format("\"{}\" is below \"{}\"", child, branch.parent),
                 "sockets are the roots");
      else if (!is_known_part(child, cluster))
        add_tree(list, fmt::format("the node has no \"{}\"", child),
                 fmt::format("GPU 0 to {}, NIC 0 to {}, switch N", cluster.gpus_per_node - 1,
                             std::min(cluster.nics_per_node, cluster.gpus_per_node) - 1));
      if (!parents.try_emplace(child, branch.parent).second)
        add_tree(
            list,
            fmt::format("\"{}\" is below \"{}\" and \"{}\"", child, parents[child], branch.parent),
            "a part hangs in one place");
    }
  }
  return parents;
}

void check_pcie_tree(const Cluster& cluster, Violations& list) {
  const Parents parents = parents_of(cluster, list);
  std::set<std::string> sockets, told;
  bool cycle_told = false;
  for (const auto& [child, parent] : parents) {
    std::set<std::string> seen = {child};
    std::string at = parent;
    while (parents.contains(at) && seen.insert(at).second) at = parents.at(at);
    if (number_of(at, "socket ")) sockets.insert(at);
    if (parents.contains(at)) {
      if (at == child && !std::exchange(cycle_told, true))
        add_tree(list, fmt::format("\"{}\" is below itself", child), "a tree has no cycles");
    } else if (number_of(at, "switch ")) {
      if (told.insert(at).second)
        add_tree(list, fmt::format("\"{}\" is below no socket", at),
                 fmt::format("such as \"socket 0: {}\"", at));
    }
  }
  const auto expect = [&](std::string_view word, int count) {
    for (int i = 0; i < count; ++i)
      if (const std::string name = fmt::format("{} {}", word, i); !parents.contains(name))
        add_tree(list, fmt::format("\"{}\" is missing", name), "every GPU and NIC has a place");
  };
  expect("GPU", cluster.gpus_per_node);
  expect("NIC", std::min(cluster.nics_per_node, cluster.gpus_per_node));
  if (sockets.size() > 1 && cluster.socket_bandwidth.si() <= 0)
    list.push_back({"cluster.socket_bandwidth",
                    fmt::format("missing with {} sockets", sockets.size()), "such as \"40GB/s\""});
}

void check_affinity(const Cluster& cluster, Violations& list) {
  if (cluster.nic_affinity.empty()) return;
  const int nics = std::min(cluster.nics_per_node, cluster.gpus_per_node);
  if (static_cast<int>(cluster.nic_affinity.size()) != cluster.gpus_per_node)
    list.push_back({"cluster.nic_affinity",
                    fmt::format("{} numbers for {} GPUs per node", cluster.nic_affinity.size(),
                                cluster.gpus_per_node),
                    "the adapter of each GPU of a node, such as \"0,0,1,1\""});
  const int most = *std::ranges::max_element(cluster.nic_affinity);
  if (most >= nics)
    list.push_back({"cluster.nic_affinity", fmt::format("a node has no NIC {}", most),
                    nics < cluster.nics_per_node ? fmt::format("0 to {}, one per GPU", nics - 1)
                                                 : fmt::format("0 to {}", nics - 1)});
}

/// Switches that a graph's cables join, and which are joined.
struct Reach {
  std::map<std::string, std::string> leader;

  const std::string& find(const std::string& name) {
    std::string& above = leader.try_emplace(name, name).first->second;
    if (above == name) return above;
    above = find(std::string(above));
    return above;
  }
  void join(const std::string& a, const std::string& b) {
    const std::string first = find(a), second = find(b);
    leader[first] = second;
  }
};

void add_graph(Violations& list, std::string what, std::string hint) {
  list.push_back({"cluster.graph", std::move(what), std::move(hint)});
}

/// Nodes that share NVLink also share their place in the network.
void check_domain(const Cluster& cluster, Violations& list) {
  const int shared = cluster.nvlink_domain_nodes;
  const Fabric& fabric = cluster.fabric;
  if (shared == 1) return;
  if (cluster.node_fabric != NodeFabric::switch_)
    list.push_back(
        {"cluster.nvlink_domain_nodes",
         fmt::format("nodes joined by \"{}\" share no NVLink switch", name_of(cluster.node_fabric)),
         "set node_fabric = \"switch\" or nvlink_domain_nodes = 1"});
  if (fabric.kind == FabricKind::torus || fabric.kind == FabricKind::graph ||
      fabric.switch_radix > 0)
    list.push_back({"cluster.nvlink_domain_nodes",
                    "is not built for a torus, a graph and trees by radix",
                    "a switch, racks, groups or sites hold whole domains"});
  const auto whole = [&](const char* key, int nodes) {
    if (nodes % shared != 0)
      list.push_back({"cluster.nvlink_domain_nodes",
                      fmt::format("{} = {} does not hold whole domains of {}", key, nodes, shared),
                      fmt::format("a multiple of {} is needed", shared)});
  };
  whole("nodes_per_rack", fabric.nodes_per_rack);
  whole("nodes_per_router", fabric.nodes_per_router);
  whole("nodes_per_site", fabric.nodes_per_site);
}

}  // namespace

std::optional<int> node_number(std::string_view name) {
  if (!name.starts_with("node")) return std::nullopt;
  name.remove_prefix(4);
  if (!name.empty() && (name[0] == ' ' || name[0] == '-' || name[0] == '_')) name.remove_prefix(1);
  return number_of(name, "");
}

void check_node(const Cluster& cluster, Violations& list) {
  check_affinity(cluster, list);
  const bool pcie = cluster.node_fabric == NodeFabric::pcie;
  check_domain(cluster, list);
  if (!pcie && !cluster.pcie_tree.empty())
    list.push_back(
        {"cluster.pcie_tree",
         fmt::format("is not used by node_fabric = \"{}\"", name_of(cluster.node_fabric)),
         "set node_fabric = \"pcie\" or leave it out"});
  if (!pcie) return;
  if (cluster.node_link_bandwidth.si() <= 0 && cluster.gpus_per_node == 1)
    list.push_back({"cluster.node_link_bandwidth", "missing with node_fabric = \"pcie\"",
                    "of a PCIe slot, such as \"32GB/s\""});
  if (cluster.peer_access != PeerAccess::all && cluster.host_memory_bandwidth.si() <= 0)
    list.push_back({"cluster.host_memory_bandwidth", "missing where GPUs copy through host memory",
                    "such as \"400GB/s\""});
  if (!cluster.pcie_tree.empty()) check_pcie_tree(cluster, list);
}

void check_routing(const Cluster& cluster, Violations& list) {
  const FabricKind kind = cluster.fabric.kind;
  const bool ecmp = cluster.fabric.routing == Routing::ecmp;
  if (ecmp && kind != FabricKind::fat_tree && kind != FabricKind::graph)
    list.push_back({"cluster.routing", fmt::format("ecmp is not built for \"{}\"", name_of(kind)),
                    "fat_tree and graph have static routes"});
  const bool other_ways = kind == FabricKind::graph || (kind == FabricKind::fat_tree && ecmp);
  for (const Degraded& cable : cluster.fabric.degraded)
    if (cable.share <= 0 &&
        (!other_ways || cable.from.starts_with("NIC") || cable.from.starts_with("GPU")))
      list.push_back({"cluster.degraded", fmt::format("there is no way around \"{}\"", cable.from),
                      "give the share of the cable that is left, such as 0.5; fat_tree with "
                      "routing = \"ecmp\" and graph find ways around failed cables"});
}

void check_graph(const Cluster& cluster, Violations& list) {
  constexpr std::size_t kMostSwitches = 4096;
  const NetworkGraph& graph = cluster.fabric.graph;
  if (graph.file.empty())
    return add_graph(list, "missing for a graph", "a file, such as \"network.csv\"");
  Reach reach;
  std::set<int> nodes;
  std::set<std::string> switches;
  for (const GraphEdge& edge : graph.edges) {
    const std::optional<int> from = node_number(edge.from), to = node_number(edge.to);
    for (const auto& node : {from, to}) {
      if (!node) continue;
      if (*node < cluster.nodes)
        nodes.insert(*node);
      else
        add_graph(list, fmt::format("node {} of a cluster of {}", *node, cluster.nodes),
                  fmt::format("0 to {}", cluster.nodes - 1));
    }
    if (from && to)
      add_graph(list, fmt::format("\"{}\" is cabled to \"{}\"", edge.from, edge.to),
                "nodes are cabled to switches");
    else if (!from && !to && edge.capacity.si() <= 0)
      add_graph(list, fmt::format("\"{}\" to \"{}\" has no bandwidth", edge.from, edge.to),
                "such as 100Gbps");
    if (edge.from == edge.to)
      add_graph(list, fmt::format("\"{}\" is cabled to itself", edge.from), "");
    for (const std::string* name : {&edge.from, &edge.to})
      if (!node_number(*name)) switches.insert(*name);
    reach.join(edge.from, edge.to);
  }
  if (switches.size() > kMostSwitches)
    add_graph(list, fmt::format("{} switches", switches.size()),
              fmt::format("at most {} are built", kMostSwitches));
  int missing = 0;
  for (int node = cluster.nodes - 1; node >= 0; --node)
    missing = nodes.contains(node) ? missing : node + 1;
  if (missing > 0)
    add_graph(
        list,
        fmt::format("{} of {} nodes have no cable, the first is node {}",
                    cluster.nodes - static_cast<int>(nodes.size()), cluster.nodes, missing - 1),
        "name the nodes \"node 0\", \"node 1\" ...");
  const std::string* first = nullptr;
  for (const GraphEdge& edge : graph.edges) {
    if (first == nullptr) first = &edge.from;
    if (reach.find(edge.from) == reach.find(*first)) continue;
    add_graph(list, fmt::format("nothing joins \"{}\" and \"{}\"", *first, edge.from),
              "one network is needed");
    break;
  }
}

}  // namespace scapesim::spec
