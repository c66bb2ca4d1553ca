// SPDX-License-Identifier: Apache-2.0
#include "sim/study/capacity.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/scenario/load.hpp"
#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::literals;

namespace {

const PredictOptions kFast{.driver = engine::Driver::standalone, .interval_draws = 0};
constexpr double kDay = 86'400;

std::vector<study::Series> series_of(const std::vector<std::string>& set) {
  const auto file = data_folder() / "scenarios" / "llama2-13b-fsdp.toml";
  return study::with_profiles(scenario::load_scenarios(file, set, scenario::GpuCount::told_later),
                              file.parent_path());
}

study::Capacity planned(const std::vector<std::string>& set,
                        const std::vector<study::Choice>& choices, const study::Goal& goal) {
  std::vector<std::string> notes;
  return study::capacity(study::configurations(series_of(set), choices, goal, notes), goal, kFast);
}

/// The cheapest plan by loops of its own: GPUs and micro-batch written as --set.
struct Cheapest {
  int gpus = 0, micro_batch = 0;
  double cost = INFINITY;
};
Cheapest by_force(double tokens, double deadline, double price) {
  Cheapest best;
  for (int gpus = 1; gpus <= 256; ++gpus)
    for (const int micro_batch : {1, 2, 4}) {
      if (256 % (gpus * micro_batch) != 0) continue;
      const auto file = data_folder() / "scenarios" / "llama2-13b-fsdp.toml";
      std::vector<study::Series> one;
      try {
        one = study::with_profiles(
            scenario::load_scenarios(
                file,
                std::vector<std::string>{"cluster.gpus=" + std::to_string(gpus),
                                         "training.micro_batch=" + std::to_string(micro_batch)}),
            file.parent_path());
      } catch (const InputError&) {
        continue;
      }
      const auto prediction = predict(one[0].scenario, one[0].profile, kFast);
      const auto* run = std::get_if<result::Run>(&prediction.outcome);
      if (run == nullptr) continue;
      const double time = std::ceil(tokens / (256.0 * 4096)) * run->step_time.si();
      const double cost = time / 3600 * gpus * price;
      if (time <= deadline && cost < best.cost) best = {gpus, micro_batch, cost};
    }
  return best;
}

}  // namespace

TEST_CASE("the best plan is that of brute force") {
  for (const double days : {10.0, 20.0, 60.0}) {
    const study::Goal goal{.tokens = Tokens(1e11),
                           .deadline = Seconds(days * kDay),
                           .most_gpus = 256,
                           .objective = study::PlanObjective::cost};
    const study::Capacity result =
        planned({"cluster.gpu_price=2.5USD/h"}, {{"training.micro_batch", {"1", "2", "4"}}}, goal);
    const Cheapest best = by_force(1e11, days * kDay, 2.5);
    INFO(days);
    REQUIRE(result.plans.front().meets == (best.gpus > 0));
    if (best.gpus == 0) continue;
    CHECK(result.plans.front().scenario.cluster.gpus == best.gpus);
    CHECK(result.plans.front().scenario.training.micro_batch == best.micro_batch);
    CHECK(result.plans.front().cost->si() == Approx(best.cost).epsilon(1e-12));
  }
}

TEST_CASE("plans that meet the goal come first by objective, the others by how far they miss") {
  const study::Goal goal{.tokens = Tokens(1e11),
                         .deadline = Seconds(15 * kDay),
                         .most_gpus = 256,
                         .objective = study::PlanObjective::gpu_hours};
  const study::Capacity result = planned({}, {}, goal);
  REQUIRE(result.plans.size() > 4);
  bool missed = false;
  double before = 0;
  for (const study::RunPlan& plan : result.plans) {
    if (!plan.infeasible.empty()) continue;
    if (!plan.meets && !missed) missed = true, before = 0;
    CHECK(plan.meets == !missed);
    const double now = plan.meets ? plan.gpu_hours : plan.time.si();
    CHECK(now >= before);
    before = now;
    CHECK(plan.misses.empty() == plan.meets);
  }
  CHECK(missed);
  REQUIRE(result.next_better);
  const study::RunPlan& next = result.plans[*result.next_better];
  CHECK_FALSE(next.meets);
  CHECK(next.gpu_hours < result.plans.front().gpu_hours);
}

TEST_CASE("the front holds what no other beats in time and GPU-hours") {
  const study::Capacity result =
      planned({}, {{"training.micro_batch", {"1", "2"}}}, {.tokens = Tokens(1e11)});
  for (const study::RunPlan& plan : result.plans) {
    bool beaten = false;
    for (const study::RunPlan& other : result.plans)
      if (other.infeasible.empty() && other.time <= plan.time && other.gpu_hours <= plan.gpu_hours)
        beaten = beaten || other.time < plan.time || other.gpu_hours < plan.gpu_hours;
    CHECK(plan.pareto == (plan.infeasible.empty() && !beaten));
  }
}

TEST_CASE("a goal out of reach names the nearest plan; what does not fit says so") {
  const study::Capacity result =
      planned({}, {}, {.tokens = Tokens(1e13), .deadline = Seconds(3600), .most_gpus = 64});
  CHECK_FALSE(result.plans.front().meets);
  REQUIRE(result.nearest);
  for (const study::RunPlan& plan : result.plans)
    if (plan.infeasible.empty()) CHECK(result.plans[*result.nearest].time <= plan.time);
  const study::Capacity tight =
      planned({"cluster.gpu_memory=8GiB"}, {}, {.tokens = Tokens(1e12), .most_gpus = 8});
  CHECK_FALSE(tight.nearest);
  CHECK_FALSE(tight.plans.front().infeasible.empty());
}

// [M374]
TEST_CASE("time, GPU-hours, cost, energy and carbon follow from the step by hand") {
  const std::vector<std::string> set = {
      "cluster.gpus=64", "cluster.gpu_price=2USD/h",          "cluster.node_power=10kW",
      "cluster.pue=1.2", "cluster.carbon_intensity=100g/kWh", "cluster.node_mtbf=none"};
  const study::Series series = series_of(set).front();
  const study::Goal goal{.tokens = Tokens(1e11), .utilisation = 0.8};
  const study::RunPlan plan = study::plan_run(series, goal, kFast);
  const double step = test::step_of(series.scenario, series.profile);
  const double steps = std::ceil(1e11 / (256.0 * 4096));
  CHECK(plan.steps == steps);
  CHECK(plan.training.si() == Approx(steps * step).epsilon(1e-12));
  CHECK(plan.time.si() == Approx(steps * step / 0.8).epsilon(1e-12));
  CHECK(plan.gpu_hours == Approx(steps * step * 64 / 3600).epsilon(1e-12));
  CHECK(plan.cost->si() == Approx(2 * plan.gpu_hours).epsilon(1e-12));
  const double kwh = 8 * 10.0 * 1.2 * steps * step / 3600;
  CHECK(plan.energy->si() / 3.6e6 == Approx(kwh).epsilon(1e-12));
  CHECK(plan.carbon->si() == Approx(0.1 * kwh).epsilon(1e-12));
  CHECK_FALSE(study::goodput(plan));  // failures are not known
}

// [M407]
TEST_CASE("hours that do not train count, and failures are a part of them") {
  const std::vector<std::string> unknown = {"cluster.gpus=64", "cluster.node_mtbf=none"};
  const study::RunPlan ideal =
      study::plan_run(series_of(unknown).front(), {.tokens = Tokens(1e11)}, kFast);
  const study::RunPlan real = study::plan_run(
      series_of(unknown).front(), {.tokens = Tokens(1e11), .effective_time = 0.8}, kFast);
  CHECK(real.training == ideal.training);
  CHECK(real.busy.si() == Approx(ideal.busy.si() / 0.8).epsilon(1e-12));
  CHECK(real.gpu_hours == Approx(ideal.gpu_hours / 0.8).epsilon(1e-12));
  const std::vector<std::string> failing = {"cluster.gpus=64", "cluster.node_mtbf=2d",
                                            "cluster.restart_time=2h",
                                            "cluster.storage_bandwidth=1GB/s"};
  const study::RunPlan failed =
      study::plan_run(series_of(failing).front(), {.tokens = Tokens(1e11)}, kFast);
  REQUIRE(*study::goodput(failed) < 0.8);  // failures alone cost more
  CHECK(study::plan_run(series_of(failing).front(), {.tokens = Tokens(1e11), .effective_time = 0.8},
                        kFast)
            .busy == failed.busy);
}

TEST_CASE("failures count where all that it takes is known, and nothing unknown is zero") {
  const std::vector<std::string> known = {"cluster.gpus=64", "cluster.node_mtbf=100d",
                                          "cluster.restart_time=20min",
                                          "cluster.storage_bandwidth=10GB/s"};
  const study::Goal goal{.tokens = Tokens(1e12)};
  const study::RunPlan plan = study::plan_run(series_of(known).front(), goal, kFast);
  REQUIRE(plan.failures);
  CHECK(plan.failures->job_mtbf.si() == Approx(100 * kDay / 8).epsilon(1e-12));
  CHECK(plan.failures->checkpoint.si() == Approx(14 * 13.016e9).epsilon(1e-3));
  const study::Reliability job{.mtbf = plan.failures->job_mtbf,
                               .restart = Seconds(1200),
                               .checkpoint = plan.failures->checkpoint / 10_GBps};
  CHECK(plan.busy == study::expected_makespan(plan.training, study::best_interval(job), job));
  CHECK(*study::goodput(plan) < 1);
  CHECK(*study::goodput(plan) > 0.9);
  for (const char* key :
       {"cluster.node_mtbf", "cluster.restart_time", "cluster.storage_bandwidth"}) {
    std::vector<std::string> set = known;
    set.push_back(std::string(key) + "=none");
    const study::RunPlan other = study::plan_run(series_of(set).front(), goal, kFast);
    CHECK_FALSE(other.failures);
    CHECK(other.busy == other.training);
  }
  CHECK_FALSE(plan.cost);
  CHECK_FALSE(plan.carbon);
}

TEST_CASE(
    "[M434] [M436] a plan's time is that of the ramp's steps, the full batch's and evaluations") {
  const std::vector<std::string> set = {
      "training.batch_ramp=64 64 20000", "training.evaluation_interval=100",
      "training.evaluation_iterations=3", "training.micro_batch=1"};
  const study::Series series = [&] {
    std::vector<std::string> all = set;
    all.push_back("cluster.gpus=32");
    const auto file = data_folder() / "scenarios" / "llama2-13b-fsdp.toml";
    return study::with_profiles(scenario::load_scenarios(file, all), file.parent_path()).front();
  }();
  const study::Goal goal{.tokens = Tokens(1e9)};
  const study::RunPlan plan = study::plan_run(series, goal, kFast);
  const double tokens = static_cast<double>(series.scenario.training.sequence);
  const auto step = [&](std::int64_t batch) {
    spec::Scenario one = series.scenario;
    one.training.batch_ramp = {};
    one.training.stalls = {};
    one.training.global_batch = batch;
    return test::step_of(one, series.profile);
  };
  // Three stages of 6,667 sequences: 64, 128 and 192 of them, then 256.
  const double ramp_steps[] = {105, 52, 35};
  double sequences = 0, time = 0, steps = 0;
  for (int i = 0; i < 3; ++i) {
    sequences += ramp_steps[i] * 64 * (i + 1), steps += ramp_steps[i];
    time += ramp_steps[i] * step(64 * (i + 1));
  }
  CHECK(plan.ramp.si() == Approx(time));
  const double rest = std::ceil((1e9 / tokens - sequences) / 256);
  CHECK(plan.steps == steps + rest);
  const auto prediction = predict(series.scenario, series.profile, kFast);
  const result::Run& run = std::get<result::Run>(prediction.outcome);
  CHECK(plan.evaluation.si() ==
        Approx(std::floor((steps + rest) / 100) * 3 * run.evaluation->iteration.si()));
  CHECK(plan.training.si() == Approx(time + rest * step(256) + plan.evaluation.si()));
  // Fewer tokens than the ramp takes.
  const study::RunPlan few = study::plan_run(series, {.tokens = Tokens(64 * 10 * tokens)}, kFast);
  CHECK(few.steps == 10);
  CHECK(few.training.si() == Approx(10 * step(64)));
}

TEST_CASE("a larger batch needs more tokens where the critical batch is known") {
  const study::Goal goal{.tokens = Tokens(1e11),
                         .most_gpus = 64,
                         .critical_batch = Tokens(1e6),
                         .base_batch = Tokens(256.0 * 4096)};
  const study::Capacity result = planned({}, {{"training.global_batch", {"256", "512"}}}, goal);
  for (const study::RunPlan& plan : result.plans) {
    if (!plan.infeasible.empty()) continue;
    const double batch = static_cast<double>(plan.scenario.training.global_batch) * 4096;
    CHECK(plan.tokens.si() == Approx(1e11 * (1 + batch / 1e6) / (1 + 256.0 * 4096 / 1e6)));
  }
}

TEST_CASE("a choice that is no key, or a value it does not take, is bad input") {
  std::vector<std::string> notes;
  const auto series = series_of({});
  const study::Goal goal{.tokens = Tokens(1e11)};
  for (const study::Choice& wrong : {study::Choice{"training.micro_bach", {"1"}},
                                     study::Choice{"training.micro_batch", {"two"}}}) {
    const std::vector<study::Choice> choices = {wrong};
    CHECK_THROWS_AS(study::configurations(series, choices, goal, notes), InputError);
  }
}
