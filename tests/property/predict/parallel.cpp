// SPDX-License-Identifier: Apache-2.0
// Random splits of random models: every prediction is whole, whatever the split.
#include <catch2/catch.hpp>

#include "tests/support/prediction.hpp"
#include "tests/support/random_scenario.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

constexpr double kRounding = 1e-9;

spec::Scenario random_split(std::uint64_t seed) {
  Random random(seed);
  spec::Scenario s = scenario_of(random_model(random), 1);
  s.name = "split " + std::to_string(seed);
  s.model.layers = 12;
  s.training = random_training(random);
  s.cluster.gpus_per_node = one_of(random, {1, 4, 8});
  s.cluster.nics_per_node = one_of(random, {1, s.cluster.gpus_per_node});
  s.cluster.node_link_bandwidth = BytesPerSecond(300e9);
  s.cluster.nodes = 16;
  spec::Parallelism& p = s.parallelism;
  p.tp = one_of(random, {1, 2, 4});
  p.pp = one_of(random, {1, 2, 3, 4});
  p.cp = one_of(random, {1, 1, 2});
  if (p.cp > 1) s.model.window = 0;  // a ring does not skip what lies outside a window
  if (coin(random)) {
    s.model.experts = 8, s.model.experts_per_token = 2, s.model.expert_ffn = s.model.ffn;
    p.ep = one_of(random, {1, 2, 4});
  }
  // Experts beside tensor parallelism need the tokens split.
  p.sequence_parallel = p.tp > 1 && (s.model.experts > 0 || coin(random));
  p.stage_overlap = any_of<spec::StageOverlap>(random);
  p.schedule = static_cast<spec::Schedule>(random.below(4));
  if (p.schedule == spec::Schedule::interleaved && p.pp > 1) p.virtual_stages = p.pp == 4 ? 3 : 2;
  if (coin(random) && p.ep == 1)
    p.order = {spec::MeshAxis::tp, spec::MeshAxis::pp, spec::MeshAxis::cp, spec::MeshAxis::ep,
               spec::MeshAxis::dp};
  s.strategy.sharding = static_cast<spec::Sharding>(
      random.below(p.pp > 1   ? 2
                   : p.ep > 1 ? 5
                              : 6));  // hsdp, the last, not with split experts
  s.strategy.shard_group = 2;
  s.strategy.prefetch = one_of(random, {0, 1, 3});
  s.strategy.reshard_after_forward = coin(random);
  s.training.overlap_parameters = coin(random);
  const int copies = 8;
  s.cluster.gpus = copies * p.tp * p.pp;
  s.cluster.nodes = std::max(1, s.cluster.gpus / s.cluster.gpus_per_node);
  s.training.global_batch = s.training.micro_batch * copies * p.pp * one_of(random, {1, 2});
  for (const spec::Violation& violation : spec::violations(s))
    throw InternalError(violation.key + ": " + violation.what);
  return s;
}

double sum_of(const result::Breakdown& b) {
  return (b.compute + b.optimizer + b.exposed_communication + b.copy + b.host + b.bubble).si();
}

}  // namespace

TEST_CASE(
    "the parts of a split step sum to it, and communication is exposed for no longer than it "
    "takes") {
  int runs = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const spec::Scenario scenario = random_split(seed);
    INFO(scenario.name << " tp " << scenario.parallelism.tp << " pp " << scenario.parallelism.pp
                       << " " << name_of(scenario.parallelism.schedule) << " "
                       << name_of(scenario.strategy.sharding) << ", stages "
                       << name_of(scenario.parallelism.stage_overlap) << ", "
                       << spec::micro_batches(scenario) << " micro-batches");
    const Prediction prediction = prediction_of(scenario, random_profile(seed));
    const auto* run = std::get_if<result::Run>(&prediction.outcome);
    if (run == nullptr) continue;
    ++runs;
    CHECK(sum_of(run->breakdown) == Approx(run->step_time.si()).epsilon(kRounding));
    double terms = 0;
    for (const result::Term& term : run->terms) terms += term.time.si();
    CHECK(terms == Approx(run->step_time.si()).epsilon(kRounding));
    double exposed = 0;
    for (const result::Communication& row : run->communication) {
      CHECK(row.exposed.si() <= row.time.si() * (1 + kRounding));
      exposed += row.exposed.si();
    }
    CHECK(exposed == Approx(run->breakdown.exposed_communication.si()).margin(1e-12));
    CHECK(run->breakdown.bubble >= Seconds(0));
    if (scenario.parallelism.pp == 1) CHECK(run->breakdown.bubble.si() < 1e-9);
  }
  CHECK(runs > 30);
}

TEST_CASE("[M425] a step of DualPipe is the sum of its parts, and no longer for what pairs hide") {
  int runs = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    spec::Scenario scenario = random_split(seed);
    spec::Parallelism& p = scenario.parallelism;
    if (p.pp == 1) continue;
    p.schedule = spec::Schedule::dualpipe, p.virtual_stages = 2;
    p.stage_overlap = spec::StageOverlap::automatic;
    scenario.training.global_batch *= 2;
    if (!spec::violations(scenario).empty()) continue;
    INFO(scenario.name << " tp " << p.tp << " pp " << p.pp);
    const Prediction prediction = prediction_of(scenario, random_profile(seed));
    const auto* run = std::get_if<result::Run>(&prediction.outcome);
    if (run == nullptr) continue;
    ++runs;
    CHECK(sum_of(run->breakdown) == Approx(run->step_time.si()).epsilon(kRounding));
    CHECK(run->breakdown.bubble >= Seconds(0));
    p.expert_overlap = spec::ExpertOverlap::none;
    const Prediction apart = prediction_of(scenario, random_profile(seed));
    CHECK(run->step_time <= std::get<result::Run>(apart.outcome).step_time * (1 + kRounding));
  }
  CHECK(runs > 5);
}

TEST_CASE("a split prediction is the same every time") {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const spec::Scenario scenario = random_split(seed);
    const Prediction one = prediction_of(scenario, random_profile(seed));
    const Prediction two = prediction_of(scenario, random_profile(seed));
    REQUIRE(one.timeline.spans.size() == two.timeline.spans.size());
    for (std::size_t i = 0; i < one.timeline.spans.size(); ++i)
      CHECK(one.timeline.spans[i].end == two.timeline.spans[i].end);
  }
}
