// SPDX-License-Identifier: Apache-2.0
#include "sim/study/side_by_side.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/file.hpp"
#include "sim/scenario/load.hpp"

using namespace scapesim;

namespace {

const PredictOptions kFast{.driver = engine::Driver::standalone, .interval_draws = 0};

std::vector<study::Series> series_of(const char* name, const std::vector<std::string>& set = {}) {
  const auto file = data_folder() / "scenarios" / name;
  return study::with_profiles(scenario::load_scenarios(file, set), file.parent_path());
}

double sum_of(const std::vector<study::ComparedTerm>& terms, std::size_t column) {
  double sum = 0;
  for (const study::ComparedTerm& term : terms) sum += term.values[column].value();
  return sum;
}

const study::ComparedTerm* term_of(const std::vector<study::ComparedTerm>& terms,
                                   std::string_view name) {
  for (const study::ComparedTerm& term : terms)
    if (term.name == name) return &term;
  return nullptr;
}

}  // namespace

// [M365]
TEST_CASE("differences of terms sum to the difference of steps and of memory, for every pair") {
  std::vector<study::Series> all;
  for (const char* name :
       {"vista-llama-1.8b.toml", "gpt3-175b-1024.toml", "jupiter-llama3-70b.toml",
        "jupiter-llama3-8b-fsdp.toml", "llama2-13b-fsdp.toml"})
    for (study::Series& series : series_of(name)) all.push_back(std::move(series));
  for (const study::Per per : {study::Per::step, study::Per::million_tokens})
    for (const study::Detail detail : {study::Detail::breakdown, study::Detail::terms}) {
      const study::SideBySide table =
          study::side_by_side(all, {.per = per, .detail = detail}, kFast);
      REQUIRE(table.points.size() == 8);
      for (std::size_t a = 0; a < all.size(); ++a)
        for (std::size_t b = 0; b < all.size(); ++b) {
          const double whole = *table.time[b] - *table.time[a];
          const double parts = sum_of(table.terms, b) - sum_of(table.terms, a);
          CHECK(std::abs(parts - whole) <= 1e-9 * *table.time[a]);
          const double bytes = *table.memory[b] - *table.memory[a];
          const double shares = sum_of(table.memory_terms, b) - sum_of(table.memory_terms, a);
          CHECK(std::abs(shares - bytes) <= 1e-9 * *table.memory[a]);
        }
    }
}

TEST_CASE("a step's collectives are terms of their own and nothing else is communicated") {
  const auto series = series_of("gpt3-175b-1024.toml");
  const study::SideBySide table = study::side_by_side(series, {}, kFast);
  CHECK(term_of(table.terms, "other communication") == nullptr);
  const result::Run& run = *study::run_of(table.points[0]);
  double exposed = 0;
  for (const study::ComparedTerm& term : table.terms)
    if (term.kind == "communication") exposed += *term.values[0];
  CHECK(exposed == Approx(run.breakdown.exposed_communication.si()).epsilon(1e-12));
  CHECK(*term_of(table.terms, "bubble")->values[0] == run.breakdown.bubble.si());
}

TEST_CASE("a slower network changes the collective's term by the whole difference") {
  const std::vector<std::string> base = {"cluster.gpus=16"};
  std::vector<study::Series> pair = {
      series_of("vista-llama-1.8b-ndr.toml", base).front(),
      series_of("vista-llama-1.8b-ndr.toml", {"cluster.gpus=16", "cluster.nic_bandwidth=200Gbps"})
          .front()};
  const study::SideBySide table = study::side_by_side(pair, {}, kFast);
  const study::ComparedTerm& gradients = *term_of(table.terms, "gradient all-reduce");
  const double whole = *table.time[1] - *table.time[0];
  CHECK(whole > 0);
  CHECK(*gradients.values[1] - *gradients.values[0] == Approx(whole).epsilon(1e-9));
  REQUIRE(table.changed.size() == 1);
  CHECK(table.changed[0].key == "cluster.nic_bandwidth");
  CHECK(table.changed[0].texts ==
        std::vector<std::string>{"\"50000000000B/s\"", "\"25000000000B/s\""});
}

// [M366]
TEST_CASE("the interval of a difference is that of draws in pairs") {
  const auto one = series_of("vista-llama-1.8b-ndr.toml", {"cluster.gpus=16"}).front();
  std::vector<study::Series> same = {one, one};
  const PredictOptions draws{.driver = engine::Driver::standalone, .interval_draws = 16};
  const study::SideBySide table = study::side_by_side(same, {}, draws);
  CHECK(table.differences[1].difference->si() == 0);
  CHECK(table.differences[1].low->si() == 0);  // the same numbers move both
  CHECK(table.differences[1].high->si() == 0);
  CHECK(table.labels[0] != table.labels[1]);
  const result::Run& run = *study::run_of(table.points[0]);
  CHECK(run.step_time_high > run.step_time_low);
  CHECK(run.drawn.size() == 16);
}

TEST_CASE("steps of different size are compared per token") {
  std::vector<study::Series> pair = {
      series_of("vista-llama-1.8b-ndr.toml").front(),
      series_of("vista-llama-1.8b-ndr.toml", {"training.global_batch=2048"}).front()};
  const study::SideBySide table =
      study::side_by_side(pair, {.per = study::Per::million_tokens}, kFast);
  const double tokens = 2048.0 * 2048;
  CHECK(*table.time[1] ==
        Approx(study::run_of(table.points[1])->step_time.si() / tokens * 1e6).epsilon(1e-12));
}

TEST_CASE("a column that does not fit has memory but no time") {
  std::vector<study::Series> pair = {series_of("llama2-13b-fsdp.toml").front(),
                                     series_of("llama-70b-does-not-fit.toml").front()};
  const study::SideBySide table = study::side_by_side(pair, {}, kFast);
  CHECK_FALSE(table.time[1]);
  CHECK_FALSE(table.differences[1].difference);
  CHECK(table.memory[1].value() > table.memory[0].value());
  CHECK(sum_of(table.memory_terms, 1) == Approx(*table.memory[1]).epsilon(1e-12));
  CHECK_FALSE(table.terms.front().values[1]);
}
