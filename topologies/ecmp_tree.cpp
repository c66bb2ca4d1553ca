// SPDX-License-Identifier: Apache-2.0
// Fat trees with static routes: parallel spines are switches of their own, and a hash of its two
// ends gives every flow one of them, so that flows collide (Hopps, "Analysis of an Equal-Cost
// Multi-Path Algorithm", RFC 2992, 2000). Cables that failed are left out of the choice.
#include <algorithm>
#include <cmath>
#include <memory>

#include "sim/base/check.hpp"
#include "sim/base/random.hpp"
#include "topologies/build.hpp"

namespace scapesim::topology {

std::uint64_t mixed(std::uint64_t seed, std::uint64_t flow, std::uint64_t place) {
  Random random(Random(Random(seed).bits() ^ flow).bits() ^ place);
  return random.bits();
}

namespace {

/// Leaves have one cable to each spine of their pod, and spine i of a pod one to each core of its
/// plane i. Without pods all leaves are below one set of spines.
struct Planes {
  std::uint32_t leaves_per_pod = 0;
  std::uint32_t spines = 0;  ///< per pod
  std::uint32_t cores = 0;   ///< per plane, 0 without pods
  std::uint64_t seed = 0;
  std::vector<LinkId> leaf_up;   ///< by leaf and spine
  std::vector<LinkId> spine_up;  ///< by pod, spine and core
  std::vector<bool> failed;      ///< by cable, empty when none did

  bool works(LinkId up) const { return failed.empty() || !failed[up.value / 2]; }
  LinkId from_leaf(std::uint32_t leaf, std::uint32_t spine) const {
    return leaf_up[std::size_t{leaf} * spines + spine];
  }
  LinkId from_spine(std::uint32_t pod, std::uint32_t spine, std::uint32_t core) const {
    return spine_up[(std::size_t{pod} * spines + spine) * cores + core];
  }
  std::uint32_t pod(std::uint32_t leaf) const { return leaf / leaves_per_pod; }
  std::uint32_t ways(std::uint32_t from, std::uint32_t to) const {
    return pod(from) == pod(to) ? spines : spines * cores;
  }
  /// The cables of a way; empty when one of them failed.
  std::vector<LinkId> links(std::uint32_t from, std::uint32_t to, std::uint32_t way) const {
    const std::uint32_t spine = way % spines, core = way / spines;
    std::vector<LinkId> ups = {from_leaf(from, spine)}, downs = {from_leaf(to, spine)};
    if (pod(from) != pod(to)) {
      ups.push_back(from_spine(pod(from), spine, core));
      downs.push_back(from_spine(pod(to), spine, core));
    }
    const auto broken = [&](LinkId up) { return !works(up); };
    if (std::ranges::any_of(ups, broken) || std::ranges::any_of(downs, broken)) return {};
    for (std::size_t i = downs.size(); i-- > 0;) ups.push_back({downs[i].value + 1});
    return ups;
  }
  /// [M190] The way of a flow: the hash's choice, or the next whose cables all work.
  std::vector<LinkId> route(std::uint32_t from, std::uint32_t to, std::uint64_t flow) const {
    const std::uint32_t count = ways(from, to);
    const auto first = static_cast<std::uint32_t>(mixed(seed, flow, from) % count);
    for (std::uint32_t i = 0; i < count; ++i) {
      std::vector<LinkId> way = links(from, to, (first + i) % count);
      if (!way.empty()) return way;
    }
    return {};
  }
};

/// How many cables of an adapter's rate make up a capacity.
std::uint32_t cables(BytesPerSecond capacity, BytesPerSecond rate) {
  return static_cast<std::uint32_t>(std::max(1.0, std::round(capacity / rate)));
}

LinkId join(Fabric::Parts& parts, VertexId lower, VertexId upper, Link link) {
  const LinkId up{static_cast<std::uint32_t>(parts.links.size())};
  connect(parts, lower, upper, link);
  return up;
}

std::vector<VertexId> new_switches(Fabric::Parts& parts, VertexKind kind, std::uint32_t count) {
  std::vector<VertexId> list;
  for (std::uint32_t i = 0; i < count; ++i) list.push_back(new_vertex(parts, {kind, i}));
  return list;
}

std::uint32_t blocks(std::int64_t items, std::int64_t per_block) {
  return static_cast<std::uint32_t>((items + per_block - 1) / per_block);
}

}  // namespace

Fabric ecmp_tree(const spec::Cluster& cluster, int nodes, std::span<const TreeLevel> levels) {
  const bool pods = levels.size() > 1;
  const std::uint32_t leaves = blocks(nodes, levels[0].nodes);
  Fabric::Parts parts = empty_parts(cluster, nodes);
  auto planes = std::make_shared<Planes>();
  planes->seed = static_cast<std::uint64_t>(cluster.fabric.routing_seed);
  planes->leaves_per_pod =
      pods ? static_cast<std::uint32_t>(levels[1].nodes / levels[0].nodes) : leaves;
  planes->spines = cables(levels[0].trunk.capacity, cluster.nic_bandwidth);
  if (pods)
    planes->cores = cables(levels[1].trunk.capacity / planes->spines, cluster.nic_bandwidth);
  const std::uint32_t pod_count = pods ? blocks(nodes, levels[1].nodes) : 1;

  const Link trunk{LinkKind::trunk, levels[0].trunk.capacity / planes->spines};
  const auto leaf = new_switches(parts, VertexKind::leaf_switch, leaves);
  const auto spine = new_switches(parts, VertexKind::spine_switch, pod_count * planes->spines);
  const auto core = new_switches(parts, VertexKind::core_switch, planes->spines * planes->cores);
  for (std::uint32_t i = 0; i < leaves; ++i)
    for (std::uint32_t j = 0; j < planes->spines; ++j)
      planes->leaf_up.push_back(
          join(parts, leaf[i], spine[i / planes->leaves_per_pod * planes->spines + j], trunk));
  for (std::uint32_t i = 0; pods && i < spine.size(); ++i)
    for (std::uint32_t j = 0; j < planes->cores; ++j)
      planes->spine_up.push_back(
          join(parts, spine[i], core[i % planes->spines * planes->cores + j],
               {LinkKind::pod, levels[1].trunk.capacity / (planes->spines * planes->cores)}));
  for (int node = 0; node < nodes; ++node)
    add_node(parts, cluster, leaf[static_cast<std::size_t>(node / levels[0].nodes)]);

  Fabric::Parts merged = tree_parts(cluster, nodes, levels);
  parts.levels = merged.levels;
  parts.switch_hops = merged.switch_hops;
  parts.bisection = [cluster, nodes, copy = std::vector(levels.begin(), levels.end())] {
    return Fabric(tree_parts(cluster, nodes, copy)).bisection();
  };
  planes->failed = failed_cables(parts, cluster);
  parts.routing = Routing{[planes](std::uint32_t from, std::uint32_t to, std::uint64_t flow,
                                   std::vector<LinkId>& path) {
                            if (from == to) return;
                            const std::vector<LinkId> way = planes->route(from, to, flow);
                            SCAPESIM_CHECK(!way.empty(), "no way from leaf {} to {}", from, to);
                            path.insert(path.end(), way.begin(), way.end());
                          },
                          [] { return std::vector<std::vector<std::uint32_t>>(); },
                          [planes](std::uint32_t from, std::uint32_t to) {
                            return from == to || !planes->route(from, to, 0).empty();
                          }};
  return Fabric(std::move(parts));
}

}  // namespace scapesim::topology
