// SPDX-License-Identifier: Apache-2.0
// A plan over searched splits is the plan over all of them.
#include "sim/study/plan_search.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "tests/support/random_scenario.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

/// A small model on nodes of two GPUs that may be too small for it.
study::Series small_series(std::uint64_t seed) {
  Random random(seed);
  spec::Scenario s = scenario_of(llama({4, 256, 4, 4, 1024}), 8);
  s.name = "small";
  s.training = training_of(1, 512);
  s.training.global_batch = 8;
  s.cluster.nodes = 4;
  s.cluster.gpus_per_node = 2;
  s.cluster.nics_per_node = 2;
  s.cluster.node_link_bandwidth = BytesPerSecond(between(random, 1e10, 5e11));
  s.cluster.nic_bandwidth = BytesPerSecond(between(random, 1e9, 5e10));
  s.cluster.gpu.memory = Bytes(between(random, 1.2e8, 4e8));
  s.cluster.gpu_price = DollarsPerSecond(1.0);
  s.cluster.gpu_power = Watts(500.0);
  cost::Profile profile = random_profile(seed);
  profile.numbers.at("memory.context_B").value = 0;
  return {s, std::move(profile)};
}

/// Every legal split on every count, carried on to the last token.
std::vector<study::RunPlan> all_plans(const study::Series& series, const study::Goal& goal) {
  std::vector<study::RunPlan> plans;
  for (const int gpus : {1, 2, 4, 8})
    for (const study::Frame& frame : study::frames(series.scenario, gpus, {}))
      for (const study::Split& split : study::splits(series.scenario, frame, {})) {
        const spec::Scenario s = study::with_split(series.scenario, split);
        if (!spec::violations(s).empty()) continue;
        const Prediction prediction = prediction_of(s, series.profile);
        if (const auto* run = std::get_if<result::Run>(&prediction.outcome))
          plans.push_back(study::plan_of(s, series.profile.id, *run, goal));
      }
  return plans;
}

study::Goal goal_of(study::PlanObjective objective) {
  return {.tokens = Tokens(1e9), .objective = objective};
}

study::Capacity planned(const study::Series& series, const study::Goal& goal, int jobs = 1) {
  const study::PlanSearch how{.jobs = jobs};
  const auto list = study::to_search({&series, 1}, {}, goal, how);
  study::SearchedPlans found = study::search_plans(list, {}, how);
  return study::capacity(found.best, goal,
                         {.driver = engine::Driver::standalone, .interval_draws = 0},
                         std::move(found.unfit));
}

}  // namespace

TEST_CASE("[M460] the plan over searched splits is the best of all splits on all numbers of GPUs") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    INFO("seed " << seed);
    const study::Series series = small_series(seed);
    for (const auto objective :
         {study::PlanObjective::time, study::PlanObjective::cost, study::PlanObjective::energy}) {
      const study::Goal goal = goal_of(objective);
      const auto value = [&](const study::RunPlan& plan) {
        return objective == study::PlanObjective::time   ? plan.time.si()
               : objective == study::PlanObjective::cost ? plan.cost.value().si()
                                                         : plan.energy.value().si();
      };
      const std::vector<study::RunPlan> all = all_plans(series, goal);
      REQUIRE_FALSE(all.empty());
      double least = INFINITY;
      for (const study::RunPlan& plan : all) least = std::min(least, value(plan));
      CHECK(value(planned(series, goal).plans.front()) == least);
    }
  }
}

TEST_CASE("[M460] every number of GPUs has its fastest split, or is known not to fit") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    INFO("seed " << seed);
    const study::Series series = small_series(seed);
    const study::Goal goal = goal_of(study::PlanObjective::time);
    std::map<int, double> fastest;
    for (const study::RunPlan& plan : all_plans(series, goal)) {
      const auto [at, is_new] = fastest.try_emplace(plan.scenario.cluster.gpus, plan.time.si());
      at->second = std::min(at->second, plan.time.si());
    }
    const study::Capacity capacity = planned(series, goal);
    CHECK(capacity.plans.size() == 4);
    for (const study::RunPlan& plan : capacity.plans) {
      INFO(plan.scenario.cluster.gpus << " GPUs");
      const auto known = fastest.find(plan.scenario.cluster.gpus);
      CHECK(plan.any_split == (known == fastest.end()));
      if (known != fastest.end()) CHECK(plan.time.si() == known->second);
      if (plan.any_split) CHECK(plan.infeasible.find("fits in memory") != std::string::npos);
    }
    const study::Capacity threaded = planned(series, goal, 3);
    for (std::size_t i = 0; i < capacity.plans.size(); ++i)
      CHECK(threaded.plans[i].scenario.hash == capacity.plans[i].scenario.hash);
  }
}

TEST_CASE("keys of choices and kept keys stay, and counts are those told") {
  const study::Series series = small_series(1);
  const study::Goal goal = goal_of(study::PlanObjective::time);
  const std::vector<study::Choice> choices = {{"parallelism.tp", {"1", "2"}}};
  const study::PlanSearch how{.gpus = {8, 4}, .held = {"training.micro_batch"}};
  const auto list = study::to_search({&series, 1}, choices, goal, how);
  REQUIRE(list.size() == 4);
  const study::SearchedPlans found = study::search_plans(list, choices, how);
  REQUIRE_FALSE(found.best.empty());
  for (const study::Series& one : found.best) {
    CHECK(one.scenario.parallelism.tp <= 2);
    CHECK(one.scenario.training.micro_batch == series.scenario.training.micro_batch);
    CHECK(one.scenario.cluster.gpus >= 4);
  }
}
