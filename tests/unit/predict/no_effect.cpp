// SPDX-License-Identifier: Apache-2.0
// Keys of [strategy] that a method does not read: the table says so, the prediction shows it, and a
// warning tells it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>

#include "sim/spec/strategy_keys.hpp"
#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

/// Another value of a key, and what else has to be said for anybody to read it.
struct Change {
  std::string_view key;
  std::function<void(spec::Strategy&)> change;
  std::function<void(spec::Strategy&)> beside = [](spec::Strategy&) {};
};

std::vector<Change> changes() {
  using S = spec::Strategy&;
  const auto masks = [](S s) {
    s.mask_partition = spec::MaskPartition::global;
    s.exchange = spec::Exchange::mask;
  };
  const auto warm_up = [](S s) { s.density_warmup = 100, s.dense_steps = 100, s.at_step = 10; };
  return {
      {"shard_group", [](S s) { s.shard_group = 4; }},
      {"prefetch", [](S s) { s.prefetch = 3; }},
      {"reshard_after_forward", [](S s) { s.reshard_after_forward = false; }},
      {"reduction", [](S s) { s.reduction = spec::Reduction::all_reduce; }},
      {"density", [](S s) { s.density = 0.05; }},
      {"density_warmup", [](S s) { s.density_warmup = 50; }, warm_up},
      {"at_step", [](S s) { s.at_step = -1; }, warm_up},
      {"mask_partition", [](S s) { s.mask_partition = spec::MaskPartition::global; }},
      {"mask_overlap", [](S s) { s.mask_overlap = 0.5; }, masks},
      {"mask_delay", [](S s) { s.mask_delay = 0; },
       [](S s) { s.mask_wait = spec::MaskWait::blocking; }},
      {"mask_wait", [](S s) { s.mask_wait = spec::MaskWait::blocking; }},
      {"mask_format", [](S s) { s.mask_format = spec::MaskFormat::byte; }, masks},
      {"owners", [](S s) { s.owners = spec::Owners::tensor; }},
      {"payload_buffers", [](S s) { s.payload_buffers = spec::PayloadBuffers::two; }},
      {"payload_dtype", [](S s) { s.payload_dtype = spec::PayloadDtype::bf16; }, masks},
      {"second_payload", [](S s) { s.second_payload = spec::SecondPayload::none; }},
      {"offload", [](S s) { s.offload.residual = true; }},
      {"offload_chunk", [](S s) { s.offload_chunk = Bytes(64e6); },
       [](S s) { s.offload.residual = true; }},
      {"exchange", [](S s) { s.exchange = spec::Exchange::mask; }},
      {"reduce_dtype", [](S s) { s.reduce_dtype = spec::ReduceDtype::bf16; }},
      {"weight_bits", [](S s) { s.weight_bits = 6; }},
      {"gradient_bits", [](S s) { s.gradient_bits = 6; }},
      {"block", [](S s) { s.block = 64; }},
      {"zeropp", [](S s) { s.zeropp.gradients = false; }},
      {"dct_chunk", [](S s) { s.dct_chunk = 32; }},
      {"dct_topk", [](S s) { s.dct_topk = 8; }},
      {"low_rank", [](S s) { s.low_rank = 16; }},
      {"dense_steps", [](S s) { s.dense_steps = 0; }, warm_up},
      {"local_steps", [](S s) { s.local_steps = 100; }},
      {"outer_wait", [](S s) { s.outer_wait = spec::OuterWait::overlapped; }},
  };
}

spec::Scenario job(spec::Method method, spec::Sharding sharding) {
  spec::Scenario s = scenario_of(llama_500m(), 8);
  s.cluster.nodes = 4;
  s.cluster.gpus_per_node = 2;
  s.cluster.nics_per_node = 2;
  s.cluster.node_link_bandwidth = BytesPerSecond(300e9);
  s.cluster.gpu.memory = Bytes(1e12);
  s.cluster.host_memory = Bytes(1e13);
  if (method == spec::Method::scape) s.training.optimizer = spec::Optimizer::adams;
  s.strategy.method = method;
  s.strategy.sharding = sharding;
  s.strategy.density = spec::rule_of(method).density;
  return s;
}

/// All that a key could change.
struct Outcome {
  double step, memory, bytes;
  bool operator==(const Outcome&) const = default;
};
Outcome outcome_of(const spec::Scenario& scenario) {
  const Prediction prediction = prediction_of(scenario, round_profile());
  const result::Run& run = run_of(prediction);
  double bytes = 0;
  for (const result::Communication& row : run.communication)
    bytes += row.bytes.si() * static_cast<double>(row.count);
  return {run.step_time.si(), run.memory.total.si(), bytes};
}

bool warns_of_key(const spec::Scenario& scenario, std::string_view key) {
  const Prediction prediction = prediction_of(scenario, round_profile());
  return std::ranges::any_of(run_of(prediction).warnings, [&](const result::Warning& warning) {
    return warning.code == "no-effect" &&
           warning.message.starts_with("strategy." + std::string(key) + " has no effect with ");
  });
}

}  // namespace

TEST_CASE("a key that a method does not read changes nothing, and a warning says so") {
  for (const spec::MethodRule& rule : spec::method_rules())
    for (const spec::Sharding sharding : rule.shardings)
      for (const Change& change : changes()) {
        INFO(name_of(rule.method) << " " << name_of(sharding) << " " << change.key);
        const spec::StrategyKey* key = spec::strategy_key(change.key);
        REQUIRE(key != nullptr);
        spec::Scenario before = job(rule.method, sharding);
        change.beside(before.strategy);
        spec::Scenario after = before;
        change.change(after.strategy);
        if (key->is_read(after)) continue;
        CHECK(outcome_of(after) == outcome_of(before));
        if (key->is_set(after.strategy)) CHECK(warns_of_key(after, change.key));
      }
}

TEST_CASE("a key that may be meant for the series beside it is no warning") {
  spec::Scenario scenario = job(spec::Method::dense, spec::Sharding::none);
  scenario.strategy.low_rank = 16;
  CHECK(warns_of_key(scenario, "low_rank"));
  scenario.series = "dense";
  CHECK_FALSE(warns_of_key(scenario, "low_rank"));
}

TEST_CASE("every key of the table is read by some method, which it changes") {
  const std::vector<Change> list = changes();
  CHECK(list.size() == spec::strategy_keys().size());
  for (const Change& change : list) {
    INFO(change.key);
    const spec::StrategyKey* key = spec::strategy_key(change.key);
    bool changes_something = false;
    for (const spec::MethodRule& rule : spec::method_rules())
      for (const spec::Sharding sharding : rule.shardings) {
        spec::Scenario before = job(rule.method, sharding);
        change.beside(before.strategy);
        spec::Scenario after = before;
        change.change(after.strategy);
        if (!key->is_read(after)) continue;
        CHECK_FALSE(warns_of_key(after, change.key));
        changes_something = changes_something || outcome_of(after) != outcome_of(before);
      }
    CHECK(changes_something);
  }
}

TEST_CASE("a profile of another GPU is named, one of the same part is not") {
  const auto warns = [](const std::string& machine, const std::string& gpu) {
    spec::Scenario scenario = scenario_of(llama_500m(), 8);
    scenario.cluster.gpu.name = gpu;
    cost::Profile profile = round_profile();
    profile.machine = machine;
    const Prediction prediction = prediction_of(scenario, profile);
    return std::ranges::any_of(run_of(prediction).warnings,
                               [](const result::Warning& w) { return w.code == "other-gpu"; });
  };
  CHECK(warns("A100 SXM 80GB, eight per node", "H100-SXM-80GB"));
  CHECK(warns("GB200 NVL72", "B200-SXM-180GB"));
  CHECK(warns("H100 SXM 80GB", "GH200-96GB"));
  CHECK_FALSE(warns("B200 SXM, eight per node, 400G per GPU", "B200-SXM-180GB"));
  CHECK_FALSE(warns("CSCS Alps, GH200 96GB, Slingshot 200 per GPU", "GH200-96GB"));
  CHECK_FALSE(warns("our machine", "H100-SXM-80GB"));
  CHECK_FALSE(warns("H100 SXM 80GB", "my GPU"));
}
