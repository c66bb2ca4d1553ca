// SPDX-License-Identifier: Apache-2.0
// What holds for every prediction, tried on random scenarios and profiles.
#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "sim/plan/memory.hpp"
#include "tests/support/random_scenario.hpp"

using namespace scapesim;
using namespace scapesim::test;
using engine::Driver;

namespace {

constexpr std::uint64_t kCases = 300;
// Differences of event times: a few thousand additions.
constexpr double kRounding = 1e-9;

bool same(const result::Run& a, const result::Run& b) {
  const auto numbers = [](const result::Run& run) {
    std::vector<double> list = {run.step_time.si(),
                                run.step_time_low.si(),
                                run.step_time_high.si(),
                                run.tokens_per_second.si(),
                                run.mfu,
                                run.overlap_fraction.value_or(-1),
                                run.memory.total.si()};
    const result::Breakdown& parts = run.breakdown;
    for (const Seconds part : {parts.compute, parts.optimizer, parts.exposed_communication,
                               parts.copy, parts.host, parts.bubble})
      list.push_back(part.si());
    for (const result::Communication& row : run.communication)
      for (const double number : {row.bytes.si(), row.busbw.si(), row.time.si(), row.exposed.si()})
        list.push_back(number);
    for (const result::Term& term : run.terms) list.push_back(term.time.si());
    return list;
  };
  return numbers(a) == numbers(b);
}

bool same(const engine::Timeline& a, const engine::Timeline& b) {
  const auto same_span = [](const engine::Span& x, const engine::Span& y) {
    return x.op == y.op && x.step == y.step && x.ready == y.ready && x.begin == y.begin &&
           x.end == y.end;
  };
  return a.step_begin == b.step_begin && a.step_end == b.step_end &&
         std::ranges::equal(a.spans, b.spans, same_span);
}

spec::Scenario exposed_dense(std::uint64_t seed) {
  spec::Scenario scenario = random_scenario(seed);
  const auto sharding = scenario.strategy.sharding;
  scenario.strategy = {};
  scenario.strategy.sharding = sharding;
  scenario.training.overlap_gradients = false;
  return scenario;
}

double compute_of(const spec::Scenario& scenario, const cost::Profile& profile) {
  return run_of(prediction_of(scenario, profile)).breakdown.compute.si();
}

Bytes memory_of(const spec::Scenario& scenario) {
  return plan::memory_need(scenario, workload::workload_of(scenario.model, scenario.training),
                           round_profile())
      .total;
}

}  // namespace

TEST_CASE("the six parts of the breakdown, and the terms, sum to the step") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    INFO("seed " << seed);
    const Prediction prediction = prediction_of(random_scenario(seed), random_profile(seed));
    const result::Run& run = run_of(prediction);
    const result::Breakdown& b = run.breakdown;
    const Seconds parts =
        b.compute + b.optimizer + b.exposed_communication + b.copy + b.host + b.bubble;
    CHECK(parts.si() == Approx(run.step_time.si()).epsilon(kRounding));
    Seconds terms;
    for (const result::Term& term : run.terms) terms += term.time;
    CHECK(terms.si() == Approx(run.step_time.si()).epsilon(kRounding));
    for (const Seconds part :
         {b.compute, b.optimizer, b.exposed_communication, b.copy, b.host, b.bubble})
      CHECK(part >= Seconds(0));
    CHECK(prediction.timeline.steady);
  }
}

TEST_CASE("exposed communication is at most all communication, and overlap a share of it") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    INFO("seed " << seed);
    const Prediction prediction = prediction_of(random_scenario(seed), random_profile(seed));
    const result::Run& run = run_of(prediction);
    Seconds total, exposed;
    for (const result::Communication& row : run.communication) {
      CHECK(row.exposed.si() <= row.time.si() * (1 + kRounding));
      total += row.time;
      exposed += row.exposed;
    }
    CHECK(exposed.si() == Approx(run.breakdown.exposed_communication.si()).margin(kRounding));
    CHECK(exposed.si() <= total.si() * (1 + kRounding));
    CHECK(run.overlap_fraction.has_value() == (total > Seconds(0)));
    if (run.overlap_fraction) {
      CHECK(*run.overlap_fraction >= -kRounding);
      CHECK(*run.overlap_fraction <= 1);
    }
  }
}

TEST_CASE("faster links, memory, copies and GEMMs never slow a step that overlaps nothing") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    INFO("seed " << seed);
    const spec::Scenario scenario = exposed_dense(seed);
    const cost::Profile profile = random_profile(seed);
    const double step = step_of(scenario, profile);
    Random random(seed);
    const double k = between(random, 1, 4);
    const auto never_slower = [&](const spec::Scenario& faster, const cost::Profile& numbers) {
      CHECK(step_of(faster, numbers) <= step * (1 + kRounding));
    };
    spec::Scenario all = scenario;
    for (BytesPerSecond spec::Cluster::*bandwidth :
         {&spec::Cluster::nic_bandwidth, &spec::Cluster::node_link_bandwidth,
          &spec::Cluster::host_memory_bandwidth}) {
      spec::Scenario one = scenario;
      one.cluster.*bandwidth *= k;
      all.cluster.*bandwidth *= k;
      never_slower(one, profile);
    }
    cost::Profile all_numbers = profile;
    for (const char* key : {"network.transport_cap_Bps", "hbm.bandwidth_Bps", "copy.h2d_Bps",
                            "copy.d2h_Bps", "gemm.scale"}) {
      if (!profile.has(key)) continue;
      cost::Profile one = profile;
      one.numbers.at(key).value *= k;
      all_numbers.numbers.at(key).value *= k;
      never_slower(scenario, one);
    }
    never_slower(all, all_numbers);
  }
}

TEST_CASE("the interval contains the prediction") {
  for (std::uint64_t seed = 0; seed < kCases / 3; ++seed) {
    INFO("seed " << seed);
    const Prediction prediction = predict(random_scenario(seed), random_profile(seed),
                                          {.driver = Driver::standalone, .interval_draws = 16});
    const result::Run& run = run_of(prediction);
    CHECK(run.has_interval);
    CHECK(run.step_time_low <= run.step_time);
    CHECK(run.step_time <= run.step_time_high);
    CHECK(run.step_time_low > Seconds(0));
    CHECK(run.step_time_low < run.step_time_high);
  }
}

TEST_CASE("a prediction does not depend on the interval asked for") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    const spec::Scenario scenario = random_scenario(seed);
    const cost::Profile profile = random_profile(seed);
    const Prediction without = prediction_of(scenario, profile);
    const Prediction with =
        predict(scenario, profile, {.driver = Driver::standalone, .interval_draws = 4});
    CHECK(run_of(with).step_time == run_of(without).step_time);
    CHECK_FALSE(run_of(without).has_interval);
    CHECK(run_of(without).step_time_low == run_of(without).step_time);
    CHECK(run_of(without).step_time_high == run_of(without).step_time);
  }
}

TEST_CASE("the same input gives the same bits") {
  for (std::uint64_t seed = 0; seed < kCases / 3; ++seed) {
    INFO("seed " << seed);
    const auto once = [&] {
      return predict(random_scenario(seed), random_profile(seed),
                     {.driver = Driver::standalone, .interval_draws = 4});
    };
    const Prediction first = once();
    const Prediction second = once();
    CHECK(same(run_of(first), run_of(second)));
    CHECK(same(first.timeline, second.timeline));
  }
}

TEST_CASE("SimGrid's clock and the standalone driver give bit-equal predictions") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    INFO("seed " << seed);
    const spec::Scenario scenario = random_scenario(seed);
    const cost::Profile profile = random_profile(seed);
    const Prediction standalone = prediction_of(scenario, profile);
    const Prediction simgrid =
        predict(scenario, profile, {.driver = Driver::simgrid, .interval_draws = 0});
    CHECK(same(run_of(standalone), run_of(simgrid)));
    CHECK(same(standalone.timeline, simgrid.timeline));
  }
}

TEST_CASE("a larger micro-batch never needs less memory") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    INFO("seed " << seed);
    spec::Scenario scenario = random_scenario(seed);
    scenario.training.global_batch = 24 * spec::data_parallel_size(scenario);  // all divide it
    Bytes last;
    for (const std::int64_t micro_batch : {1, 2, 3, 8}) {
      scenario.training.micro_batch = micro_batch;
      CHECK(memory_of(scenario) >= last);
      last = memory_of(scenario);
    }
  }
}

TEST_CASE("offloading and sharding never need more GPU memory at the same method") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    INFO("seed " << seed);
    spec::Scenario scenario = random_scenario(seed);
    if (scenario.strategy.method == spec::Method::scape) {
      // A staging buffer smaller than the residual, or offloading it saves nothing.
      scenario.strategy.offload_chunk = Bytes(1e6);
      scenario.strategy.offload = {};
      const Bytes resident = memory_of(scenario);
      scenario.strategy.offload.residual = true;
      CHECK(memory_of(scenario) < resident);
    } else {
      scenario.strategy.sharding = spec::Sharding::none;
      const Bytes replicated = memory_of(scenario);
      scenario.strategy.sharding = spec::Sharding::zero1;
      CHECK(memory_of(scenario) <= replicated);
    }
  }
}

TEST_CASE("more GPUs for the same batch never compute more per GPU") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    INFO("seed " << seed);
    spec::Scenario scenario = random_scenario(seed);
    const cost::Profile profile = random_profile(seed);
    scenario.training.global_batch = scenario.training.micro_batch * 48;
    double last = std::numeric_limits<double>::infinity();
    for (const int nodes : {1, 2, 3, 6, 12}) {
      scenario.cluster.nodes = nodes;
      scenario.cluster.gpus = nodes * scenario.cluster.gpus_per_node;
      const double compute = compute_of(scenario, profile);
      CHECK(compute <= last * (1 + kRounding));
      last = compute;
    }
  }
}

TEST_CASE("a denser payload is never faster when its mask is waited for") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    INFO("seed " << seed);
    spec::Scenario scenario = random_scenario(seed);
    if (scenario.strategy.method != spec::Method::scape) continue;
    scenario.strategy.mask_wait = spec::MaskWait::blocking;
    scenario.strategy.at_step = -1;
    double last = 0;
    for (const double density : {0.001, 0.01, 0.1, 0.5, 1.0}) {
      scenario.strategy.density = density;
      const double step = step_of(scenario, random_profile(seed));
      CHECK(step >= last * (1 - kRounding));
      last = step;
    }
  }
}

TEST_CASE("tokens per second, MFU and step time say the same") {
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    INFO("seed " << seed);
    const spec::Scenario s = random_scenario(seed);
    const Prediction prediction = prediction_of(s, random_profile(seed));
    const result::Run& run = run_of(prediction);
    const auto tokens = static_cast<double>(s.training.global_batch * s.training.sequence);
    CHECK(run.tokens_per_second.si() * run.step_time.si() == Approx(tokens).epsilon(kRounding));
    CHECK(run.mfu > 0);
    CHECK(run.mfu < 1);
  }
}

TEST_CASE("the random scenarios reach every part of a step") {
  int overlapped = 0, copying = 0, masks = 0, alone = 0, within_nodes = 0, buckets = 0;
  for (std::uint64_t seed = 0; seed < kCases; ++seed) {
    const spec::Scenario s = random_scenario(seed);
    const Prediction prediction = prediction_of(s, random_profile(seed));
    const result::Run& run = run_of(prediction);
    overlapped += run.overlap_fraction && *run.overlap_fraction > 0.01 && *run.overlap_fraction < 1;
    copying += run.breakdown.copy > Seconds(0);
    alone += run.communication.empty();
    within_nodes += s.cluster.gpus_per_node > 1 && s.cluster.nodes > 1;
    for (const result::Communication& row : run.communication) {
      masks += row.name.starts_with("mask");
      buckets += row.name.starts_with("gradient") && row.count > 1;
    }
  }
  for (const int count : {overlapped, copying, masks, alone, within_nodes, buckets})
    CHECK(count >= 10);
}
