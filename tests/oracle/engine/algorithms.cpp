// SPDX-License-Identifier: Apache-2.0
// Every algorithm on every kind of fabric: the fluid core against closed forms, against one SimGrid
// communication per transfer, and against pipelines piece by piece.
#include "sim/plan/algorithms.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "sim/base/error.hpp"
#include "sim/engine/chunk.hpp"
#include "sim/engine/replay.hpp"
#include "tests/support/fabrics.hpp"
#include "tests/support/network.hpp"

using namespace scapesim;
using namespace scapesim::test;
using enum graph::CollectiveKind;
using graph::Algorithm;

namespace {

plan::CollectiveCall forced(graph::CollectiveKind kind, Algorithm algorithm, Bytes size,
                            std::size_t group = 0) {
  plan::CollectiveCall forced = call(kind, size, group);
  forced.algorithm = algorithm;
  return forced;
}

spec::Cluster without_latency(spec::Cluster cluster) {
  cluster.fabric.latency = 0_s;
  return cluster;
}

/// Latencies and bytes of the phases over their fullest resource.
Seconds closed_form(const plan::NetworkPlan& plan) {
  Seconds time;
  for (const graph::Phase& phase : plan.collectives[0].phases) {
    Seconds bytes;
    for (const graph::Load& load : phase.loads)
      bytes =
          std::max(bytes, load.flows * phase.bytes / plan.resources[index(load.resource)].capacity);
    time += phase.latency + bytes;
  }
  return time;
}

bool runs(const topology::Fabric& fabric, const plan::GroupSet& set,
          const plan::CollectiveCall& call) {
  try {
    plan::plan_collectives(fabric, {set}, {call});
  } catch (const InputError&) {
    return false;
  }
  return true;
}

}  // namespace

TEST_CASE("[M150] alone, every algorithm on every fabric takes latencies and its fullest link") {
  for (const NamedCluster& row : small_clusters()) {
    const auto fabric = topology::build_fabric(row.cluster, row.nodes);
    const plan::GroupSet set = plan::consecutive_gpus(fabric.gpus());
    for (const plan::AlgorithmRow& algorithm : plan::algorithms())
      for (const graph::CollectiveKind kind : algorithm.kinds) {
        const auto one = forced(kind, algorithm.algorithm, 1_GiB);
        if (!runs(fabric, set, one)) continue;
        INFO(row.name << ", " << name_of(algorithm.algorithm) << ", " << name_of(kind));
        const Seconds expected = closed_form(plan::plan_collectives(fabric, {set}, {one}));
        CHECK(fluid_ends(fabric, {set}, {one})[0].si() ==
              Approx(expected.si()).epsilon(1e-12).margin(0));
      }
  }
}

// SimGrid keeps 1e-9 s and whole bytes.
TEST_CASE("on a switch, where all NICs are equally full, flows end when the fluid does") {
  const int gpus = GENERATE(4, 16, 64);
  const auto fabric = topology::build_fabric(flat_cluster(), gpus);
  const plan::GroupSet set = plan::consecutive_gpus(gpus);
  for (const plan::AlgorithmRow& algorithm : plan::algorithms())
    for (const graph::CollectiveKind kind : algorithm.kinds) {
      if (algorithm.algorithm == Algorithm::tree) continue;  // its NICs are not equally full
      const auto one = forced(kind, algorithm.algorithm, gpus * 1_GB);
      if (!runs(fabric, set, one)) continue;
      INFO(gpus << ", " << name_of(algorithm.algorithm) << ", " << name_of(kind));
      CHECK(fluid_ends(fabric, {set}, {one})[0].si() ==
            Approx(engine::flow_level_ends(fabric, {set}, {one})[0].si()).epsilon(1e-9).margin(0));
    }
}

namespace {

/// Whether every transfer of a stage moves as much as every other and crosses a link that is as
/// full as any: then one class of links is the bottleneck of all.
bool one_bottleneck(const topology::Fabric& fabric, const plan::Stage& stage) {
  const auto fill = [&](topology::LinkId link) {
    return static_cast<double>(stage.sheet.flows()[index(link)]) / fabric.link(link).capacity.si();
  };
  double most = 0;
  for (std::uint32_t link = 0; link < stage.sheet.flows().size(); ++link)
    most = std::max(most, fill({link}));
  const auto& transfers = stage.sheet.transfers();
  return std::ranges::all_of(transfers, [&](const plan::Transfer& transfer) {
    return transfer.units == transfers.front().units &&
           std::ranges::any_of(transfer.links, [&](topology::LinkId link) {
             return fill(link) > most * (1 - 1e-12);
           });
  });
}

}  // namespace

// SimGrid keeps 1e-9 s and whole bytes.
TEST_CASE(
    "on every fabric, where one class of links is the bottleneck of all transfers, flows end "
    "when the fluid does") {
  std::map<Algorithm, int> compared;
  for (const NamedCluster& row : small_clusters()) {
    const auto fabric = topology::build_fabric(row.cluster, row.nodes);
    const plan::GroupSet set = plan::consecutive_gpus(fabric.gpus());
    for (const plan::AlgorithmRow& algorithm : plan::algorithms())
      for (const graph::CollectiveKind kind : algorithm.kinds) {
        const auto one = forced(kind, algorithm.algorithm, fabric.gpus() * 24_GB);
        if (!runs(fabric, set, one)) continue;
        const auto drawn = plan::drawn_calls(fabric, {set}, {one}, plan::Sheet::Keep::sends);
        if (!std::ranges::all_of(drawn[0].stages, [&](const plan::Stage& stage) {
              return one_bottleneck(fabric, stage);
            }))
          continue;
        INFO(row.name << ", " << name_of(algorithm.algorithm) << ", " << name_of(kind));
        ++compared[algorithm.algorithm];
        CHECK(
            fluid_ends(fabric, {set}, {one})[0].si() ==
            Approx(engine::flow_level_ends(fabric, {set}, {one})[0].si()).epsilon(1e-9).margin(0));
      }
  }
  // NVLS needs a fabric of one node; transfers of PAT and of hierarchies differ in size.
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::tree, Algorithm::nvls_tree, Algorithm::sharp,
        Algorithm::halving_doubling, Algorithm::pairwise}) {
    INFO(name_of(algorithm));
    CHECK(compared[algorithm] > 0);
  }
}

TEST_CASE("step by step, partners' exchanges end when the fluid phases do") {
  const bool latency = GENERATE(false, true);
  const auto cluster = latency ? flat_cluster() : without_latency(flat_cluster());
  const auto fabric = topology::build_fabric(cluster, 16);
  const plan::GroupSet set = plan::consecutive_gpus(16);
  for (const auto kind : {all_reduce, reduce_scatter, all_gather}) {
    const auto one = forced(kind, Algorithm::halving_doubling, 16_GB);
    CHECK(fluid_ends(fabric, {set}, {one})[0].si() ==
          Approx(engine::chunk_level_ends(fabric, {set}, {one})[0].si()).epsilon(1e-9).margin(0));
  }
}

namespace {

/// Relative difference of the fluid core to the simulation of 512 pieces.
double difference(const spec::Cluster& cluster, int nodes, const plan::CollectiveCall& one) {
  const auto fabric = topology::build_fabric(cluster, nodes);
  const plan::GroupSet set = plan::consecutive_gpus(fabric.gpus());
  const Seconds pieces = engine::chunk_level_ends(fabric, {set}, {one})[0];
  return fluid_ends(fabric, {set}, {one})[0] / pieces - 1;
}

}  // namespace

// 512 pieces: filling a pipeline of some ten hops costs up to ten of them, 2 %, which the fluid
// core leaves out; it leaves out too that bytes move while the first pieces' latencies pass.
TEST_CASE("pipelined trees, switches and hierarchies end within 2 % of their pieces") {
  const auto [algorithm, gpus, nodes] =
      GENERATE(table<Algorithm, int, int>({{Algorithm::tree, 1, 8},
                                           {Algorithm::tree, 1, 2},
                                           {Algorithm::tree, 2, 4},
                                           {Algorithm::nvls, 8, 1},
                                           {Algorithm::nvls_tree, 2, 4},
                                           {Algorithm::sharp, 2, 4},
                                           {Algorithm::hierarchical, 2, 4}}));
  const Bytes size = 256_MiB;
  const auto cluster = gpus == 1 ? flat_cluster() : node_cluster(gpus, gpus);
  const double off = difference(cluster, nodes, forced(all_reduce, algorithm, size));
  INFO(name_of(algorithm) << " on " << nodes << " nodes of " << gpus << ": " << off);
  CHECK(std::abs(off) < 0.02);
}

TEST_CASE("a tree and a ring that share a tapered fabric end within 2 % of their pieces") {
  const double taper = GENERATE(1, 4);
  const auto fabric = topology::build_fabric(tree_cluster(4, taper), 8);
  const std::vector<plan::GroupSet> sets = {plan::consecutive_gpus(8), strided_ring(8, 4)};
  const std::vector<plan::CollectiveCall> calls = {forced(all_reduce, Algorithm::tree, 256_MiB, 0),
                                                   call(all_reduce, 256_MiB, 1)};
  const auto fluid = fluid_ends(fabric, sets, calls);
  const auto pieces = engine::chunk_level_ends(fabric, sets, calls);
  for (std::size_t i : {0, 1}) {
    INFO("call " << i << ": " << fluid[i].si() << " s, pieces " << pieces[i].si() << " s");
    CHECK(std::abs(fluid[i] / pieces[i] - 1) < 0.02);
  }
}
