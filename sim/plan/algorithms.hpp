// SPDX-License-Identifier: Apache-2.0
// The table of collective algorithms: each lays a collective of some groups on a fabric.
#pragma once

#include <span>
#include <string_view>

#include "sim/plan/collectives.hpp"
#include "sim/plan/sheet.hpp"

namespace scapesim::plan {

/// A group with its nodes.
struct Places {
  std::vector<topology::GpuId> ranks;
  std::vector<std::span<const topology::GpuId>> nodes;  ///< neighbours in ranks that share a node
};

/// A set of groups, as algorithms see it. Groups of a set are alike in what the algorithms count.
struct Site {
  const topology::Fabric& fabric;
  std::vector<Places> groups;
  int ranks = 0;
  int nodes = 0;    ///< of the group with most
  int rails = 1;    ///< NICs that each node of each group has in use at least; 1 in one node
  int in_node = 0;  ///< ranks per node where all nodes of all groups have equally many, else 0
  int fewest_in_node = 1;  ///< ranks of the node with the fewest
};
Site site_of(const topology::Fabric& fabric, const GroupSet& set);
cost::Layout layout_of(const Site& site);

/// What one hop of a ring meets: seconds that a byte takes at the fullest link.
struct HopClass {
  struct Part {
    double all_s_per_B = 0;  ///< while all hops of all rings of the set move
    double own_s_per_B = 0;  ///< while those of its own ring do
    auto operator<=>(const Part&) const = default;
  };
  bool between_nodes = false;
  Part inside{};   ///< links inside the node
  Part outside{};  ///< the others
  double nic_flows = 0;
  auto operator<=>(const HopClass&) const = default;
};
/// Hops of a ring by class.
using RingClass = std::vector<std::pair<HopClass, int>>;

/// Whether pieces of a collective go through its transfers one behind the other, or all of it step
/// by step.
enum class Flow { pipelined, stepwise };

/// Transfers that all move together: one phase of the collective, or all of it when its parts are
/// pipelined.
struct Stage {
  Sheet sheet;
  double numerator = 1;  ///< a unit is size / denominator * numerator bytes
  double denominator = 1;
  double inside_lead = 1;    ///< units that one flow inside a node carries
  double outside_lead = 1;   ///< and one between nodes
  double steps_between = 0;  ///< latencies between nodes that are paid
  double steps_inside = 0;
  int ring_steps = 0;  ///< of rings: latency partly hides behind bytes, see alone_latency()
  std::vector<RingClass> rings{};  ///< the kinds of rings where hops differ
};

/// Bytes of one unit of a stage of a call.
inline Bytes unit_of(const Stage& stage, double times, Bytes size) {
  return size / stage.denominator * stage.numerator * times;
}
/// A call as it is run: mode, stages, and how often these move their bytes.
struct Drawn {
  cost::Mode mode;
  std::vector<Stage> stages;
  double times = 1;
};
/// The choices of plan_collectives(), laid once more with what is to be kept; no stages for a group
/// of one.
std::vector<Drawn> drawn_calls(const topology::Fabric& fabric, const std::vector<GroupSet>& sets,
                               const std::vector<CollectiveCall>& calls, Sheet::Keep keep);

inline std::vector<Stage> single(Stage stage) {
  std::vector<Stage> stages;
  stages.push_back(std::move(stage));
  return stages;
}  /// Rings of a group on so many rails, see ring.hpp.
std::vector<Group> rings_of(const Places& places, const topology::Fabric& fabric,
                            std::size_t rails);

/// One algorithm: a file of its own and a row here.
struct AlgorithmRow {
  graph::Algorithm algorithm;
  std::string_view help;
  std::span<const graph::CollectiveKind> kinds;
  /// Why it cannot run on these groups; empty: it can.
  std::string_view (*obstacle)(const Site& site, graph::CollectiveKind kind);
  /// The stages, one after the other.
  Flow flow;
  std::vector<Stage> (*lay)(const Site& site, const CollectiveCall& call, Sheet::Keep keep);
};
std::span<const AlgorithmRow> algorithms();
const AlgorithmRow& row_of(graph::Algorithm algorithm);
/// What runs a kind when a profile names nothing that can.
graph::Algorithm default_algorithm(graph::CollectiveKind kind);

std::vector<Stage> lay_ring(const Site& site, const CollectiveCall& call, Sheet::Keep keep);
std::vector<Stage> lay_tree(const Site& site, const CollectiveCall& call, Sheet::Keep keep);
std::vector<Stage> lay_nvls(const Site& site, const CollectiveCall& call, Sheet::Keep keep);
std::vector<Stage> lay_nvls_tree(const Site& site, const CollectiveCall& call, Sheet::Keep keep);
std::vector<Stage> lay_sharp(const Site& site, const CollectiveCall& call, Sheet::Keep keep);
std::vector<Stage> lay_hierarchical(const Site& site, const CollectiveCall& call, Sheet::Keep keep);
std::vector<Stage> lay_halving_doubling(const Site& site, const CollectiveCall& call,
                                        Sheet::Keep keep);
std::vector<Stage> lay_pairwise(const Site& site, const CollectiveCall& call, Sheet::Keep keep);
std::vector<Stage> lay_pat(const Site& site, const CollectiveCall& call, Sheet::Keep keep);

}  // namespace scapesim::plan
