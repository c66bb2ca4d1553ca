// SPDX-License-Identifier: Apache-2.0
// Cables that are slower than built, or failed.
#include "topologies/degraded.hpp"

#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>

#include "topologies/build.hpp"
#include "topologies/summary.hpp"

namespace scapesim::topology {

namespace {

using Ends = std::pair<VertexKind, std::uint32_t>;

constexpr VertexKind kKinds[] = {VertexKind::gpu,         VertexKind::nic,
                                 VertexKind::node_switch, VertexKind::pcie_switch,
                                 VertexKind::socket,      VertexKind::host_memory,
                                 VertexKind::leaf_switch, VertexKind::spine_switch,
                                 VertexKind::core_switch, VertexKind::router};

/// "leaf switch 3"
std::optional<Ends> parse_name(std::string_view name) {
  for (const VertexKind kind : kKinds) {
    const std::string_view word = name_of(kind);
    if (!name.starts_with(word) || name.size() < word.size() + 2 || name[word.size()] != ' ')
      continue;
    const char* begin = name.data() + word.size() + 1;
    const char* end = name.data() + name.size();
    std::uint32_t ordinal = 0;
    const auto [stop, failure] = std::from_chars(begin, end, ordinal);
    if (failure == std::errc() && stop == end) return Ends{kind, ordinal};
  }
  return std::nullopt;
}

/// The way up of the cable between two parts, also when they are named in the other order; that of
/// the first's first cable without a second.
std::optional<LinkId> cable_of(const Fabric::Parts& parts, const spec::Degraded& cable,
                               const std::map<Ends, VertexId>& vertices) {
  const auto vertex = [&](const std::string& name) -> std::optional<VertexId> {
    const std::optional<Ends> ends = parse_name(name);
    const auto found = ends ? vertices.find(*ends) : vertices.end();
    return found == vertices.end() ? std::nullopt : std::optional(found->second);
  };
  const std::optional<VertexId> from = vertex(cable.from);
  const std::optional<VertexId> to = vertex(cable.to);
  if (!from || (!to && !cable.to.empty())) return std::nullopt;
  for (const auto edge : boost::make_iterator_range(out_edges(*from, parts.graph))) {
    const LinkId id = parts.graph[edge].id;
    if (!to || target(edge, parts.graph) == *to) return LinkId{id.value & ~1U};
  }
  return std::nullopt;
}

std::map<Ends, VertexId> numbered(const Fabric::Parts& parts) {
  std::map<Ends, VertexId> list;
  for (const auto vertex : boost::make_iterator_range(vertices(parts.graph)))
    list[{parts.graph[vertex].kind, parts.graph[vertex].ordinal}] = vertex;
  return list;
}

void check_ways(const Fabric& fabric, std::vector<spec::Violation>& list) {
  const std::optional<Routing>& routing = fabric.parts().routing;
  if (!routing || !routing->joined) return;
  std::map<std::uint32_t, int> switches;  // with nodes, and one of these
  for (std::uint32_t gpu = 0; gpu < static_cast<std::uint32_t>(fabric.gpus());
       gpu += static_cast<std::uint32_t>(fabric.parts().gpus_per_node))
    switches.try_emplace(fabric.switch_of({gpu}), static_cast<int>(gpu));
  for (const auto& [from, a] : switches)
    for (const auto& [to, b] : switches)
      if (!routing->joined(from, to)) {
        list.push_back({"cluster.degraded",
                        fmt::format("no way from GPU {} to GPU {} is left", a, b),
                        "let a cable work"});
        return;
      }
}

}  // namespace

std::vector<bool> failed_cables(const Fabric::Parts& parts, const spec::Cluster& cluster) {
  std::vector<bool> failed;
  if (cluster.fabric.degraded.empty()) return failed;
  const std::map<Ends, VertexId> vertices = numbered(parts);
  for (const spec::Degraded& cable : cluster.fabric.degraded) {
    if (cable.share > 0) continue;
    const std::optional<LinkId> up = cable_of(parts, cable, vertices);
    if (!up) continue;  // in another part of the machine
    failed.resize(parts.links.size() / 2);
    failed[up->value / 2] = true;
  }
  return failed;
}

Fabric degraded(const Fabric& fabric, const spec::Cluster& cluster) {
  const double background = cluster.fabric.background_load;
  if (cluster.fabric.degraded.empty() && background == 0) return fabric;
  Fabric::Parts parts = fabric.parts();
  for (Link& link : parts.links)
    if (between_switches(link.kind)) link.capacity = (1 - background) * link.capacity;
  const std::map<Ends, VertexId> vertices = numbered(parts);
  for (const spec::Degraded& cable : cluster.fabric.degraded) {
    const std::optional<LinkId> up = cable_of(parts, cable, vertices);
    if (!up || cable.share <= 0) continue;
    for (const std::uint32_t id : {up->value, up->value + 1})
      parts.links[id].capacity = cable.share * parts.links[id].capacity;
  }
  parts.bisection = [built = fabric] { return built.bisection(); };
  return Fabric(std::move(parts));
}

std::vector<spec::Violation> degraded_violations(const spec::Cluster& cluster) {
  constexpr std::int64_t kMostGpus = 200'000;
  std::vector<spec::Violation> list;
  const std::int64_t gpus = std::int64_t{cluster.nodes} * cluster.gpus_per_node;
  if (cluster.fabric.degraded.empty()) return list;
  if (gpus > kMostGpus) {
    list.push_back({"cluster.degraded", fmt::format("a cluster of {} GPUs", gpus),
                    fmt::format("at most {} with degraded cables", kMostGpus)});
    return list;
  }
  const Fabric fabric = build_fabric(cluster, cluster.nodes);
  const std::map<Ends, VertexId> vertices = numbered(fabric.parts());
  for (const spec::Degraded& cable : cluster.fabric.degraded)
    if (!cable_of(fabric.parts(), cable, vertices))
      list.push_back({"cluster.degraded",
                      cable.to.empty()
                          ? fmt::format("there is no \"{}\"", cable.from)
                          : fmt::format("no cable joins \"{}\" and \"{}\"", cable.from, cable.to),
                      "names as scapesim topology show --path prints them, such as \"NIC 3\" or "
                      "\"leaf switch 0 - spine switch 1\""});
  check_ways(fabric, list);
  return list;
}

}  // namespace scapesim::topology
