// SPDX-License-Identifier: Apache-2.0
// Which splits a search considers, and how a scenario is split.
#include "sim/study/splits.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <set>

#include "tests/support/strategy.hpp"

using namespace scapesim;
using namespace scapesim::test;
using study::Split;

namespace {

std::vector<Split> all_splits(const spec::Scenario& scenario, int gpus,
                              const study::Held& held = {}) {
  std::vector<Split> list;
  for (const study::Frame& frame : study::frames(scenario, gpus, held))
    for (const Split& split : study::splits(scenario, frame, held)) list.push_back(split);
  return list;
}

std::vector<int> dealt(int layers, int pp) {
  spec::Scenario s = scenario_of(gpt({layers, 256, 4, 1024, 1000}), 64);
  return study::with_split(s, {.gpus = 64, .pp = pp}).parallelism.stage_layers;
}

}  // namespace

TEST_CASE("every product of degrees that makes the GPUs is considered, once") {
  spec::Scenario s = scenario_of(gpt({4, 256, 4, 1024, 1000}), 8);
  s.training.global_batch = 8;
  const std::vector<Split> list = all_splits(s, 8);
  CHECK(std::set(list.begin(), list.end()).size() == list.size());
  std::set<std::array<int, 3>> degrees;
  for (const Split& split : list) degrees.insert({split.tp, split.pp, split.cp});
  CHECK(degrees.size() == 20);  // ordered triples of powers of 2 whose product divides 8
  const auto with = [&](auto matches) { return std::ranges::count_if(list, matches); };
  CHECK(with([](const Split& a) { return a.tp == 1 && a.sequence_parallel; }) == 0);
  CHECK(with([](const Split& a) { return a.tp == 2 && a.sequence_parallel; }) > 0);
  CHECK(with([](const Split& a) {
          return a.pp == 2 && a.schedule == spec::Schedule::interleaved && a.virtual_stages == 2;
        }) > 0);
  for (const Split& split : list) {
    const int copies = 8 / (split.tp * split.pp * split.cp);
    CHECK(8 / copies % split.micro_batch == 0);
    CHECK((split.pp > 1 || split.schedule == spec::Schedule::one_f_one_b));
  }
}

TEST_CASE("a key that is held keeps the scenario's value") {
  spec::Scenario s = scenario_of(gpt({4, 256, 4, 1024, 1000}), 8);
  s.training.global_batch = 8;
  s.parallelism.tp = 2;
  s.strategy.sharding = spec::Sharding::zero1;
  const study::Held held = {"parallelism.tp", "strategy.sharding", "training.micro_batch"};
  const std::vector<Split> list = all_splits(s, 8, held);
  CHECK(!list.empty());
  for (const Split& split : list) {
    CHECK(split.tp == 2);
    CHECK(split.sharding == spec::Sharding::zero1);
    CHECK(split.micro_batch == 1);
  }
}

TEST_CASE("[M421] whole layers are recomputed by quarters of a stage too, if they divide") {
  spec::Scenario s = scenario_of(gpt({8, 256, 4, 1024, 1000}), 8);
  s.training.global_batch = 8;
  std::map<int, std::set<int>> counts;  // by stages; 0: all layers
  for (const Split& split : all_splits(s, 8)) {
    if (split.recompute != spec::Recompute::full) CHECK(!split.recompute_layers);
    if (split.recompute == spec::Recompute::full)
      counts[split.pp].insert(split.recompute_layers.value_or(0));
  }
  CHECK(counts[1] == std::set{0, 2, 4, 6});
  CHECK(counts[2] == std::set{0, 1, 2, 3});
  CHECK(counts[4] == std::set{0, 1});
  CHECK(counts[8] == std::set{0});
  s.training.recompute = spec::Recompute::selective;
  s.training.recompute_layers = 3;
  const study::Held held = {"training.recompute", "training.recompute_layers"};
  for (const Split& split : all_splits(s, 8, held)) CHECK(split.recompute_layers == 3);
}

TEST_CASE("collectives without overlap are tried only where the scenario has them so") {
  spec::Scenario s = scenario_of(gpt({4, 256, 4, 1024, 1000}), 8);
  s.training.global_batch = 8;
  const auto apart = [&](const Split& split) { return !split.tensor_overlap; };
  CHECK(std::ranges::none_of(all_splits(s, 8), apart));
  s.parallelism.tensor_overlap = false;
  const std::vector<Split> list = all_splits(s, 8);
  CHECK(std::ranges::any_of(list, apart));
  CHECK(std::ranges::any_of(list, [](const Split& split) { return split.tensor_overlap; }));
}

TEST_CASE("a split of a scenario is what splitting it gives") {
  const spec::Scenario s = scenario_of(gpt({4, 256, 4, 1024, 1000}), 8);
  const Split split{.gpus = 8,
                    .tp = 2,
                    .pp = 2,
                    .sequence_parallel = true,
                    .micro_batch = 2,
                    .recompute = spec::Recompute::full,
                    .recompute_layers = 1,
                    .schedule = spec::Schedule::interleaved,
                    .virtual_stages = 2,
                    .sharding = spec::Sharding::zero1};
  CHECK(study::split_of(study::with_split(s, split)) == split);
  CHECK(study::split_of(s) == Split{.gpus = 8});
}

TEST_CASE("[M421] layers that do not divide leave the ends of a pipeline one short") {
  CHECK(dealt(4, 4).empty());
  CHECK(dealt(6, 4) == std::vector{1, 2, 2, 1});
  CHECK(dealt(5, 4) == std::vector{1, 1, 2, 1});
  CHECK(dealt(7, 4) == std::vector{2, 2, 2, 1});
  CHECK(dealt(5, 2) == std::vector{3, 2});
  const std::vector<int> many = dealt(126, 16);  // Llama 3.1 405B as it was trained
  CHECK(std::accumulate(many.begin(), many.end(), 0) == 126);
  CHECK(many.front() == 7);
  CHECK(many.back() == 7);
  CHECK(std::ranges::count(many, 8) == 14);
}

TEST_CASE("[M425] a search tries DualPipe with two chunks, of unequal layers if need be") {
  spec::Scenario s = scenario_of(gpt({6, 256, 4, 1024, 1000}), 8);
  s.training.global_batch = 32;
  int tried = 0;
  for (const Split& split : all_splits(s, 8)) {
    if (split.schedule != spec::Schedule::dualpipe) continue;
    ++tried;
    CHECK(split.pp > 1);
    CHECK(split.virtual_stages == 2);
    if (split.pp == 2)
      CHECK(study::with_split(s, split).parallelism.stage_layers == std::vector{1, 2, 2, 1});
  }
  CHECK(tried > 0);
}

TEST_CASE("a split's own layers per stage stay where they fit") {
  spec::Scenario s = scenario_of(gpt({6, 256, 4, 1024, 1000}), 8);
  s.parallelism.pp = 2;
  s.parallelism.stage_layers = {2, 4};
  CHECK(study::with_split(s, {.gpus = 8, .pp = 2}).parallelism.stage_layers == std::vector{2, 4});
  CHECK(study::with_split(s, {.gpus = 8, .pp = 3}).parallelism.stage_layers.empty());
}
