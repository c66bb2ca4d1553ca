// SPDX-License-Identifier: Apache-2.0
#include "sim/study/sensitivity.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "sim/base/file.hpp"
#include "sim/scenario/keys.hpp"
#include "sim/scenario/load.hpp"
#include "sim/study/choices.hpp"
#include "tests/support/prediction.hpp"

using namespace scapesim;

namespace {

const PredictOptions kFast{.driver = engine::Driver::standalone, .interval_draws = 0};

study::Series series_of(const char* name, const std::vector<std::string>& set = {}) {
  const auto file = data_folder() / "scenarios" / name;
  return study::with_profiles(scenario::load_scenarios(file, set), file.parent_path()).front();
}

const study::Effect& effect_of(const study::Sensitivity& result, std::string_view name) {
  const auto found = std::ranges::find_if(
      result.effects, [&](const study::Effect& e) { return e.parameter.name == name; });
  REQUIRE(found != result.effects.end());
  return *found;
}

/// dT/dp of a key by two files' worth of --set, sharing no code with the study.
double slope_by_set(const char* name, const std::vector<std::string>& set, const std::string& key,
                    double value, const std::string& unit) {
  const double h = 2e-4 * value;
  const auto step = [&](double v) {
    std::vector<std::string> all = set;
    all.push_back(fmt::format("{}={}{}", key, v, unit));
    const study::Series s = series_of(name, all);
    return test::step_of(s.scenario, s.profile);
  };
  return (step(value + h) - step(value - h)) / (2 * h);
}

double slope_by_profile(const study::Series& series, const std::string& key) {
  cost::Profile less = series.profile, more = series.profile;
  const double value = series.profile.number(key), h = 2e-4 * value;
  less.numbers.at(key).value -= h;
  more.numbers.at(key).value += h;
  return (test::step_of(series.scenario, more) - test::step_of(series.scenario, less)) / (2 * h);
}

const study::Disturbance& disturbance_of(const std::vector<study::Disturbance>& rows,
                                         std::string_view name) {
  const auto found = std::ranges::find(rows, name, &study::Disturbance::name);
  REQUIRE(found != rows.end());
  return *found;
}

std::vector<study::Disturbance> disturbances_of(const study::Series& series, int draws) {
  const PredictOptions options{.driver = engine::Driver::standalone, .interval_draws = draws};
  const Prediction base = predict(series.scenario, series.profile, options);
  return study::disturbances(series, test::run_of(base), options);
}

}  // namespace

// [M367]
TEST_CASE("derivatives agree with central differences of overridden scenarios and profiles") {
  constexpr const char* kFile = "vista-llama-1.8b-ndr.toml";
  const std::vector<std::string> set = {"cluster.gpus=64"};
  const study::Series series = series_of(kFile, set);
  const study::Sensitivity result = study::sensitivity(series, 0.1, kFast);
  const double nic = slope_by_set(kFile, set, "cluster.nic_bandwidth", 50e9, "B/s");
  CHECK(*effect_of(result, "cluster.nic_bandwidth").derivative == Approx(nic).epsilon(1e-4));
  for (const char* key : {"gemm.scale", "hbm.bandwidth_Bps", "network.efficiency"}) {
    INFO(key);
    CHECK(*effect_of(result, key).derivative ==
          Approx(slope_by_profile(series, key)).epsilon(1e-4));
  }
}

TEST_CASE("derivatives agree for a pipeline with tensor parallelism too") {
  const study::Series series = series_of("jupiter-llama3-70b.toml");
  const study::Sensitivity result = study::sensitivity(series, 0.1, kFast);
  for (const char* key : {"gemm.scale", "hbm.bandwidth_Bps"}) {
    INFO(key);
    CHECK(*effect_of(result, key).derivative ==
          Approx(slope_by_profile(series, key)).epsilon(1e-3));
  }
  const double link = slope_by_set("jupiter-llama3-70b.toml", {}, "cluster.node_link_bandwidth",
                                   series.scenario.cluster.node_link_bandwidth.si(), "B/s");
  CHECK(*effect_of(result, "cluster.node_link_bandwidth").derivative == Approx(link).epsilon(1e-3));
}

TEST_CASE("what-ifs are the steps of the changed scenario, the largest effect first") {
  const study::Series series = series_of("vista-llama-1.8b-ndr.toml", {"cluster.gpus=64"});
  const study::Sensitivity result = study::sensitivity(series, 0.1, kFast);
  const study::Series more = series_of("vista-llama-1.8b-ndr.toml",
                                       {"cluster.gpus=64", "cluster.nic_bandwidth=55000000000B/s"});
  CHECK(effect_of(result, "cluster.nic_bandwidth").more->si() ==
        Approx(test::step_of(more.scenario, more.profile)).epsilon(1e-12));
  const double base = study::run_of(result.point)->step_time.si();
  double before = INFINITY;
  for (const study::Effect& effect : result.effects) {
    double reach = 0;
    for (const auto& time : {effect.less, effect.more})
      if (time) reach = std::max(reach, std::abs(time->si() - base));
    CHECK(reach <= before);
    before = reach;
  }
  CHECK(std::ranges::find(result.without_effect, "copy.staged_Bps") != result.without_effect.end());
}

// [M367] Euler: a step is homogeneous in its times.
TEST_CASE("the shares of all resources sum to the step") {
  for (const char* name :
       {"vista-llama-1.8b.toml", "gpt3-175b-1024.toml", "jupiter-llama3-70b.toml",
        "jupiter-llama3-8b-fsdp.toml", "llama2-13b-fsdp.toml", "vtrain-gpt-12x1024.toml"}) {
    INFO(name);
    const study::Sensitivity result = study::sensitivity(series_of(name), 0.1, kFast);
    CHECK(std::accumulate(result.resource_shares.begin(), result.resource_shares.end(), 0.0) ==
          Approx(1).epsilon(2e-3));
    for (const double share : result.resource_shares) CHECK(share > -0.02);
  }
}

// [M368]
TEST_CASE("the resource that bounds a term is the one that makes it shorter") {
  const study::Sensitivity sockets =
      study::sensitivity(series_of("vista-llama-1.8b.toml"), 0.1, kFast);
  const auto part_of = [&](std::string_view name) {
    for (const study::PartBound& part : sockets.parts)
      if (part.name == name) return part;
    FAIL("no part " << name);
    return study::PartBound{};
  };
  CHECK(part_of("gradient all-reduce").bound == "adapters");
  CHECK(part_of("gradient all-reduce").shares.size() == study::machines().size());
  double sum = 0;
  for (const study::PartBound& part : sockets.parts) sum += part.time.si();
  CHECK(sum == Approx(study::run_of(sockets.point)->step_time.si()).epsilon(1e-9));
}

// [M369]
TEST_CASE("every roof is a lower bound") {
  for (const char* name :
       {"vista-llama-1.8b.toml", "vista-llama-1.8b-scape.toml", "gpt3-175b-1024.toml",
        "jupiter-llama3-70b.toml", "jupiter-llama3-8b-fsdp.toml", "llama2-13b-fsdp.toml"}) {
    INFO(name);
    const study::Series series = series_of(name);
    const Prediction prediction = predict(series.scenario, series.profile, kFast);
    const result::Run& run = test::run_of(prediction);
    const std::vector<study::Roof> roofs = study::roofs_of(prediction);
    REQUIRE(roofs.size() == 5);
    for (const study::Roof& roof : roofs) {
      INFO(roof.name);
      CHECK(roof.step_time.si() <= run.step_time.si() * (1 + 1e-9));
      CHECK(roof.step_time > Seconds(0));
    }
  }
}

TEST_CASE("on one stream the roofs are sums by hand") {
  // Dense without overlap: computation, one all-reduce, then the optimizer, one after the other.
  const study::Series series = series_of("vista-llama-1.8b.toml");
  const Prediction prediction = predict(series.scenario, series.profile, kFast);
  const result::Run& run = test::run_of(prediction);
  const std::vector<study::Roof> roofs = study::roofs_of(prediction);
  CHECK(roofs[0].step_time.si() ==
        Approx((run.step_time - run.breakdown.exposed_communication).si()).epsilon(1e-9));
  CHECK(roofs[1].step_time.si() == Approx(std::max(run.breakdown.exposed_communication,
                                                   run.breakdown.compute + run.breakdown.optimizer)
                                              .si())
                                       .epsilon(1e-9));
  CHECK(
      roofs[3].step_time.si() ==
      Approx((run.step_time - run.breakdown.compute - run.breakdown.optimizer).si()).epsilon(1e-9));
}

TEST_CASE("alternatives change one choice and are sorted by time per token") {
  const study::Series series = series_of("llama2-13b-fsdp.toml");
  const study::Sensitivity result = study::sensitivity(series, 0.1, kFast);
  REQUIRE_FALSE(result.alternatives.empty());
  double before = 0;
  bool recompute = false;
  for (const study::Alternative& row : result.alternatives) {
    const double time = row.step_time ? row.step_time->si() / row.tokens_ratio : INFINITY;
    CHECK(time >= before);
    before = time;
    CHECK(row.step_time.has_value() == row.infeasible.empty());
    recompute = recompute || row.key == "training.recompute";
  }
  CHECK(recompute);
}

TEST_CASE("every key of a recipe is said to train otherwise or alike") {
  for (const scenario::KeyRecord& key : scenario::key_records()) {
    const bool recipe =
        key.section == "training" || key.section == "parallelism" || key.section == "strategy";
    INFO(key.section << "." << key.name << ": a new key belongs into sim/study/choices.cpp");
    CHECK(study::trains_otherwise(fmt::format("{}.{}", key.section, key.name)).has_value() ==
          recipe);
  }
  CHECK(study::trains_otherwise("strategy.reduce_dtype") == true);
  CHECK(study::trains_otherwise("strategy.sharding") == false);
}

// [M376]
TEST_CASE("a slow GPU costs what it computes longer, as everybody waits for it") {
  // Data parallel without overlap: forward, backward and optimizer of the slow rank are stretched.
  const study::Series series = series_of("vista-llama-1.8b-ndr.toml", {"cluster.gpus=16"});
  const result::Run run = test::run_of(test::prediction_of(series.scenario, series.profile));
  const auto rows = disturbances_of(series, 16);
  const study::Disturbance& row = disturbance_of(rows, "one GPU 10 % slower");
  const Seconds computes = run.breakdown.compute + run.breakdown.optimizer;
  CHECK(row.slowdown - 1 == Approx(0.1 * (computes / run.step_time)).epsilon(1e-6));
  CHECK(row.low.value() < row.slowdown);
  CHECK(row.high.value() > row.slowdown);
  CHECK(*row.high < 1.1);
  CHECK_FALSE(row.deviation.has_value());
}

// [M376]
TEST_CASE("jitter costs the mean of drawn steps, with its spread and an interval") {
  const study::Series series = series_of("vista-llama-1.8b-ndr.toml", {"cluster.gpus=16"});
  const auto rows = disturbances_of(series, 16);
  const study::Disturbance& row = disturbance_of(rows, "every GPU's pace jitters by 2 %");
  const study::Series jittered =
      series_of("vista-llama-1.8b-ndr.toml", {"cluster.gpus=16", "jitter.compute=2%"});
  CHECK(row.step_time.si() ==
        Approx(test::step_of(jittered.scenario, jittered.profile)).epsilon(1e-12));
  CHECK(row.slowdown > 1.01);
  CHECK(row.slowdown < 1.1);
  CHECK(row.deviation.value() > 0);
  CHECK(row.low.value() <= row.slowdown);
  CHECK(row.high.value() >= row.slowdown);
  CHECK(*row.high - *row.low < row.slowdown - 1);
}

TEST_CASE("a disturbance comes beside those that the scenario has") {
  const study::Series series = series_of(
      "vista-llama-1.8b-ndr.toml", {"cluster.gpus=16", "cluster.stragglers=[\"GPU 3 = 1.3\"]",
                                    "jitter.compute=1%", "cluster.degraded=[\"NIC 5 = 0.9\"]"});
  const auto rows = disturbances_of(series, 0);
  const study::Disturbance& gpu = disturbance_of(rows, "one GPU 10 % slower");
  CHECK(gpu.value == R"(["GPU 3 = 1.3", "GPU 0 = 1.1"])");
  CHECK(gpu.slowdown < 1.03);  // GPU 3 is waited for anyway
  CHECK_FALSE(gpu.low.has_value());
  CHECK(disturbance_of(rows, "one adapter at half its rate").value ==
        R"(["NIC 5 = 0.9", "NIC 0 = 0.5"])");
  for (const study::Disturbance& row : rows) CHECK(row.key != "jitter.compute");
}

TEST_CASE("links inside a node and above a leaf switch are slowed where there are some") {
  const auto rows = disturbances_of(series_of("llama2-13b-fsdp.toml"), 0);
  CHECK(disturbance_of(rows, "one GPU's link in its node at half its rate").value ==
        R"(["GPU 0 - node switch 0 = 0.5"])");
  const auto mesh = disturbances_of(series_of("jupiter-llama3-70b.toml"), 0);
  CHECK(disturbance_of(mesh, "one GPU's link in its node at half its rate").value ==
        R"(["GPU 0 - GPU 1 = 0.5"])");
  CHECK(disturbance_of(mesh, "one of the last stage 10 % slower").slowdown > 1.05);
}

// [M376]
TEST_CASE("a slow adapter costs what the degraded scenario takes, and its interval holds that") {
  const study::Series series = series_of("vista-llama-1.8b-ndr.toml", {"cluster.gpus=16"});
  const PredictOptions draws{.driver = engine::Driver::standalone, .interval_draws = 16};
  const study::Sensitivity result = study::sensitivity(series, 0.1, draws);
  const study::Series slow = series_of("vista-llama-1.8b-ndr.toml",
                                       {"cluster.gpus=16", "cluster.degraded=[\"NIC 0 = 0.5\"]"});
  const double step = test::step_of(slow.scenario, slow.profile);
  const study::Disturbance& row =
      disturbance_of(result.disturbances, "one adapter at half its rate");
  CHECK(row.step_time.si() == Approx(step).epsilon(1e-12));
  CHECK(row.slowdown > 1);
  CHECK(row.low.value() <= row.slowdown);
  CHECK(row.high.value() >= row.slowdown);
  CHECK(*row.high - *row.low < row.slowdown - 1);  // narrower than the effect: draws go in pairs
}
