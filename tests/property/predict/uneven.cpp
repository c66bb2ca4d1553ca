// SPDX-License-Identifier: Apache-2.0
// Unequal ranks on random splits: what holds whatever the split, and the reduction against a
// simulation of every pipeline.
#include "sim/predict/uneven.hpp"

#include <catch2/catch.hpp>

#include "sim/result/metrics.hpp"
#include "tests/support/prediction.hpp"
#include "tests/support/random_scenario.hpp"
#include "topologies/placement.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

constexpr double kRounding = 1e-9;

/// A model over tensor ranks, stages and copies.
spec::Scenario random_split(std::uint64_t seed) {
  Random random(seed);
  spec::Scenario s = scenario_of(random_model(random), 1);
  s.model.layers = 12;
  s.training = random_training(random);
  s.training.overlap_gradients = coin(random);
  s.cluster.gpus_per_node = one_of(random, {1, 4, 8});
  s.cluster.nics_per_node = one_of(random, {1, s.cluster.gpus_per_node});
  s.cluster.node_link_bandwidth = BytesPerSecond(300e9);
  spec::Parallelism& p = s.parallelism;
  p.tp = one_of(random, {1, 2});
  p.pp = one_of(random, {1, 2, 3, 4});
  p.sequence_parallel = p.tp > 1;
  p.stage_overlap = any_of<spec::StageOverlap>(random);
  p.schedule = static_cast<spec::Schedule>(random.below(4));
  if (p.schedule == spec::Schedule::interleaved && p.pp > 1) p.virtual_stages = p.pp == 4 ? 3 : 2;
  s.strategy.sharding = coin(random) ? spec::Sharding::zero1 : spec::Sharding::none;
  const int copies = 8;
  s.cluster.gpus = copies * p.tp * p.pp;
  s.cluster.nodes = std::max(1, s.cluster.gpus / s.cluster.gpus_per_node);
  s.training.global_batch = s.training.micro_batch * copies * p.pp * one_of(random, {1, 2, 4});
  for (const spec::Violation& violation : spec::violations(s))
    throw InternalError(violation.key + ": " + violation.what);
  return s;
}

/// A scenario planned and its step of equal ranks.
struct Even {
  spec::Scenario scenario;
  std::vector<plan::StepPlan> plans;
  engine::Timeline timeline;
  double step_time = 0;

  UnevenStep step(const std::vector<plan::Pace>& paces,
                  Reduction reduction = Reduction::automatic) const {
    return uneven_step(plans, timeline, paces, engine::Driver::standalone, reduction);
  }
};

Even even_of(const spec::Scenario& scenario, const cost::Profile& profile) {
  const workload::Workload workload =
      workload::workload_of(scenario.model, scenario.training, scenario.parallelism);
  const topology::Fabric fabric =
      topology::build_fabric(scenario.cluster, topology::nodes_to_build(scenario.cluster));
  Even even{.scenario = scenario, .plans = {}, .timeline = {}};
  even.plans.push_back(plan::step_plan(scenario, workload, profile, fabric));
  even.timeline = engine::replay(even.plans[0].graph, {.driver = engine::Driver::standalone});
  even.step_time = result::step_time(even.timeline, 1).si();
  return even;
}

double work_of(const plan::StepPlan& plan, std::size_t stage, double slowdown) {
  double sum = 0;
  const auto durations = plan.durations(stage, slowdown);
  for (std::size_t i = 0; i < durations.size(); ++i)
    if (plan.graph.classes[stage].operations[i].stream == graph::Stream::compute)
      sum += durations[i].si();
  return sum;
}

}  // namespace

TEST_CASE("ranks of pace 1 take the step of equal ranks, bit for bit") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Even even = even_of(random_split(seed), random_profile(seed));
    spec::Scenario still = even.scenario;
    still.jitter.seed = 7;
    still.jitter.steps = 3;
    std::vector<plan::Pace> paces = plan::paces_of(still);
    plan::add_jitter(paces, still, 0);
    const UnevenStep step = even.step(paces);
    REQUIRE(step.timeline.spans.size() == even.timeline.spans.size());
    for (std::size_t i = 0; i < step.timeline.spans.size(); ++i)
      CHECK(step.timeline.spans[i].end == even.timeline.spans[i].end);
    CHECK_FALSE(plan::is_uneven(still));
  }
}

TEST_CASE(
    "[M400] one slow GPU stretches the step by its slow-down at most and holds it as long as "
    "its own work at least") {
  Random random(3);
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Even even = even_of(random_split(seed), random_profile(seed));
    std::vector<plan::Pace> paces = plan::paces_of(even.scenario);
    const auto slow = static_cast<std::size_t>(random.below(paces.size()));
    const double slowdown = random.uniform(1, 2);
    paces[slow].slowdown = slowdown;
    const double time = even.step(paces, Reduction::none).step_time.si();
    const auto stage_ranks = static_cast<std::size_t>(even.plans[0].mesh.stage_ranks());
    INFO("seed " << seed << " pp " << even.scenario.parallelism.pp << " slow-down " << slowdown);
    CHECK(time <= slowdown * even.step_time * (1 + kRounding));
    CHECK(time >= even.step_time * (1 - kRounding));
    CHECK(time >= work_of(even.plans[0], slow / stage_ranks, slowdown) * (1 - kRounding));
  }
}

namespace {

/// Relative difference of the reduced simulation of a drawn step to that of every pipeline.
struct Reduced {
  double off = 0;
  std::size_t kept = 0;
};
Reduced reduced(const spec::Scenario& scenario, const cost::Profile& profile, std::uint64_t seed) {
  const Even even = even_of(scenario, profile);
  spec::Scenario drawn = scenario;
  drawn.jitter.compute = 0.05;
  drawn.jitter.seed = static_cast<std::int64_t>(seed);
  std::vector<plan::Pace> paces = plan::paces_of(drawn);
  plan::add_jitter(paces, drawn, 0);
  const UnevenStep all = even.step(paces, Reduction::none);
  const UnevenStep few = even.step(paces, Reduction::full);
  REQUIRE(all.pipelines == 8);
  return {std::abs(few.step_time / all.step_time - 1), few.pipelines};
}

}  // namespace

TEST_CASE(
    "[M402, M403] the reduced simulation equals that of every pipeline where transfers do not "
    "slow each other") {
  int fewer = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    spec::Scenario scenario = random_split(seed);
    // Latencies only: what the bytes of a step take is below rounding.
    scenario.cluster.nic_bandwidth = scenario.cluster.node_link_bandwidth = BytesPerSecond(1e20);
    cost::Profile profile = random_profile(seed);
    profile.numbers.erase("network.transport_cap_Bps");
    const Reduced result = reduced(scenario, profile, seed);
    INFO("seed " << seed << " pp " << scenario.parallelism.pp << ", kept " << result.kept);
    CHECK(result.off < kRounding);
    fewer += result.kept < 8;
  }
  CHECK(fewer > 20);
}

// Messages and gradients that share links take other times in another order, which the longest
// path does not see: at most 0.13 % of a step here, and nothing in most.
TEST_CASE("[M403] where transfers share links the reduced simulation stays within 0.2 %") {
  int exact = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const spec::Scenario scenario = random_split(seed);
    const Reduced result = reduced(scenario, random_profile(seed), seed);
    INFO("seed " << seed << " pp " << scenario.parallelism.pp << ", kept " << result.kept);
    CHECK(result.off < 0.002);
    exact += result.off < kRounding;
  }
  CHECK(exact >= 35);
}

TEST_CASE("[M402] pipelines that compute alike are simulated once, with the same result") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Even even = even_of(random_split(seed), random_profile(seed));
    std::vector<plan::Pace> paces = plan::paces_of(even.scenario);
    paces[seed % paces.size()].slowdown = 1.4;
    const UnevenStep all = even.step(paces, Reduction::none);
    const UnevenStep few = even.step(paces);
    INFO("seed " << seed << " pp " << even.scenario.parallelism.pp);
    CHECK(few.pipelines == (even.scenario.parallelism.pp == 1 ? 1 : 2));
    CHECK(few.step_time.si() == Approx(all.step_time.si()).epsilon(kRounding));
  }
}
