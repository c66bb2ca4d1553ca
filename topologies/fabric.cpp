// SPDX-License-Identifier: Apache-2.0
// Routes between GPUs.
#include "topologies/fabric.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "sim/base/check.hpp"
#include "topologies/cut.hpp"

namespace scapesim::topology {

namespace {

LinkId reverse(LinkId link) { return {link.value ^ 1u}; }

}  // namespace

Fabric::Step Fabric::up(Graph::vertex_descriptor from) const {
  const auto edge = *out_edges(from, parts_.graph).first;
  return {target(edge, parts_.graph), parts_.graph[edge].id};
}

GpuId Fabric::on_rail_of(GpuId gpu, GpuId destination) const {
  const std::vector<std::uint32_t>& nics = parts_.node.nic;
  const std::uint32_t rail = nics[local(destination)];
  if (nics[local(gpu)] == rail) return gpu;
  const auto peer = std::ranges::find(nics, rail);
  return {gpu.value - local(gpu) + static_cast<std::uint32_t>(peer - nics.begin())};
}

void Fabric::append_inside(GpuId from, GpuId to, std::vector<LinkId>& path) const {
  const NodePaths& node = parts_.node;
  if (!node.up.empty()) {
    path.push_back(node_link(from, node.up[local(from)]));
    path.push_back(reverse(node_link(to, node.up[local(to)])));
    return;
  }
  const std::size_t row = local(from) * static_cast<std::size_t>(parts_.gpus_per_node);
  for (const std::uint32_t number : node.between[row + local(to)])
    path.push_back(node_link(from, number));
}

void Fabric::append_network(GpuId from, GpuId to, std::vector<LinkId>& path) const {
  constexpr std::size_t kDeepest = 8;
  const Step source_nic = up(parts_.nic_vertices[nic_of(from)]);
  const Step destination_nic = up(parts_.nic_vertices[nic_of(to)]);
  path.push_back(source_nic.up);
  if (parts_.routing) {
    parts_.routing->append(parts_.graph[source_nic.to].ordinal,
                           parts_.graph[destination_nic.to].ordinal,
                           (std::uint64_t{from.value} << 32) + to.value, path);
    path.push_back(reverse(destination_nic.up));
    return;
  }
  std::array<LinkId, kDeepest> downs{};
  std::size_t depth = 0;
  downs[depth++] = reverse(destination_nic.up);
  for (Graph::vertex_descriptor a = source_nic.to, b = destination_nic.to; a != b;) {
    SCAPESIM_CHECK(depth < kDeepest, "a tree of over {} levels", kDeepest);
    const Step source = up(a), destination = up(b);
    path.push_back(source.up);
    downs[depth++] = reverse(destination.up);
    a = source.to;
    b = destination.to;
  }
  while (depth > 0) path.push_back(downs[--depth]);
}

void Fabric::append_path(GpuId from, GpuId to, std::vector<LinkId>& path) const {
  if (from == to) return;
  if (node_of(from) == node_of(to)) return append_inside(from, to, path);
  const GpuId exit = parts_.rails ? on_rail_of(from, to) : from;
  if (exit != from) append_inside(from, exit, path);
  for (const std::uint32_t number : parts_.node.to_nic[local(exit)])
    path.push_back(node_link(exit, number));
  append_network(exit, to, path);
  const NodePaths::Way& way = parts_.node.to_nic[local(to)];
  for (std::size_t i = way.size(); i-- > 0;) path.push_back(reverse(node_link(to, way[i])));
}

std::vector<LinkId> Fabric::path(GpuId from, GpuId to) const {
  std::vector<LinkId> links;
  append_path(from, to, links);
  return links;
}

/// [M193] All (n-1)! directed cycles use every link (n-2)! times; steps coprime to n use theirs
/// once.
std::vector<std::vector<GpuId>> Fabric::node_rings(std::span<const GpuId> gpus) const {
  constexpr std::size_t kMostForAll = 5;
  std::vector<GpuId> ring(gpus.begin(), gpus.end());
  std::vector<std::vector<GpuId>> list;
  if (!parts_.mesh || gpus.size() < 3) return {ring};
  if (gpus.size() <= kMostForAll) {
    std::ranges::sort(ring);
    do list.push_back(ring);
    while (std::next_permutation(ring.begin() + 1, ring.end()));
    return list;
  }
  for (std::size_t step = 1; step < gpus.size(); ++step) {
    if (std::gcd(step, gpus.size()) != 1) continue;
    for (std::size_t i = 0; i < gpus.size(); ++i) ring[i] = gpus[i * step % gpus.size()];
    list.push_back(ring);
  }
  return list;
}

Seconds Fabric::latency(GpuId from, GpuId to) const {
  if (node_of(from) == node_of(to)) return Seconds(0);
  const auto site = [&](GpuId gpu) {
    return static_cast<int>(machine_of(gpu)) / parts_.nodes_per_site;
  };
  const bool wide = parts_.nodes_per_site > 0 && site(from) != site(to);
  return wide ? parts_.latency + parts_.wan_latency : parts_.latency;
}

BytesPerSecond Fabric::bisection() const {
  if (parts_.bisection) return parts_.bisection();
  const int nodes = gpus() / parts_.gpus_per_node;
  return parts_.routing ? routed_bisection(parts_, nodes) : tree_bisection(parts_, nodes);
}

}  // namespace scapesim::topology
