// SPDX-License-Identifier: Apache-2.0
// Steps of dense training whose time is a closed form: exposed collectives add up ([M20], [M21],
// [M32]), overlapped ones take the longer of two.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

// Differences of event times after at most twelve steps: a few hundred additions.
constexpr double kRounding = 1e-9;

cost::Profile profile_with_latency(double hop, double scalar) {
  cost::Profile profile = round_profile();
  set(profile, "network.hop_latency_s", hop);
  set(profile, "network.scalar_latency_s", scalar);
  return profile;
}

/// Overlapped per-layer buckets: what each layer's backward pass takes and each reduction after it.
struct Layered {
  std::vector<double> backward;  ///< in order of time, head first
  std::vector<double> reduction;
  double forward = 0;
  double upkeep = 0;
  double update = 0;
};

Layered layered(const Prediction& prediction, const spec::Scenario& scenario,
                const cost::Profile& profile) {
  Layered list;
  const cost::RingTerms ring = ring_of(scenario, profile);
  for (const graph::Operation& operation : prediction.graph.classes.at(0).operations) {
    if (operation.name.starts_with("forward")) list.forward += operation.duration.si();
    if (operation.name.starts_with("backward")) list.backward.push_back(operation.duration.si());
    if (operation.name == "gradient scaling and zeroing") list.upkeep = operation.duration.si();
    if (operation.name == "adams update") list.update = operation.duration.si();
    if (operation.name == "gradient all-reduce")
      list.reduction.push_back(cost::ring_all_reduce(operation.bytes, ring).si());
  }
  return list;
}

spec::Scenario overlapped(int ranks, Bytes bucket) {
  spec::Scenario scenario = scenario_of(llama_500m(), ranks);
  scenario.training.overlap_gradients = true;
  scenario.training.bucket = bucket;
  return scenario;
}

}  // namespace

TEST_CASE("[M32] a dense step is its local work and one all-reduce of the gradients") {
  const cost::Profile profile = profile_with_latency(1.1e-3, 25e-6);
  for (const int ranks : {2, 3, 8, 64}) {
    const spec::Scenario scenario = scenario_of(llama_1_8b(), ranks);
    const Prediction prediction = prediction_of(scenario, profile);
    const double reduced =
        cost::ring_all_reduce(Bytes(4 * 1'831'201'280.0), ring_of(scenario, profile)).si();
    CHECK(run_of(prediction).step_time.si() ==
          Approx(local_work(prediction) + reduced).epsilon(kRounding));
    CHECK(run_of(prediction).breakdown.exposed_communication.si() ==
          Approx(reduced).epsilon(kRounding));
    CHECK(run_of(prediction).overlap_fraction == Approx(0).margin(kRounding));
  }
}

TEST_CASE("[M32] the distributed optimizer adds a reduce-scatter, a scalar and an all-gather") {
  const cost::Profile profile = profile_with_latency(1.1e-3, 25e-6);
  for (const int ranks : {2, 3, 8, 64}) {
    spec::Scenario scenario = scenario_of(llama_1_8b(), ranks);
    scenario.strategy.sharding = spec::Sharding::zero1;
    const Prediction prediction = prediction_of(scenario, profile);
    const cost::RingTerms ring = ring_of(scenario, profile);
    int depth = 0;
    while ((1 << depth) < ranks) ++depth;
    const double n = 1'831'201'280;
    const double exposed = cost::ring_reduce_scatter(Bytes(4 * n), ring).si() + 2 * depth * 25e-6 +
                           cost::ring_all_gather(Bytes(2 * n), ring).si();
    CHECK(run_of(prediction).step_time.si() ==
          Approx(local_work(prediction) + exposed).epsilon(kRounding));
  }
}

TEST_CASE("a transport cap below the line rate decides what the ring takes") {
  cost::Profile profile = profile_with_latency(1.1e-3, 25e-6);
  profile.numbers["network.transport_cap_Bps"] = exactly(3.62e9, cost::Factor::network);
  const spec::Scenario scenario = scenario_of(llama_1_8b(), 64);
  const Prediction prediction = prediction_of(scenario, profile);
  cost::RingTerms ring = ring_of(scenario, profile);
  ring.link = BytesPerSecond(3.62e9);
  CHECK(
      run_of(prediction).step_time.si() ==
      Approx(local_work(prediction) + cost::ring_all_reduce(Bytes(4 * 1'831'201'280.0), ring).si())
          .epsilon(kRounding));
}

TEST_CASE("buckets without overlap only add their latencies") {
  const cost::Profile profile = profile_with_latency(1e-4, 25e-6);
  spec::Scenario scenario = scenario_of(llama_500m(), 8);
  const double whole = step_of(scenario, profile);
  scenario.training.bucket = Bytes(100e6);
  // 21 buckets instead of one buffer, 14 hops each.
  CHECK(step_of(scenario, profile) - whole == Approx(20 * 14 * 1e-4).epsilon(1e-6));
}

TEST_CASE("overlapped in one bucket, the reduction only hides the scaling of the gradients") {
  const cost::Profile profile = profile_with_latency(1e-4, 25e-6);
  for (const double nic : {1e9, 50e9, 5e13}) {
    spec::Scenario scenario = overlapped(8, Bytes(1e12));
    scenario.cluster.nic_bandwidth = BytesPerSecond(nic);
    const Prediction prediction = prediction_of(scenario, profile);
    const Layered l = layered(prediction, scenario, profile);
    REQUIRE(l.reduction.size() == 1);
    const double everything_else = local_work(prediction) - l.upkeep;
    CHECK(run_of(prediction).step_time.si() ==
          Approx(everything_else + std::max(l.reduction[0], l.upkeep)).epsilon(kRounding));
  }
}

TEST_CASE("per-layer buckets on a fast network: only the last one shows") {
  const cost::Profile profile = profile_with_latency(1e-7, 25e-6);
  spec::Scenario scenario = overlapped(8, Bytes(1));
  scenario.cluster.nic_bandwidth = BytesPerSecond(1e14);
  const Prediction prediction = prediction_of(scenario, profile);
  const Layered l = layered(prediction, scenario, profile);
  REQUIRE(l.reduction.size() == l.backward.size());
  for (std::size_t i = 0; i + 1 < l.reduction.size(); ++i)
    REQUIRE(l.reduction[i] < l.backward[i + 1]);
  const double everything_else = local_work(prediction) - l.upkeep;
  CHECK(run_of(prediction).step_time.si() ==
        Approx(everything_else + std::max(l.reduction.back(), l.upkeep)).epsilon(kRounding));
}

TEST_CASE("per-layer buckets on a slow network: reductions follow each other from the first on") {
  const cost::Profile profile = profile_with_latency(1e-4, 25e-6);
  spec::Scenario scenario = overlapped(8, Bytes(1));
  scenario.cluster.nic_bandwidth = BytesPerSecond(1e9);
  const Prediction prediction = prediction_of(scenario, profile);
  const Layered l = layered(prediction, scenario, profile);
  double reductions = 0;
  for (std::size_t i = 0; i < l.reduction.size(); ++i) {
    reductions += l.reduction[i];
    if (i + 1 < l.backward.size()) REQUIRE(l.reduction[i] > l.backward[i + 1]);
  }
  CHECK(run_of(prediction).step_time.si() ==
        Approx(l.forward + l.backward[0] + reductions + l.update).epsilon(kRounding));
}

TEST_CASE(
    "per-layer buckets on any network: each begins when its layer and the last one are done") {
  const cost::Profile profile = profile_with_latency(2e-5, 25e-6);
  for (const double nic : {5e9, 10e9, 20e9, 40e9, 80e9, 160e9}) {
    spec::Scenario scenario = overlapped(8, Bytes(1));
    scenario.cluster.nic_bandwidth = BytesPerSecond(nic);
    const Prediction prediction = prediction_of(scenario, profile);
    const Layered l = layered(prediction, scenario, profile);
    double computed = l.forward;
    double reduced = 0;
    for (std::size_t i = 0; i < l.backward.size(); ++i) {
      computed += l.backward[i];
      reduced = std::max(reduced, computed) + l.reduction[i];
    }
    CHECK(run_of(prediction).step_time.si() ==
          Approx(std::max(reduced, computed + l.upkeep) + l.update).epsilon(kRounding));
  }
}

TEST_CASE("one GPU takes exactly its local work, with every method") {
  for (const auto method : {spec::Method::dense, spec::Method::scape})
    for (const auto sharding : {spec::Sharding::none, spec::Sharding::zero1})
      for (const auto kernels : {spec::Kernels::fused, spec::Kernels::unfused}) {
        spec::Scenario scenario = scenario_of(llama_500m(), 1);
        scenario.strategy.method = method;
        scenario.strategy.sharding = sharding;
        scenario.strategy.kernels = kernels;
        const Prediction prediction = prediction_of(scenario, profile_with_latency(1e-3, 1e-3));
        CHECK(run_of(prediction).step_time.si() ==
              Approx(local_work(prediction)).epsilon(kRounding));
        CHECK(run_of(prediction).communication.empty());
        CHECK_FALSE(run_of(prediction).overlap_fraction.has_value());
      }
}

TEST_CASE("[M20] [M21] a collective alone takes its closed form, and its busbw is the link's") {
  spec::Scenario scenario = scenario_of(llama_500m(), 16);
  const cost::Profile profile = profile_with_latency(0, 0);
  const cost::RingTerms ring = ring_of(scenario, profile);
  const Bytes size(1e9);
  const auto alone = [&](graph::CollectiveKind kind) {
    return predict_collective(kind, size, scenario.cluster, &profile);
  };
  const CollectiveTime reduced = alone(graph::CollectiveKind::all_reduce);
  CHECK(reduced.time.si() == Approx(cost::ring_all_reduce(size, ring).si()).epsilon(kRounding));
  CHECK(reduced.busbw.si() == Approx(50e9).epsilon(kRounding));
  CHECK(reduced.algbw.si() == Approx(50e9 / (2 * 15.0 / 16)).epsilon(kRounding));
  const CollectiveTime gathered = alone(graph::CollectiveKind::all_gather);
  CHECK(gathered.time.si() == Approx(cost::ring_all_gather(size, ring).si()).epsilon(kRounding));
  CHECK(gathered.busbw.si() == Approx(50e9).epsilon(kRounding));
  const CollectiveTime scattered = alone(graph::CollectiveKind::reduce_scatter);
  CHECK(scattered.time == gathered.time);
  // Without a profile the fabric's 5 us count once per ring step.
  const CollectiveTime raw =
      predict_collective(graph::CollectiveKind::all_reduce, size, scenario.cluster, nullptr);
  CHECK(raw.time.si() - reduced.time.si() == Approx(30 * 5e-6).epsilon(1e-6));
}
