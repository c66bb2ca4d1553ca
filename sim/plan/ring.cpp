// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/ring.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "sim/base/check.hpp"
#include "sim/plan/algorithms.hpp"
#include "sim/plan/link_classes.hpp"

namespace scapesim::plan {

namespace {

using graph::CollectiveKind;
using topology::Fabric;
using topology::GpuId;
using topology::LinkId;
using topology::LinkKind;

/// Where the last GPU of each of a node's NICs stands, in order of NICs.
std::vector<std::size_t> nic_ends(const Fabric& fabric, std::span<const GpuId> node) {
  std::map<std::uint32_t, std::size_t> last;
  for (std::size_t i = 0; i < node.size(); ++i) last[fabric.nic_of(node[i])] = i;
  std::vector<std::size_t> ends;
  for (const auto& [nic, end] : last) ends.push_back(end);
  return ends;
}

/// Sorts the hops of rings into classes.
class HopClasses {
 public:
  explicit HopClasses(const Sheet& sheet) : sheet_(sheet), own_(sheet.flows().size()) {}

  RingClass of(const Group& ring, std::size_t hops) {
    const auto each_hop = [&](auto act) {
      for (std::size_t i = 0; i < hops; ++i) {
        const GpuId from = ring[i], to = ring[(i + 1) % ring.size()];
        path_.clear();
        sheet_.fabric().append_path(from, to, path_);
        act(sheet_.fabric().node_of(from) != sheet_.fabric().node_of(to));
      }
    };
    std::map<HopClass, int> counts;
    each_hop([&](bool) { count(1); });
    each_hop([&](bool between) { ++counts[of_path(between)]; });
    each_hop([&](bool) { count(0); });
    return {counts.begin(), counts.end()};
  }

 private:
  void count(std::uint32_t more) {
    for (const LinkId id : path_) own_[index(id)] = more == 0 ? 0 : own_[index(id)] + more;
  }
  HopClass of_path(bool between) const {
    HopClass hop{.between_nodes = between};
    for (const LinkId id : path_) {
      const topology::Link& link = sheet_.fabric().link(id);
      HopClass::Part& part = is_inside(link.kind) ? hop.inside : hop.outside;
      const auto flows = static_cast<double>(sheet_.flows()[index(id)]);
      part.all_s_per_B = std::max(part.all_s_per_B, flows / link.capacity.si());
      part.own_s_per_B = std::max(part.own_s_per_B, own_[index(id)] / link.capacity.si());
      if (link.kind == LinkKind::nic) hop.nic_flows = std::max(hop.nic_flows, flows);
    }
    return hop;
  }

  const Sheet& sheet_;
  std::vector<std::uint32_t> own_;  ///< flows of the ring at hand
  std::vector<LinkId> path_;
};

/// True when all hops are of one kind and wait equally long at their first link, which no other
/// link is slower than: then a step costs the same everywhere, and no latency hides.
bool hops_are_alike(const Site& site, const Sheet& sheet) {
  if (site.in_node != 1 && site.nodes > 1) return false;
  const LinkKind first = site.nodes > 1 ? LinkKind::nic : LinkKind::node;
  double least = 1e300, most = 0, elsewhere = 0;
  for (std::uint32_t i = 0; i < sheet.flows().size(); ++i) {
    const topology::Link& link = site.fabric.link({i});
    if (sheet.flows()[i] == 0) continue;
    const double time = static_cast<double>(sheet.flows()[i]) / link.capacity.si();
    if (link.kind != first) {
      elsewhere = std::max(elsewhere, time);
      continue;
    }
    least = std::min(least, time);
    most = std::max(most, time);
  }
  return least == most && elsewhere <= most;
}

/// [M193] Ways round every node: one, or on a mesh as many as use its links alike, where all nodes
/// have equally many.
std::vector<std::vector<Group>> ways_round(const Places& places, const Fabric& fabric) {
  std::vector<std::vector<Group>> ways;
  for (const std::span<const GpuId> node : places.nodes) ways.push_back(fabric.node_rings(node));
  const auto as_first = [&](const std::vector<Group>& node) {
    return node.size() == ways.front().size();
  };
  if (std::ranges::all_of(ways, as_first)) return ways;
  for (std::size_t node = 0; node < ways.size(); ++node)
    ways[node] = {Group(places.nodes[node].begin(), places.nodes[node].end())};
  return ways;
}

/// Appends a node's GPUs so that the last one uses the node's NIC number `rail`.
void append_turned(Group& ring, const Fabric& fabric, const Group& node, std::size_t rail) {
  const auto first = static_cast<std::ptrdiff_t>(nic_ends(fabric, node)[rail]) + 1;
  ring.insert(ring.end(), node.begin() + first, node.end());
  ring.insert(ring.end(), node.begin(), node.begin() + first);
}

}  // namespace

/// Inside a node one ring per way round it, else one per way and rail, turned inside every node so
/// that its last GPU there uses the node's c-th NIC.
std::vector<Group> rings_of(const Places& places, const Fabric& fabric, std::size_t rails) {
  if (places.nodes.size() == places.ranks.size()) return {places.ranks};
  const std::vector<std::vector<Group>> ways = ways_round(places, fabric);
  if (ways.size() == 1) return ways.front();
  std::vector<Group> rings;
  for (std::size_t rail = 0; rail < rails; ++rail)
    for (std::size_t way = 0; way < ways.front().size(); ++way) {
      Group& ring = rings.emplace_back();
      for (const std::vector<Group>& node : ways) append_turned(ring, fabric, node[way], rail);
    }
  return rings;
}

std::vector<Group> rings_of(const Fabric& fabric, const Group& group) {
  const Site site = site_of(fabric, group);
  return rings_of(site.groups.front(), fabric, static_cast<std::size_t>(site.rails));
}

/// [M20] all-reduce, [M21] reduce-scatter and all-gather, [M25] broadcast: what one link of the
/// ring carries and how often a hop's latency is paid. Patarasuk and Yuan 2009.
RingWork ring_work(CollectiveKind kind, Bytes size, int ranks) {
  const Bytes chunk = size / ranks;
  const int around = ranks - 1;
  switch (kind) {
    case CollectiveKind::all_reduce:
      return {2 * around, 2 * around * chunk};
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
      return {around, around * chunk};
    case CollectiveKind::broadcast:
      return {around, size};
    case CollectiveKind::all_to_all:
    case CollectiveKind::send_recv:
      break;
  }
  throw InternalError("no ring algorithm for " + std::string(name_of(kind)));
}

// [M26] A hop between nodes pays the transport's latency, one inside a node its own; a chunk that
// travels around pays their mean per step.
std::vector<Stage> lay_ring(const Site& site, const CollectiveCall& call, Sheet::Keep keep) {
  Stage stage{.sheet = Sheet(site.fabric, keep)};
  const std::size_t hops = site.ranks - (call.kind == CollectiveKind::broadcast ? 1 : 0);
  const auto rails = static_cast<std::size_t>(site.rails);
  std::vector<std::vector<Group>> rings_of_group;
  std::size_t most_between = 0, most_rings = 0;
  for (const Places& places : site.groups) {
    rings_of_group.push_back(rings_of(places, site.fabric, rails));
    most_rings = std::max(most_rings, rings_of_group.back().size());
  }
  for (const std::vector<Group>& rings : rings_of_group)
    for (const Group& ring : rings) {
      std::size_t between = 0;
      for (std::size_t i = 0; i < hops; ++i) {
        const GpuId from = ring[i], to = ring[(i + 1) % ring.size()];
        stage.sheet.send(from, to, most_rings / rings.size());
        between += site.fabric.node_of(from) != site.fabric.node_of(to) ? 1 : 0;
      }
      most_between = std::max(most_between, between);
    }
  const bool whole = call.kind == CollectiveKind::broadcast;
  stage.numerator = whole ? 1 : site.ranks - 1;
  stage.denominator = (whole ? 1.0 : site.ranks) * static_cast<double>(most_rings);
  stage.ring_steps = site.ranks - 1;
  const double share = static_cast<double>(most_between) / static_cast<double>(hops);
  stage.steps_between = stage.ring_steps * share;
  stage.steps_inside = stage.ring_steps * (1 - share);
  if (whole || hops_are_alike(site, stage.sheet)) return single(std::move(stage));
  HopClasses sorter(stage.sheet);
  std::set<RingClass> classes;
  for (const Places& places : site.groups)
    classes.insert(sorter.of(rings_of(places, site.fabric, rails).front(), hops));
  stage.rings.assign(classes.begin(), classes.end());
  return single(std::move(stage));
}

}  // namespace scapesim::plan
