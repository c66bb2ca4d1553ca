// SPDX-License-Identifier: Apache-2.0
// A search finds what simulating every split finds, and its bound is one.
#include "sim/study/search.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/plan/memory.hpp"
#include "tests/support/random_scenario.hpp"
#include "topologies/placement.hpp"

using namespace scapesim;
using namespace scapesim::test;
using study::Objective;
using study::Split;

namespace {

/// A small model on nodes of two GPUs that hold a part of it only.
spec::Scenario small_scenario(std::uint64_t seed) {
  Random random(seed);
  spec::Model model = llama({4, 256, 4, 4, 1024});
  if (seed % 3 == 1) {
    model.experts = 4;
    model.experts_per_token = 2;
    model.expert_ffn = 512;
  }
  spec::Scenario s = scenario_of(model, 4);
  s.name = "small";
  s.training = training_of(1, 512);
  s.training.global_batch = 8;
  s.training.overlap_gradients = coin(random);
  s.parallelism.tensor_overlap = seed % 2 == 0;
  s.cluster.nodes = 4;
  s.cluster.gpus_per_node = 2;
  s.cluster.nics_per_node = 2;
  s.cluster.gpus = seed % 2 == 0 ? 4 : 8;
  s.cluster.node_link_bandwidth = BytesPerSecond(between(random, 1e10, 5e11));
  s.cluster.nic_bandwidth = BytesPerSecond(between(random, 1e9, 5e10));
  s.cluster.gpu.memory = Bytes(between(random, 1.2e8, 4e8));
  s.cluster.gpu_price = DollarsPerSecond(1.0);
  return s;
}

cost::Profile profile_for(std::uint64_t seed) {
  cost::Profile profile = random_profile(seed);
  profile.numbers.at("memory.context_B").value = 0;
  return profile;
}

/// Step time and memory of every legal split that fits.
struct Simulated {
  Split split;
  double time, memory;
};
std::vector<Simulated> simulate_all(const study::Series& series, int gpus) {
  std::vector<Simulated> list;
  for (const study::Frame& frame : study::frames(series.scenario, gpus, {}))
    for (const Split& split : study::splits(series.scenario, frame, {})) {
      const spec::Scenario scenario = study::with_split(series.scenario, split);
      if (!spec::violations(scenario).empty()) continue;
      const Prediction prediction = prediction_of(scenario, series.profile);
      const auto* run = std::get_if<result::Run>(&prediction.outcome);
      if (run != nullptr)
        list.push_back(
            {split, run->step_time.si(), (run->memory.total + run->memory.context).si()});
    }
  return list;
}

std::vector<double> least(const std::vector<Simulated>& all, std::size_t count,
                          double (*score)(const Simulated&)) {
  std::vector<double> scores;
  for (const Simulated& one : all) scores.push_back(score(one));
  std::ranges::sort(scores);
  scores.resize(std::min(scores.size(), count));
  return scores;
}

study::SearchOptions options_for(Objective objective, std::size_t top) {
  study::SearchOptions options{.gpus = {}, .objective = objective, .top = top};
  options.predict.interval_draws = 0;
  return options;
}

plan::StepBound bound_of(const study::Series& series, const Split& split) {
  const spec::Scenario s = study::with_split(series.scenario, split);
  const workload::Workload work = workload::rank_workload(s.model, s.training, s.parallelism);
  const topology::Fabric fabric =
      topology::build_fabric(s.cluster, topology::nodes_to_build(s.cluster));
  const plan::Seats seats{graph::mesh_of(s), fabric, topology::placement(s.cluster)};
  const cost::KernelCosts costs(series.profile, s.cluster.gpu, s.training.precision);
  const plan::LayerCosts layers(work, costs,
                                plan::ExchangeTimes(work, seats, series.profile, s.collectives));
  return plan::step_bound(s, series.profile, plan::PassTimes(work, layers),
                          plan::parts_of(work, s));
}

std::string text_of(const Split& split) {
  std::string text;
  for (const auto& [key, value] : study::keys_of(split))
    text += std::string(key) + "=" + value + " ";
  return text;
}

}  // namespace

TEST_CASE("[M422] no split that was left out beats the best: all of them simulated, small cases") {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const study::Series series{small_scenario(seed), profile_for(seed)};
    const std::vector<Simulated> all = simulate_all(series, series.scenario.cluster.gpus);
    INFO("seed " << seed << ", " << all.size() << " splits");
    const study::SearchResult found = study::search(series, options_for(Objective::time, 5));
    CHECK(found.fitting == std::ssize(all));
    CHECK(found.simulated <= found.fitting);
    std::vector<double> times;
    for (const study::Found& one : found.best) times.push_back(one.run.step_time.si());
    CHECK(times == least(all, 5, [](const Simulated& one) { return one.time; }));

    std::vector<double> memory;
    for (const study::Found& one : study::search(series, options_for(Objective::memory, 3)).best)
      memory.push_back((one.run.memory.total + one.run.memory.context).si());
    CHECK(memory == least(all, 3, [](const Simulated& one) { return one.memory; }));
  }
}

TEST_CASE("the cheapest of several numbers of GPUs costs least of all their splits") {
  const study::Series series{small_scenario(2), profile_for(2)};
  study::SearchOptions options = options_for(Objective::cost, 4);
  options.gpus = {2, 4, 8};
  std::vector<Simulated> all;
  for (const int gpus : options.gpus)
    for (const Simulated& one : simulate_all(series, gpus)) all.push_back(one);
  std::vector<double> costs;
  for (const study::Found& one : study::search(series, options).best)
    costs.push_back(one.run.cost->si());
  CHECK(costs == least(all, 4, [](const Simulated& one) { return one.time * one.split.gpus; }));
}

TEST_CASE("a search refuses jitter and other GPUs, whose steps may be below the bound") {
  study::Series series{small_scenario(0), profile_for(0)};
  series.scenario.jitter.compute = 0.05;
  CHECK_THROWS_WITH(study::search(series, options_for(Objective::time, 1)),
                    Catch::Contains("jitter.compute"));
  series.scenario.jitter.compute = 0;
  series.scenario.cluster.other_gpus.emplace_back();
  CHECK_THROWS_WITH(study::search(series, options_for(Objective::time, 1)),
                    Catch::Contains("cluster.other_gpus"));
}

TEST_CASE("[M420] slow parts do not make a step shorter than its bound") {
  study::Series series{small_scenario(1), profile_for(1)};
  series.scenario.cluster.stragglers = {{.first = 0, .last = 0, .slowdown = 1.5}};
  for (const Simulated& one : simulate_all(series, series.scenario.cluster.gpus)) {
    INFO(text_of(one.split));
    CHECK(bound_of(series, one.split).time.si() <= one.time * (1 + 1e-9));
  }
}

TEST_CASE("[M420] stages of frozen layers, which wait for nobody, keep to the bound") {
  study::Series series{small_scenario(0), profile_for(0)};
  series.scenario.training.frozen_layers = 2;
  for (const Simulated& one : simulate_all(series, series.scenario.cluster.gpus)) {
    INFO(text_of(one.split));
    CHECK(bound_of(series, one.split).time.si() <= one.time * (1 + 1e-9));
  }
}

TEST_CASE("of what does not fit the smallest is named") {
  study::Series series{small_scenario(0), profile_for(0)};
  series.scenario.cluster.gpu.memory = Bytes(5e7);
  Bytes least(1e18);
  for (const study::Frame& frame : study::frames(series.scenario, 4, {}))
    for (const Split& split : study::splits(series.scenario, frame, {})) {
      const spec::Scenario s = study::with_split(series.scenario, split);
      if (!spec::violations(s).empty()) continue;
      const auto work = workload::rank_workload(s.model, s.training, s.parallelism);
      const plan::MemoryNeed need = plan::memory_need(s, work, series.profile);
      if (need.total + need.context > Bytes(5e7))
        least = std::min(least, need.total + need.context);
    }
  Bytes named(1e18);
  for (const study::Losers& row : study::search(series, options_for(Objective::time, 1)).losers)
    if (row.smallest) named = std::min(named, row.smallest->need);
  CHECK(named == least);
}

TEST_CASE("a search does not depend on the number of its threads") {
  const study::Series series{small_scenario(1), profile_for(1)};
  study::SearchOptions options = options_for(Objective::time, 8);
  const study::SearchResult alone = study::search(series, options);
  options.jobs = 3;
  const study::SearchResult shared = study::search(series, options);
  CHECK(alone.simulated == shared.simulated);
  REQUIRE(alone.best.size() == shared.best.size());
  for (std::size_t i = 0; i < alone.best.size(); ++i) {
    CHECK(alone.best[i].split == shared.best[i].split);
    CHECK(alone.best[i].run.step_time == shared.best[i].run.step_time);
  }
  REQUIRE(alone.losers.size() == shared.losers.size());
  for (std::size_t i = 0; i < alone.losers.size(); ++i) {
    CHECK(alone.losers[i].reason == shared.losers[i].reason);
    CHECK(alone.losers[i].splits == shared.losers[i].splits);
  }
}

TEST_CASE("[M420] no simulated step is shorter than its bound; on a free network it is close") {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    study::Series series{small_scenario(seed), profile_for(seed)};
    const bool is_free = seed == 3;
    if (is_free) {
      series.scenario.cluster.nic_bandwidth = BytesPerSecond(1e18);
      series.scenario.cluster.node_link_bandwidth = BytesPerSecond(1e18);
      series.profile.numbers.at("network.hop_latency_s").value = 0;
      series.profile.numbers.at("network.scalar_latency_s").value = 0;
      series.profile.numbers.erase("network.transport_cap_Bps");
    }
    for (const Simulated& one : simulate_all(series, series.scenario.cluster.gpus)) {
      const plan::StepBound bound = bound_of(series, one.split);
      INFO("seed " << seed << ": " << text_of(one.split));
      CHECK(bound.time.si() <= one.time * (1 + 1e-9));
      // Left out are the optimizer and what waits for stages of unequal work.
      if (is_free) CHECK(bound.time.si() > 0.7 * one.time);
      CHECK(
          (bound.kernels + bound.tensor + bound.context + bound.expert + bound.host + bound.bubble)
              .si() == Approx(bound.time.si()).epsilon(1e-9));
    }
  }
}
