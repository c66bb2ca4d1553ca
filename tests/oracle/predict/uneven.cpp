// SPDX-License-Identifier: Apache-2.0
// Unequal ranks against closed forms.
#include "sim/plan/uneven.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

constexpr double kRounding = 1e-12;

/// Pure data parallelism without overlap: computation, then one all-reduce, then the update.
spec::Scenario data_parallel(int ranks) {
  spec::Scenario scenario = scenario_of(gpt_345m(), ranks);
  scenario.model.layers = 2;
  return scenario;
}

double harmonic(int n) {
  double sum = 0;
  for (int i = 1; i <= n; ++i) sum += 1.0 / i;
  return sum;
}

}  // namespace

TEST_CASE("[M401] every distribution has mean 1 and the standard deviation asked for") {
  for (const auto& row : names<spec::JitterDistribution>())
    for (const double wanted : {0.01, 0.05, 0.2}) {
      constexpr int kSlices = 200'000;
      double sum = 0, squares = 0;
      for (int i = 0; i < kSlices; ++i) {
        const double x = plan::jitter_quantile({.compute = wanted, .distribution = row.value},
                                               (i + 0.5) / kSlices);
        sum += x;
        squares += x * x;
      }
      const double mean = sum / kSlices;
      INFO(row.name << " " << wanted);
      CHECK(mean == Approx(1).epsilon(1e-5));  // midpoints leave the last tail out
      CHECK(std::sqrt(squares / kSlices - mean * mean) == Approx(wanted).epsilon(1e-3));
    }
}

TEST_CASE("[M401] a rank's draw depends on neither the number of ranks nor other steps") {
  spec::Scenario small = data_parallel(4), large = data_parallel(64);
  small.jitter.compute = large.jitter.compute = 0.05;
  std::vector<plan::Pace> four = plan::paces_of(small), many = plan::paces_of(large),
                          next = plan::paces_of(large);
  plan::add_jitter(four, small, 5);
  plan::add_jitter(many, large, 5);
  plan::add_jitter(next, large, 6);
  for (std::size_t rank = 0; rank < 4; ++rank) CHECK(four[rank].slowdown == many[rank].slowdown);
  CHECK(many[0].slowdown != next[0].slowdown);
}

TEST_CASE(
    "[M404] pure data parallelism waits for the slowest of P ranks: exponential jitter costs "
    "s (H_P - 1) of the computation on average") {
  const cost::Profile profile = round_profile();
  for (const int ranks : {2, 8, 64}) {
    spec::Scenario scenario = data_parallel(ranks);
    const Prediction even = prediction_of(scenario, profile);
    const double work = local_work(even);
    const double step = run_of(even).step_time.si();
    constexpr double kSpread = 0.05;
    constexpr int kSteps = 400;
    scenario.jitter = {
        .compute = kSpread, .distribution = spec::JitterDistribution::exponential, .steps = kSteps};
    const result::Run run = run_of(prediction_of(scenario, profile));
    REQUIRE(run.uneven);
    CHECK(run.uneven->even.si() == step);
    const double expected = step + kSpread * (harmonic(ranks) - 1) * work;
    double variance = 0;  // of the largest of P exponential draws: the sum of 1/k^2
    for (int k = 1; k <= ranks; ++k) variance += 1.0 / k / k;
    const double error = kSpread * work * std::sqrt(variance / kSteps);
    INFO(ranks << " ranks");
    CHECK(std::abs(run.step_time.si() - expected) < 4 * error);
    CHECK(run.uneven->deviation.si() ==
          Approx(kSpread * work * std::sqrt(variance)).epsilon(0.2));  // of 400 draws
  }
}

TEST_CASE("[M402] every drawn step of pure data parallelism is that of its slowest rank alone") {
  const cost::Profile profile = round_profile();
  spec::Scenario scenario = data_parallel(16);
  scenario.jitter = {.compute = 0.1, .steps = 1};
  const double work = local_work(prediction_of(scenario_of(scenario.model, 16), profile));
  for (int seed = 0; seed < 10; ++seed) {
    scenario.jitter.seed = seed;
    std::vector<plan::Pace> paces = plan::paces_of(scenario);
    plan::add_jitter(paces, scenario, 0);
    const double slowest = std::ranges::max_element(paces, {}, &plan::Pace::slowdown)->slowdown;
    const result::Run run = run_of(prediction_of(scenario, profile));
    CHECK(run.step_time.si() ==
          Approx(run.uneven->even.si() + (slowest - 1) * work).epsilon(kRounding));
  }
}

TEST_CASE("[M400] a tensor-parallel group keeps the pace of its slowest member") {
  const cost::Profile profile = round_profile();
  spec::Scenario scenario = scenario_of(gpt_345m(), 8);
  scenario.parallelism.tp = 4;
  scenario.training.global_batch = 2;
  scenario.cluster.gpus_per_node = 4;
  scenario.cluster.nodes = 2;
  scenario.cluster.node_link_bandwidth = BytesPerSecond(300e9);
  const auto with = [&](std::vector<spec::Straggler> stragglers) {
    spec::Scenario slow = scenario;
    slow.cluster.stragglers = std::move(stragglers);
    return step_of(slow, profile);
  };
  using spec::JitterScope;
  const spec::Straggler slow{JitterScope::rank, 1, 1, 1.3};
  const spec::Straggler less{JitterScope::rank, 2, 2, 1.2};
  CHECK(with({slow, less}) == with({slow}));
  CHECK(with({{JitterScope::node, 0, 0, 1.3}}) == with({slow}));
  CHECK(with({less}) < with({slow}));
  CHECK(with({{JitterScope::node, 0, 1, 1.3}}) == with({slow}));
  CHECK(with({slow, {JitterScope::rank, 1, 1, 2}}) ==
        Approx(with({{JitterScope::rank, 1, 1, 2.6}})).epsilon(kRounding));
}

TEST_CASE(
    "other GPUs that are the cluster's own change nothing, half as fast ones double what they "
    "compute") {
  cost::Profile profile = round_profile();
  spec::Scenario scenario = data_parallel(4);
  const double even = step_of(scenario, profile);
  const double work = local_work(prediction_of(scenario, profile));
  spec::OtherGpus other{.first = 2, .last = 3, .cluster = "same", .profile = "round"};
  other.gpu = scenario.cluster.gpu;
  scenario.cluster.other_gpus = {other};
  profile.others = {round_profile()};
  CHECK(step_of(scenario, profile) == even);

  spec::Gpu& gpu = scenario.cluster.other_gpus[0].gpu;
  gpu.peak_bf16 = 0.5 * gpu.peak_bf16;
  set(profile.others[0], "hbm.bandwidth_Bps", 0.5e12);
  CHECK(step_of(scenario, profile) == Approx(even + work).epsilon(kRounding));
}

TEST_CASE("the job fits when it fits on the GPU with the least memory") {
  cost::Profile profile = round_profile();
  spec::Scenario scenario = data_parallel(4);
  spec::OtherGpus other{.first = 3, .last = 3, .cluster = "small", .profile = "round"};
  other.gpu = scenario.cluster.gpu;
  other.gpu.memory = Bytes(1e9);
  other.gpu.name = "small";
  scenario.cluster.other_gpus = {other};
  profile.others = {round_profile()};
  const Prediction prediction = prediction_of(scenario, profile);
  const auto* infeasible = std::get_if<result::Infeasible>(&prediction.outcome);
  REQUIRE(infeasible != nullptr);
  CHECK(infeasible->reason.find("small") != std::string::npos);
  CHECK(infeasible->have == Bytes(1e9));
}
