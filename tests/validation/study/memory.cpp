// SPDX-License-Identifier: Apache-2.0
// What did not fit is predicted not to: a published failure, and plans counted by hand.
#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "sim/scenario/load.hpp"
#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

constexpr double k40GiB = 40.0 * 1024 * 1024 * 1024, k48GiB = 48.0 * 1024 * 1024 * 1024;

/// A plan on GPUs of 40 or 48 GiB with the bytes that some of its parts alone need on a GPU.
struct Negative {
  std::string what;
  spec::Model model;
  int gpus = 8;
  double capacity = k48GiB;
  double counted = 0;
  spec::Sharding sharding = spec::Sharding::none;
  spec::Parallelism parallelism = {};
  spec::Training training = {};
};

spec::Training train(std::int64_t micro_batch, std::int64_t sequence, spec::Recompute recompute) {
  spec::Training training = training_of(micro_batch, sequence);
  training.optimizer = spec::Optimizer::adamw;
  training.recompute = recompute;
  return training;
}

result::Outcome outcome_of(const Negative& plan) {
  spec::Scenario s = scenario_of(plan.model, plan.gpus);
  s.training = plan.training;
  s.parallelism = plan.parallelism;
  s.strategy.sharding = plan.sharding;
  s.training.global_batch = plan.training.micro_batch * plan.gpus * 4;
  s.cluster.gpu.memory = Bytes(plan.capacity);
  REQUIRE(spec::violations(s).empty());
  return prediction_of(s, cost::load_profile("a100-sxm-40gb", {})).outcome;
}

/// bf16 parameters and fp32 gradients, master weights and two moments: 2 + 4 + 12 bytes.
constexpr double kState = 18;

std::vector<Negative> negatives() {
  using spec::Recompute;
  using spec::Sharding;
  const spec::Training full = train(1, 1024, Recompute::full);
  const double n7 = 6.738e9, n13 = 13.0e9, n70 = 69.0e9;  // parameters, rounded down
  return {
      {"7B, everything on every GPU", llama_7b(), 8, k48GiB, kState * n7, Sharding::none, {}, full},
      {"7B, optimizer shared by 2",
       llama_7b(),
       2,
       k48GiB,
       (6 + 12 / 2.0) * n7,
       Sharding::zero1,
       {},
       full},
      {"7B, all state shared by 2",
       llama_7b(),
       2,
       k48GiB,
       (4 + 12) * n7 / 2,
       Sharding::fsdp,
       {},
       full},
      {"7B over 2 tensor ranks",
       llama_7b(),
       8,
       k48GiB,
       kState * n7 / 2,
       Sharding::none,
       {.tp = 2},
       full},
      {"7B over 2 stages", llama_7b(), 8, k48GiB, kState * n7 / 2, Sharding::none, {.pp = 2}, full},
      {"13B, optimizer shared by 8",
       llama_13b(),
       8,
       k48GiB,
       (6 + 12 / 8.0) * n13,
       Sharding::zero1,
       {},
       full},
      {"13B, gradients too",
       llama_13b(),
       4,
       k48GiB,
       (2 + 16 / 4.0) * n13,
       Sharding::zero2,
       {},
       full},
      {"13B, all state shared by 4",
       llama_13b(),
       4,
       k48GiB,
       16 * n13 / 4,
       Sharding::fsdp,
       {},
       full},
      {"70B, all state shared by 16",
       llama_70b(),
       16,
       k48GiB,
       16 * n70 / 16,
       Sharding::fsdp,
       {},
       full},
      {"70B over 8 tensor ranks and 2 stages",
       llama_70b(),
       16,
       k48GiB,
       kState * n70 / 16,
       Sharding::none,
       {.tp = 8, .pp = 2},
       full},
      {"345M, scores of 16 heads kept",
       gpt_345m(),
       8,
       k40GiB,
       24 * 2.0 * 16 * 1024 * 1024 * 64,
       Sharding::none,
       {},
       [] {
         spec::Training t = train(64, 1024, Recompute::none);
         t.attention = spec::AttentionCore::unfused;
         return t;
       }()},
      // Inputs and outputs of both MLP products alone: 10 h elements of 2 bytes.
      {"345M, micro-batch 128",
       gpt_345m(),
       8,
       k40GiB,
       24 * 2.0 * 10 * 1024 * 128 * 1024,
       Sharding::none,
       {},
       train(128, 1024, Recompute::none)},
      // Logits in bf16 and fp32 of 64 sequences.
      {"345M, logits of 256,000 words",
       [] {
         spec::Model model = gpt_345m();
         model.vocab = 256'000;
         return model;
       }(),
       8,
       k40GiB,
       6.0 * 256'000 * 32 * 1024,
       Sharding::none,
       {},
       train(32, 1024, Recompute::full)},
  };
}

}  // namespace

TEST_CASE("plans that a count by hand rules out on 40 and 48 GiB are predicted not to fit") {
  REQUIRE(negatives().size() >= 10);
  for (const Negative& plan : negatives()) {
    INFO(plan.what << ": " << plan.counted / 1e9 << " GB of " << plan.capacity / 1e9);
    CHECK(plan.counted > plan.capacity);
    const result::Outcome outcome = outcome_of(plan);
    const auto* infeasible = std::get_if<result::Infeasible>(&outcome);
    REQUIRE(infeasible != nullptr);
    CHECK(infeasible->need.si() > plan.counted);
    CHECK(!infeasible->hint.empty());
  }
}

TEST_CASE("the same models fit where the count has room") {
  using spec::Recompute;
  using spec::Sharding;
  const spec::Training full = train(1, 1024, Recompute::full);
  const std::vector<Negative> plans = {
      {"7B, all state shared by 8", llama_7b(), 8, k48GiB, 0, Sharding::fsdp, {}, full},
      {"13B over 8 tensor ranks", llama_13b(), 8, k48GiB, 0, Sharding::none, {.tp = 8}, full},
      {"70B, all state shared by 64", llama_70b(), 64, k48GiB, 0, Sharding::fsdp, {}, full},
      {"345M", gpt_345m(), 8, k40GiB, 0, Sharding::none, {}, train(8, 1024, Recompute::none)},
  };
  for (const Negative& plan : plans) {
    INFO(plan.what);
    CHECK(std::holds_alternative<result::Run>(outcome_of(plan)));
  }
}

TEST_CASE("the run that the SCAPE paper could not make without offload is predicted not to fit") {
  const auto fits = [](std::vector<std::string> set) {
    const spec::Scenario s =
        scenario::load_scenarios("scenarios/vista-llama-1.8b-scape.toml", set).front();
    const cost::Profile profile = cost::load_profile(s.calibration.profile, {});
    return std::holds_alternative<result::Run>(prediction_of(s, profile).outcome);
  };
  CHECK_FALSE(fits({"training.micro_batch=16", "strategy.offload=[]"}));
  CHECK(fits({"training.micro_batch=8", "strategy.offload=[]"}));
}
