// SPDX-License-Identifier: Apache-2.0
// Routes between GPUs.
#include "topologies/fabric.hpp"

#include <algorithm>

#include "topologies/cut.hpp"

namespace scapesim::topology {

namespace {

LinkId reverse(LinkId link) { return {link.value ^ 1u}; }

}  // namespace

Fabric::Step Fabric::up(Graph::vertex_descriptor from) const {
  const auto edge = *out_edges(from, parts_.graph).first;
  return {target(edge, parts_.graph), parts_.graph[edge].id};
}

std::uint32_t Fabric::nic_of(GpuId gpu) const { return parts_.graph[up(vertex(gpu)).to].ordinal; }

void Fabric::append_path(GpuId from, GpuId to, std::vector<LinkId>& path) const {
  if (from == to) return;
  if (node_of(from) == node_of(to)) {
    const auto second = [&](GpuId gpu) {
      return parts_.graph[*std::next(out_edges(vertex(gpu), parts_.graph).first)].id;
    };
    path.push_back(second(from));
    path.push_back(reverse(second(to)));
    return;
  }
  if (parts_.routing) {
    const Step source_nic = up(vertex(from)), destination_nic = up(vertex(to));
    const Step source = up(source_nic.to), destination = up(destination_nic.to);
    path.insert(path.end(), {source_nic.up, source.up});
    parts_.routing->append(parts_.graph[source.to].ordinal, parts_.graph[destination.to].ordinal,
                           path);
    path.insert(path.end(), {reverse(destination.up), reverse(destination_nic.up)});
    return;
  }
  const std::size_t first_down = path.size();
  Graph::vertex_descriptor source = vertex(from);
  Graph::vertex_descriptor destination = vertex(to);
  std::size_t ups = 0;
  while (source != destination) {
    const Step source_step = up(source);
    const Step destination_step = up(destination);
    path.insert(path.begin() + static_cast<std::ptrdiff_t>(first_down + ups++), source_step.up);
    path.insert(path.begin() + static_cast<std::ptrdiff_t>(first_down + ups),
                reverse(destination_step.up));
    source = source_step.to;
    destination = destination_step.to;
  }
}

std::vector<LinkId> Fabric::path(GpuId from, GpuId to) const {
  std::vector<LinkId> links;
  append_path(from, to, links);
  return links;
}

Seconds Fabric::latency(GpuId from, GpuId to) const {
  return node_of(from) == node_of(to) ? Seconds(0) : parts_.latency;
}

BytesPerSecond Fabric::bisection() const {
  const int nodes = gpus() / parts_.gpus_per_node;
  return parts_.routing ? routed_bisection(parts_, nodes) : tree_bisection(parts_, nodes);
}

}  // namespace scapesim::topology
