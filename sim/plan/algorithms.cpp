// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/algorithms.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "sim/base/check.hpp"

namespace scapesim::plan {

namespace {

using graph::Algorithm;
using graph::CollectiveKind;
using enum CollectiveKind;
using topology::GpuId;

constexpr std::string_view kManyNodes = "it needs ranks in several nodes";
constexpr std::string_view kUneven = "it needs equally many ranks in every node";
constexpr std::string_view kSwitch = "it needs a switch that joins the GPUs of a node";

std::string_view none(const Site& /*site*/, CollectiveKind /*kind*/) { return {}; }

/// A GPU reaches all others of its node over one link of its own.
bool has_node_switch(const Site& site) {
  const std::vector<GpuId>& ranks = site.groups.front().ranks;
  const auto first_link = [&](std::size_t to) { return site.fabric.path(ranks[0], ranks[to]); };
  if (site.in_node < 2 || first_link(1).size() != 2) return false;
  return site.in_node == 2 || first_link(1).front() == first_link(2).front();
}

std::string_view nvls_obstacle(const Site& site, CollectiveKind /*kind*/) {
  if (site.nodes > 1) return "it stays inside one node";
  return has_node_switch(site) ? "" : kSwitch;
}

std::string_view nvls_tree_obstacle(const Site& site, CollectiveKind /*kind*/) {
  if (site.nodes == 1) return kManyNodes;
  if (site.in_node == 0) return kUneven;
  return has_node_switch(site) ? "" : kSwitch;
}

std::string_view sharp_obstacle(const Site& site, CollectiveKind /*kind*/) {
  if (site.nodes == 1) return kManyNodes;
  return site.in_node > 0 ? "" : kUneven;
}

std::string_view hierarchical_obstacle(const Site& site, CollectiveKind /*kind*/) {
  if (site.nodes == 1) return kManyNodes;
  if (site.in_node == 0) return kUneven;
  return site.in_node > 1 ? "" : "it needs several ranks in a node";
}

std::string_view power_of_two_obstacle(const Site& site, CollectiveKind /*kind*/) {
  if (site.in_node == 0) return kUneven;
  const auto is_power = [](int n) { return std::has_single_bit(static_cast<unsigned>(n)); };
  return is_power(site.ranks) && is_power(site.in_node) ? "" : "its ranks must be a power of two";
}

std::string_view pat_obstacle(const Site& site, CollectiveKind /*kind*/) {
  return site.nodes == site.ranks ? "" : "it runs with one rank per node";
}

constexpr std::array kRingKinds = {all_reduce, reduce_scatter, all_gather, broadcast};
constexpr std::array kReduce = {all_reduce};
constexpr std::array kReducing = {all_reduce, reduce_scatter, all_gather};
constexpr std::array kTwoLevels = {all_reduce, reduce_scatter, all_gather, all_to_all};
constexpr std::array kOneWay = {reduce_scatter, all_gather};
constexpr std::array kPointToPoint = {all_to_all, send_recv};

Places places_of(const topology::Fabric& fabric, const Group& group) {
  Places places{.ranks = group, .nodes = {}};
  const std::span<const GpuId> ranks(places.ranks);
  for (std::size_t begin = 0, i = 1; i <= ranks.size(); ++i) {
    if (i < ranks.size() && fabric.node_of(ranks[i]) == fabric.node_of(ranks[begin])) continue;
    places.nodes.push_back(ranks.subspan(begin, i - begin));
    begin = i;
  }
  return places;
}

int nics_in_use(const topology::Fabric& fabric, std::span<const GpuId> node) {
  std::set<std::uint32_t> nics;
  for (const GpuId gpu : node) nics.insert(fabric.nic_of(gpu));
  return static_cast<int>(nics.size());
}

}  // namespace

std::span<const AlgorithmRow> algorithms() {
  static constexpr std::array kRows{
      AlgorithmRow{Algorithm::ring, "rings through all ranks, one per NIC of a node", kRingKinds,
                   none, Flow::pipelined, lay_ring},
      AlgorithmRow{Algorithm::tree, "double binary trees between nodes, chains inside", kReduce,
                   none, Flow::pipelined, lay_tree},
      AlgorithmRow{Algorithm::nvls, "the node's switch adds and copies", kReducing, nvls_obstacle,
                   Flow::pipelined, lay_nvls},
      AlgorithmRow{Algorithm::nvls_tree, "the node's switch inside, double binary trees between",
                   kReduce, nvls_tree_obstacle, Flow::pipelined, lay_nvls_tree},
      AlgorithmRow{Algorithm::sharp, "the network's switches add and copy, rings inside nodes",
                   kReduce, sharp_obstacle, Flow::pipelined, lay_sharp},
      AlgorithmRow{Algorithm::hierarchical, "inside nodes first, then between them", kTwoLevels,
                   hierarchical_obstacle, Flow::pipelined, lay_hierarchical},
      AlgorithmRow{Algorithm::halving_doubling, "partners at distances 1, 2, 4 ...", kReducing,
                   power_of_two_obstacle, Flow::stepwise, lay_halving_doubling},
      AlgorithmRow{Algorithm::pairwise, "every rank to every other, one after the other",
                   kPointToPoint, none, Flow::stepwise, lay_pairwise},
      AlgorithmRow{Algorithm::pat, "a binomial tree per rank, far partners first", kOneWay,
                   pat_obstacle, Flow::pipelined, lay_pat}};
  return kRows;
}

const AlgorithmRow& row_of(Algorithm algorithm) {
  for (const AlgorithmRow& row : algorithms())
    if (row.algorithm == algorithm) return row;
  throw InternalError("algorithm without a row");
}

Algorithm default_algorithm(CollectiveKind kind) {
  return kind == all_to_all || kind == send_recv ? Algorithm::pairwise : Algorithm::ring;
}

Site site_of(const topology::Fabric& fabric, const GroupSet& set) {
  Site site{.fabric = fabric, .groups = {}};
  site.ranks = static_cast<int>(set.groups.front().size());
  site.in_node = -1;
  site.fewest_in_node = site.ranks;
  site.rails = site.ranks;
  for (const Group& group : set.groups) {
    SCAPESIM_CHECK(static_cast<int>(group.size()) == site.ranks, "groups of {} and {} ranks",
                   site.ranks, group.size());
    const Places& places = site.groups.emplace_back(places_of(fabric, group));
    const bool rings_by_nic = places.nodes.size() > 1;
    site.nodes = std::max(site.nodes, static_cast<int>(places.nodes.size()));
    for (const std::span<const GpuId> node : places.nodes) {
      const int size = static_cast<int>(node.size());
      if (site.in_node < 0) site.in_node = size;
      if (site.in_node != size) site.in_node = 0;
      site.fewest_in_node = std::min(site.fewest_in_node, size);
      site.rails = std::min(site.rails, rings_by_nic ? nics_in_use(fabric, node) : 1);
    }
  }
  return site;
}

}  // namespace scapesim::plan
