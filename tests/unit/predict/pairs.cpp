// SPDX-License-Identifier: Apache-2.0
// Passes of DualPipe that run as one hide each other's exchanges of experts.
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/plan/pass_cost.hpp"
#include "tests/support/prediction.hpp"
#include "tests/support/random_scenario.hpp"
#include "topologies/placement.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

/// Four stages of two chunks with experts over two ranks each.
spec::Scenario dualpipe_scenario() {
  spec::Model model = llama({16, 512, 4, 4, 1024});
  model.experts = 8;
  model.experts_per_token = 2;
  model.expert_ffn = 1024;
  spec::Scenario s = scenario_of(model, 8);
  s.name = "pairs";
  s.training = training_of(1, 512);
  s.training.global_batch = 20;
  s.cluster.nodes = 8;
  s.parallelism = {.pp = 4, .ep = 2, .virtual_stages = 2, .schedule = spec::Schedule::dualpipe};
  return s;
}

result::Run run_of(const spec::Scenario& scenario) {
  return std::get<result::Run>(prediction_of(scenario, random_profile(3)).outcome);
}

Seconds exposed_by_experts(const result::Run& run) {
  Seconds sum;
  for (const result::Communication& row : run.communication)
    if (row.name.starts_with("expert parallel")) sum += row.exposed;
  return sum;
}

double hidden(double f, double fx, double b, double bx) {
  return plan::hidden_share({Seconds(f), Seconds(fx)}, {Seconds(b), Seconds(bx)});
}

}  // namespace

TEST_CASE(
    "[M426] two passes take as long as the longer of kernels, exchanges and each pass alone") {
  CHECK(hidden(3, 1, 5, 2) == Approx(1));            // kernels of 8 cover exchanges of 3
  CHECK(hidden(1, 4, 2, 4) == Approx(1 - 5.0 / 8));  // exchanges of 8 beside kernels of 3
  CHECK(hidden(1, 6, 1, 0) == Approx(1 - 5.0 / 6));  // its own kernels hide nothing of a pass
  CHECK(hidden(1, 0, 2, 0) == 0);
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const double f = random.uniform(), fx = random.uniform(), b = random.uniform(),
                 bx = random.uniform();
    const double share = hidden(f, fx, b, bx);
    CHECK(share >= 0);
    CHECK(share <= 1 + 1e-12);
    CHECK(f + b + (1 - share) * (fx + bx) == Approx(std::max({f + b, fx + bx, f + fx, b + bx})));
  }
}

TEST_CASE("[M426] pairs hide exchanges of experts and nothing else; others keep theirs") {
  spec::Scenario scenario = dualpipe_scenario();
  const result::Run paired = run_of(scenario);
  scenario.parallelism.expert_overlap = spec::ExpertOverlap::none;
  const result::Run apart = run_of(scenario);
  CHECK(paired.step_time < apart.step_time);
  CHECK(exposed_by_experts(paired) < exposed_by_experts(apart));
  CHECK(exposed_by_experts(paired) > Seconds(0));  // passes without a partner hide nothing
  CHECK(paired.breakdown.compute.si() == Approx(apart.breakdown.compute.si()).epsilon(0.05));
}

TEST_CASE("[M426] a pass of a pair is shorter by its share of what the pair hides") {
  const spec::Scenario s = dualpipe_scenario();
  const cost::Profile profile = random_profile(3);
  const workload::Workload work = workload::workload_of(s.model, s.training, s.parallelism);
  const topology::Fabric fabric =
      topology::build_fabric(s.cluster, topology::nodes_to_build(s.cluster));
  const plan::Seats seats{graph::mesh_of(s), fabric, topology::placement(s.cluster)};
  const cost::KernelCosts costs(profile, s.cluster.gpu, s.training.precision);
  const plan::LayerCosts layers(work, costs,
                                plan::ExchangeTimes(work, seats, profile, s.collectives));
  const std::vector<plan::Part> parts = plan::parts_of(work, s);
  const plan::Pair pair{parts[1], parts[6]};
  const double share = layers.hidden_share(pair);
  CHECK(share > 0);
  for (const double slowdown : {1.0, 2.0}) {
    const double at_pace = layers.hidden_share(pair, slowdown);
    CHECK(at_pace >= share);  // slower kernels hide more
    const Seconds whole =
        layers.slowed(parts[1].begin, parts[1].end, plan::Pass::forward, slowdown);
    CHECK(layers.slowed(parts[1].begin, parts[1].end, plan::Pass::forward, slowdown, at_pace) <
          whole);
  }
  const plan::PassCost forward =
      layers.part(parts[1].begin, parts[1].end, plan::Pass::forward, share);
  CHECK(forward.time.si() ==
        Approx(layers.slowed(parts[1].begin, parts[1].end, plan::Pass::forward, 1, share).si()));
}

TEST_CASE("[M425] tied embeddings of a V are one, on the first stage") {
  spec::Scenario scenario = dualpipe_scenario();
  scenario.model.tied_embeddings = true;
  for (const result::Communication& row : run_of(scenario).communication)
    CHECK(row.name.find("embedding") == std::string::npos);
}
