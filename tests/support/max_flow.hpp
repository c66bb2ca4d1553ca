// SPDX-License-Identifier: Apache-2.0
// Cuts of small fabrics by maximal flow, independent of the code under test.
#pragma once

#include <algorithm>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <cmath>
#include <vector>

#include "topologies/fabric.hpp"

namespace scapesim::test {

/// Largest flow from the NICs of one set of GPUs to those of the others, in units that divide every
/// capacity of the network, by Boost's push-relabel. Links inside nodes
/// are left out; those on the way to a NIC are not limited.
inline long max_flow(const topology::Fabric& fabric, const std::vector<bool>& in_a,
                     BytesPerSecond unit) {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using FlowGraph = boost::adjacency_list<
      boost::vecS, boost::vecS, boost::directedS, boost::no_property,
      boost::property<
          boost::edge_capacity_t, long,
          boost::property<boost::edge_residual_capacity_t, long,
                          boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;
  const topology::Graph& graph = fabric.graph();
  FlowGraph flow(num_vertices(graph) + 2);
  auto capacity = get(boost::edge_capacity, flow);
  auto reverse = get(boost::edge_reverse, flow);
  const auto add = [&](std::size_t from, std::size_t to, long amount) {
    const auto edge = add_edge(from, to, flow).first;
    const auto back = add_edge(to, from, flow).first;
    capacity[edge] = amount;
    capacity[back] = 0;
    reverse[edge] = back;
    reverse[back] = edge;
  };
  const long unlimited = 1'000'000;
  const std::size_t source = num_vertices(graph);
  for (const auto edge : boost::make_iterator_range(edges(graph))) {
    const topology::Link& link = fabric.link(graph[edge].id);
    if (link.kind == topology::LinkKind::node || link.kind == topology::LinkKind::memory) continue;
    const bool free = link.kind == topology::LinkKind::lane || inside_node(link.kind);
    add(boost::source(edge, graph), target(edge, graph),
        free ? unlimited : std::lround(link.capacity / unit));
  }
  for (std::uint32_t gpu = 0; gpu < in_a.size(); ++gpu)
    in_a[gpu] ? add(source, fabric.vertex({gpu}), unlimited)
              : add(fabric.vertex({gpu}), source + 1, unlimited);
  return push_relabel_max_flow(flow, source, source + 1);
}

/// The smallest of these flows over all halves of the nodes.
inline long smallest_flow(const topology::Fabric& fabric, BytesPerSecond unit) {
  const int nodes = fabric.node_of({static_cast<std::uint32_t>(fabric.gpus() - 1)}) + 1;
  const int gpus_per_node = fabric.gpus() / nodes;
  std::vector<bool> node_in_a(static_cast<std::size_t>(nodes));
  std::fill(node_in_a.end() - nodes / 2, node_in_a.end(), true);
  long smallest = 1'000'000;
  do {
    std::vector<bool> in_a;
    for (const bool side : node_in_a)
      in_a.insert(in_a.end(), static_cast<std::size_t>(gpus_per_node), side);
    smallest = std::min(smallest, max_flow(fabric, in_a, unit));
  } while (std::next_permutation(node_in_a.begin(), node_in_a.end()));
  return smallest;
}

}  // namespace scapesim::test
