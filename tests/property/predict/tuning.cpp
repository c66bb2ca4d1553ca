// SPDX-License-Identifier: Apache-2.0
// [M430] to [M436] on random scenarios: sums hold, nothing frozen costs more, stalls only add.
#include <catch2/catch.hpp>

#include "tests/support/random_scenario.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

/// Frozen layers or adapters, documents, stalls; without what the rules refuse.
spec::Scenario altered(spec::Scenario s, std::uint64_t seed) {
  using enum spec::LoraTarget;
  Random random(seed * 31 + 5);
  const spec::Scenario plain = s;
  s.training.frozen_layers = coin(random) ? 0 : one_of(random, {1, 2, 5});
  if (coin(random)) s.training.lora.rank = one_of(random, {4, 16, 64});
  if (coin(random)) s.training.lora.targets = {o_proj, down_proj};
  if (s.training.lora.rank == 0 || s.model.experts > 0)
    s.training.lora.targets = spec::Lora{}.targets;
  if (coin(random) && s.model.experts == 0) s.training.frozen_weights = spec::FrozenWeights::nf4;
  s.training.documents = any_of<spec::Documents>(random);
  if (s.training.documents != spec::Documents::whole)
    s.training.document_length = {
        .mean = between(random, 50, 4000), .sigma = between(random, 0.1, 2), .shares = {}};
  if (!spec::violations(s).empty()) {
    s.training = plain.training;
    s.training.lora.rank = 8;
  }
  return s;
}

void check_sums(const result::Run& run) {
  const result::Breakdown& b = run.breakdown;
  const Seconds parts =
      b.compute + b.optimizer + b.exposed_communication + b.copy + b.host + b.bubble;
  CHECK(parts.si() == Approx(run.step_time.si()).epsilon(1e-9));
  CHECK(run.step_time > Seconds(0));
  CHECK(std::isfinite(run.step_time.si()));
  CHECK(run.mfu > 0);
  CHECK(run.mfu <= 1);
  CHECK(run.tokens_per_second.si() > 0);
  for (const Bytes part : {run.memory.parameters, run.memory.gradients, run.memory.optimizer,
                           run.memory.strategy, run.memory.activations})
    CHECK(part >= Bytes(0));
}

}  // namespace

TEST_CASE("[M430] [M431] [M432] [M433] random tunings on random data keep all sums") {
  int tuned = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    const spec::Scenario plain = random_scenario(seed);
    const spec::Scenario s = altered(plain, seed);
    REQUIRE(spec::violations(s).empty());
    const cost::Profile profile = random_profile(seed);
    const Prediction prediction = prediction_of(s, profile);
    const auto* run = std::get_if<result::Run>(&prediction.outcome);
    if (run == nullptr) continue;
    INFO("seed " << seed);
    check_sums(*run);
    if (run->documents) {
      CHECK(run->documents->useful > 0);
      CHECK(run->documents->useful <= 1 + 1e-9);
      CHECK(run->documents->slowest >= 1 - 1e-9);
    }
    const Prediction before = prediction_of(plain, profile);
    const auto* whole = std::get_if<result::Run>(&before.outcome);
    if (whole == nullptr || !run->trained) continue;
    ++tuned;
    CHECK(run->memory.optimizer <= whole->memory.optimizer);
    CHECK(run->memory.gradients <= whole->memory.gradients);
  }
  CHECK(tuned > 20);
}

TEST_CASE("[M435] [M436] stalls and evaluations change nothing else of a random step") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    spec::Scenario s = random_scenario(seed);
    const cost::Profile profile = random_profile(seed);
    const Prediction before = prediction_of(s, profile);
    if (std::get_if<result::Run>(&before.outcome) == nullptr) continue;
    const double step = run_of(before).step_time.si();
    s.training.stalls.evaluation_interval = 50;
    s.training.stalls.evaluation_iterations = 2;
    const Prediction evaluated = prediction_of(s, profile);
    INFO("seed " << seed);
    CHECK(run_of(evaluated).step_time.si() == step);
    CHECK(run_of(evaluated).evaluation->iteration.si() < step);
    s.training.stalls.data_loading = Seconds(1);
    const Prediction stalled = prediction_of(s, profile);
    // What runs beside the next step's beginning may hide in it.
    CHECK(run_of(stalled).step_time.si() <= (step + 1) * (1 + 1e-9));
    CHECK(run_of(stalled).step_time.si() > step);
  }
}
