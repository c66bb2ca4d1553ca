// SPDX-License-Identifier: Apache-2.0
// [M345] Break-even network, GPUs and tokens: what is found is where the two series are level.
#include "sim/study/breakeven.hpp"

#include <atomic>
#include <catch2/catch.hpp>

#include "sim/base/error.hpp"
#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::test;
using study::BreakEven;

namespace {

study::Series series_of(std::string name, spec::Method method) {
  spec::Scenario s = scenario_of(llama_500m(), 8);
  s.series = std::move(name);
  s.cluster.nodes = 64;
  s.cluster.nic_bandwidth = BytesPerSecond(10e9);
  s.cluster.gpu.memory = Bytes(1e12);
  s.training.global_batch = 64;
  s.strategy.method = method;
  s.strategy.density = spec::rule_of(method).density;
  return {s, round_profile()};
}

std::vector<study::Series> two(spec::Method method) {
  return {series_of("dense", spec::Method::dense), series_of("other", method)};
}

study::BreakEvenStudy study_of(const std::vector<study::Series>& list) {
  return study::break_even(
      list, "dense", {.predict = {.driver = engine::Driver::standalone, .interval_draws = 0}});
}

double ratio_on(const std::vector<study::Series>& list, double times) {
  double time[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const study::Series on = study::on_network(list[i], times);
    time[i] = step_of(on.scenario, on.profile) * on.scenario.strategy.tokens_to_loss;
  }
  return time[1] / time[0];
}

}  // namespace

TEST_CASE("[M345] at the break-even network both series need the same time") {
  for (const auto method : {spec::Method::topk, spec::Method::onebit_adam}) {
    const std::vector<study::Series> list = two(method);
    const study::BreakEvenStudy study = study_of(list);
    CHECK(study.network == BytesPerSecond(10e9));
    const BreakEven& row = study.rows.at(1);
    REQUIRE(row.network.crossings.size() == 1);
    CHECK(row.network.crossings[0].pays_below);
    const double times = row.network.crossings[0].at / 10e9;
    CHECK(ratio_on(list, times) == Approx(1).epsilon(2e-3));
    CHECK(ratio_on(list, times / 1.1) < 1);
    CHECK(ratio_on(list, times * 1.1) > 1);
  }
}

TEST_CASE("[M345] curves do not depend on the number of threads, and tell each place") {
  std::vector<study::Series> list = two(spec::Method::topk);
  list.push_back(series_of("third", spec::Method::onebit_adam));
  for (study::Series& one : list) one.scenario.jitter.compute = 0.02;
  std::atomic<std::size_t> places = 0;
  const auto curves_with = [&](int jobs) {
    places = 0;
    return study::break_even(
        list, "dense",
        {.predict = {.driver = engine::Driver::standalone, .interval_draws = 0},
         .jobs = jobs,
         .sampled = [&] { ++places; }});
  };
  const study::BreakEvenStudy one = curves_with(1), three = curves_with(3);
  CHECK(places == study::samples_of(list));
  REQUIRE(one.rows.size() == 3);
  for (std::size_t i = 0; i < one.rows.size(); ++i) {
    CHECK(one.rows[i].series == three.rows[i].series);
    REQUIRE(one.rows[i].network.samples.size() == three.rows[i].network.samples.size());
    for (std::size_t k = 0; k < one.rows[i].network.samples.size(); ++k)
      CHECK(one.rows[i].network.samples[k].ratio == three.rows[i].network.samples[k].ratio);
    REQUIRE(one.rows[i].gpus.crossings.size() == three.rows[i].gpus.crossings.size());
    for (std::size_t k = 0; k < one.rows[i].gpus.crossings.size(); ++k)
      CHECK(one.rows[i].gpus.crossings[k].at == three.rows[i].gpus.crossings[k].at);
  }
}

TEST_CASE("[M345] with as many tokens as allowed a series is as late as the baseline") {
  std::vector<study::Series> list = two(spec::Method::scape);
  list[1].scenario.training.optimizer = spec::Optimizer::adams;
  const BreakEven first = study_of(list).rows.at(1);
  REQUIRE(first.tokens_allowed);
  CHECK(*first.tokens_allowed == Approx(1 / *first.ratio));
  list[1].scenario.strategy.tokens_to_loss = *first.tokens_allowed;
  const BreakEven level = study_of(list).rows.at(1);
  CHECK(*level.ratio == Approx(1));
  CHECK(*level.tokens_allowed == Approx(*first.tokens_allowed));
}

TEST_CASE("[M345] the break-even count is the first on its side") {
  std::vector<study::Series> list = two(spec::Method::topk);
  const study::BreakEvenStudy study = study_of(list);
  const study::Curve& gpus = study.rows.at(1).gpus;
  REQUIRE(gpus.samples.size() >= 3);
  for (const study::Crossing& crossing : gpus.crossings) {
    const auto ratio_at = [&](int count) {
      std::vector<study::Series> there = list;
      for (study::Series& one : there) one.scenario.cluster.gpus = count;
      return ratio_on(there, 1);
    };
    CHECK((ratio_at(static_cast<int>(crossing.at)) < 1) == !crossing.pays_below);
    CHECK((ratio_at(static_cast<int>(crossing.at) / 2) < 1) == crossing.pays_below);
  }
}

TEST_CASE("a series against itself is level, local steps always pay") {
  const study::BreakEvenStudy same =
      study_of({series_of("dense", spec::Method::dense), series_of("twin", spec::Method::dense)});
  CHECK(same.rows.at(1).network.crossings.empty());
  CHECK(same.rows.at(1).network.samples.front().ratio == 1);
  CHECK(study::is_level(same.rows.at(1).network));
  CHECK(study::is_level(same.rows.at(1).gpus));
  const study::BreakEvenStudy local = study_of(two(spec::Method::local_sgd));
  for (const study::Ratio& sample : local.rows.at(1).network.samples) CHECK(sample.ratio < 1);
}

TEST_CASE("rows are ranked by time to loss behind the baseline") {
  std::vector<study::Series> list = {
      series_of("dense", spec::Method::dense), series_of("top-k", spec::Method::topk),
      series_of("local", spec::Method::local_sgd), series_of("slow learner", spec::Method::topk)};
  list[3].scenario.strategy.tokens_to_loss = 3;
  const study::BreakEvenStudy study = study_of(list);
  CHECK(study.rows.front().series == "dense");
  for (std::size_t i = 1; i + 1 < study.rows.size(); ++i)
    CHECK(*study.rows[i].ratio <= *study.rows[i + 1].ratio);
  CHECK(study.rows.back().series == "slow learner");
  CHECK_THROWS_AS(study::break_even(list, "dence", {}), InputError);
}

TEST_CASE("tokens to loss of a file count where a series says nothing of its own") {
  std::vector<study::Series> list = two(spec::Method::powersgd);
  const auto found = study::parse_convergence(
      "method,tokens_to_loss,setting,source\npowersgd,1.25,rank 4,mine\n", "t.csv");
  study::apply(found, list);
  CHECK(list[0].scenario.strategy.tokens_to_loss == 1);
  CHECK(list[1].scenario.strategy.tokens_to_loss == 1.25);
  list[1].scenario.strategy.tokens_to_loss = 1.1;
  study::apply(found, list);
  CHECK(list[1].scenario.strategy.tokens_to_loss == 1.1);
  CHECK_THROWS_AS(
      study::parse_convergence("method,tokens_to_loss,setting,source\npowersdg,0,a,b\n", "t.csv"),
      InputError);
  for (const study::Convergence& row : study::load_convergence("published"))
    CHECK_FALSE(row.source.empty());
}

TEST_CASE("level is within 0.1 % at every sample, and where it is level nothing crosses") {
  CHECK(study::is_level({{{1, 0.9991}, {2, 1.0009}}, {}}));
  CHECK_FALSE(study::is_level({{{1, 0.9991}, {2, 1.002}}, {}}));
  CHECK_FALSE(study::is_level({{{1, 0.998}}, {}}));
  std::vector<study::Series> list = {series_of("dense", spec::Method::dense),
                                     series_of("twin", spec::Method::dense)};
  list[1].scenario.strategy.tokens_to_loss = 0.9995;
  CHECK(study::is_level(study_of(list).rows.at(1).network));
  list[1].scenario.strategy.tokens_to_loss = 0.99;
  CHECK_FALSE(study::is_level(study_of(list).rows.at(1).network));
}

TEST_CASE("tokens to loss of a file keep to the key's range") {
  const auto told = [](const std::string& tokens) -> std::string {
    try {
      study::parse_convergence(
          "method,tokens_to_loss,setting,source\npowersgd," + tokens + ",a,b\n", "t.csv");
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(told("0.01") == "accepted");
  CHECK(told("100") == "accepted");
  CHECK(told("0.009") == "t.csv:2:10: tokens_to_loss: 0.009 is out of range 0.01 to 100");
  CHECK(told("100.5") == "t.csv:2:10: tokens_to_loss: 100.5 is out of range 0.01 to 100");
}

TEST_CASE("a search draws 4 jittered steps at a place, the row all that were asked for") {
  std::vector<study::Series> list = {series_of("dense", spec::Method::dense),
                                     series_of("jitter", spec::Method::dense)};
  list[1].scenario.jitter.compute = 0.05;
  const auto ratios = [&](int steps) {
    list[1].scenario.jitter.steps = steps;
    const BreakEven row = study_of(list).rows.at(1);
    return std::pair(row.network.samples.front().ratio, *row.ratio);
  };
  CHECK(ratios(4).first == ratios(12).first);
  CHECK(ratios(4).second != ratios(12).second);
  CHECK(ratios(3).first != ratios(4).first);
}

TEST_CASE("a faster network is faster links and transports, latencies stay") {
  study::Series series = series_of("dense", spec::Method::dense);
  series.profile.numbers["network.transport_cap_Bps"] = exactly(4e9, cost::Factor::network);
  const study::Series faster = study::on_network(series, 3);
  CHECK(faster.scenario.cluster.nic_bandwidth == 3 * series.scenario.cluster.nic_bandwidth);
  CHECK(faster.profile.number("network.transport_cap_Bps") == 12e9);
  CHECK(faster.scenario.cluster.fabric.latency == series.scenario.cluster.fabric.latency);
}
