// SPDX-License-Identifier: Apache-2.0
// [M430] [M434] [M435] [M436] Frozen layers, ramps and stalls through a whole prediction.
#include <catch2/catch.hpp>

#include "sim/predict/ramp.hpp"
#include "sim/workload/documents.hpp"
#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

spec::Scenario small(int gpus) {
  spec::Scenario s = scenario_of(llama_500m(), gpus);
  s.training.micro_batch = 2;
  s.training.global_batch = 4 * 2 * gpus;
  return s;
}

spec::Scenario with_lora(spec::Scenario s) {
  s.training.lora = {.rank = 8, .targets = {spec::LoraTarget::all_linear}};
  return s;
}

double adapters_of(const spec::Scenario& s) {
  return static_cast<double>(workload::workload_of(s.model, s.training).trainable_parameters);
}

double frozen_of(const spec::Scenario& s) {
  return static_cast<double>(workload::workload_of(s.model, s.training).parameters) -
         adapters_of(s);
}

}  // namespace

TEST_CASE("[M430] only what is trained is reduced, under every sharding") {
  using enum spec::Sharding;
  const cost::Profile profile = round_profile();
  for (const spec::Sharding sharding : {none, zero1, zero2}) {
    spec::Scenario s = with_lora(small(4));
    s.training.global_batch = 2 * 4;
    s.strategy.sharding = sharding;
    const Prediction p = prediction_of(s, profile);
    const double element = s.training.gradient_dtype == spec::GradientDtype::fp32 ? 4 : 2;
    CHECK(collective_bytes(p, sharding == none ? "gradient all-reduce" : "gradient reduce-scatter")
              .si() == adapters_of(s) * element);
  }
}

TEST_CASE("[M430] full sharding gathers frozen parameters too and scatters only the trained") {
  const cost::Profile profile = round_profile();
  spec::Scenario s = with_lora(small(4));
  s.strategy.sharding = spec::Sharding::fsdp;
  s.training.global_batch = 2 * 4;
  const auto sum = [&](std::string_view name) {
    double bytes = 0;
    for (const graph::Collective& c : prediction_of(s, profile).graph.collectives)
      if (c.name.starts_with(name)) bytes += c.bytes.si();
    return bytes;
  };
  const double all = frozen_of(s) + adapters_of(s);
  const double embedding = static_cast<double>(s.model.vocab) * s.model.hidden;
  const double head = embedding + s.model.hidden;
  // Forward all; backward all but the embedding, which rests, and the head, still whole.
  CHECK(sum("parameter all-gather") == Approx(2 * (2 * all - embedding - head)).epsilon(1e-12));
  CHECK(sum("gradient reduce-scatter") == Approx(4 * adapters_of(s)).epsilon(1e-12));
}

TEST_CASE("[M430] state is that of the trained parameters beside the frozen weights") {
  const cost::Profile profile = round_profile();
  const spec::Scenario s = with_lora(small(4));
  const result::Memory m = run_of(prediction_of(s, profile)).memory;
  const double adapters = adapters_of(s), frozen = frozen_of(s);
  CHECK(m.parameters.si() == Approx(2 * (adapters + frozen)).epsilon(1e-12));
  CHECK(m.gradients.si() == Approx(4 * adapters).epsilon(1e-12));
  CHECK(m.optimizer.si() ==
        Approx((4 + 4 * (s.training.optimizer == spec::Optimizer::adamw ? 2 : 1)) * adapters)
            .epsilon(1e-12));
  spec::Scenario sharded = s;
  sharded.strategy.sharding = spec::Sharding::fsdp;
  const result::Memory f = run_of(prediction_of(sharded, profile)).memory;
  CHECK(f.parameters.si() == Approx(2 * frozen / 4).epsilon(1e-12));
}

TEST_CASE("[M430] more frozen layers never make a step longer or need more") {
  const cost::Profile profile = round_profile();
  for (const int pp : {1, 4}) {
    double time = INFINITY, memory = INFINITY;
    for (const int frozen : {0, 1, 4, 8, 12, 16}) {
      spec::Scenario s = small(4);
      s.training.global_batch = 32;
      s.parallelism.pp = pp;
      s.training.frozen_layers = frozen;
      const Prediction p = prediction_of(s, profile);
      const result::Run& run = run_of(p);
      CHECK(run.step_time.si() <= time);
      CHECK(run.memory.total.si() <= memory);
      CHECK(run.mfu > 0);
      CHECK(run.mfu < 1);
      time = run.step_time.si(), memory = run.memory.total.si();
    }
  }
}

TEST_CASE("[M430] stages that rest receive no gradients") {
  const cost::Profile profile = round_profile();
  spec::Scenario s = small(4);
  s.parallelism.pp = 4;
  s.training.global_batch = 16;
  const auto messages = [&](int frozen) {
    s.training.frozen_layers = frozen;
    int count = 0;
    for (const graph::Collective& c : prediction_of(s, profile).graph.collectives)
      count += c.name.starts_with("activation gradients") ? 1 : 0;
    return count;
  };
  CHECK(messages(0) == 3 * 8);
  CHECK(messages(4) == 2 * 8);
  CHECK(messages(8) == 1 * 8);
  CHECK(messages(7) == 2 * 8);
  CHECK(messages(12) == 0);
}

TEST_CASE("[M432] packing whole documents predicts what whole sequences do, to the last bit") {
  const cost::Profile profile = round_profile();
  spec::Scenario s = small(4);
  const result::Run whole = run_of(prediction_of(s, profile));
  s.training.documents = spec::Documents::packed;
  s.training.document_length.shares = {{s.training.sequence, 1.0}};
  const result::Run packed = run_of(prediction_of(s, profile));
  CHECK(packed.step_time == whole.step_time);
  CHECK(packed.tokens_per_second == whole.tokens_per_second);
  CHECK(packed.mfu == whole.mfu);
  REQUIRE(packed.documents);
  CHECK(packed.documents->slowest == 1);
}

TEST_CASE("[M432] padding costs its share of the throughput and nothing of the step") {
  const cost::Profile profile = round_profile();
  spec::Scenario s = small(4);
  const result::Run whole = run_of(prediction_of(s, profile));
  s.training.documents = spec::Documents::padded;
  s.training.document_length.shares = {{s.training.sequence / 4, 1.0}};
  const result::Run padded = run_of(prediction_of(s, profile));
  CHECK(padded.step_time == whole.step_time);
  CHECK(padded.tokens_per_second.si() == Approx(whole.tokens_per_second.si() / 4));
  CHECK(padded.mfu < whole.mfu / 4);
  s.training.documents = spec::Documents::longest;
  const result::Run longest = run_of(prediction_of(s, profile));
  CHECK(longest.step_time < whole.step_time);
  CHECK(longest.memory.activations == whole.memory.activations);
}

TEST_CASE("[M434] a ramp's steps are those of their batches, without one there is none") {
  const cost::Profile profile = round_profile();
  spec::Scenario s = small(2);
  s.training.global_batch = 32;
  const result::Run full = run_of(prediction_of(s, profile));
  CHECK(ramp_of(s, profile, full).empty());
  s.training.batch_ramp = {.start = 8, .increment = 8, .samples = 1000, .stages = {}};
  const auto rows = ramp_of(s, profile, full);
  REQUIRE(rows.size() == 3);
  for (const result::RampRow& row : rows) {
    spec::Scenario stage = small(2);
    stage.training.global_batch = row.batch;
    CHECK(row.step_time.si() == step_of(stage, profile));
  }
  // Many stages: those between simulated ones on a line, which steps of one stage are.
  s.training.global_batch = 400;
  s.training.batch_ramp = {.start = 4, .increment = 4, .samples = 100'000, .stages = {}};
  const auto many = ramp_of(s, profile, run_of(prediction_of(s, profile)));
  REQUIRE(many.size() == 99);
  for (std::size_t i = 1; i < many.size(); ++i) CHECK(many[i].step_time > many[i - 1].step_time);
  spec::Scenario middle = small(2);
  middle.training.global_batch = many[50].batch;
  CHECK(many[50].step_time.si() == Approx(step_of(middle, profile)).epsilon(1e-9));
}

TEST_CASE("[M435] stalls lengthen the step by what is stated") {
  const cost::Profile profile = round_profile();
  spec::Scenario s = small(4);
  const double plain = step_of(s, profile);
  s.training.stalls = {
      .data_loading = Seconds(0.01), .logging = Seconds(0.5), .logging_interval = 10};
  const result::Run run = run_of(prediction_of(s, profile));
  CHECK(run.step_time.si() == Approx(plain + 0.01 + 0.05).epsilon(1e-12));
}

TEST_CASE("[M436] an evaluation is the forward part of a step, data and micro-batches included") {
  const cost::Profile profile = round_profile();
  for (const int pp : {1, 4}) {
    spec::Scenario s = small(4);
    s.parallelism.pp = pp;
    s.training.global_batch = 32;
    s.training.stalls.evaluation_interval = 100;
    s.training.stalls.evaluation_iterations = 7;
    const Prediction p = prediction_of(s, profile);
    const result::Run& run = run_of(p);
    REQUIRE(run.evaluation);
    CHECK(run.evaluation->all().si() == Approx(7 * run.evaluation->iteration.si()));
    CHECK(run.evaluation->iteration < run.step_time);
    if (pp > 1) continue;
    double forward = 0;
    for (const graph::Operation& operation : p.graph.classes.at(0).operations)
      if (operation.name.starts_with("forward") || operation.name.starts_with("host"))
        forward += operation.duration.si();
    CHECK(run.evaluation->iteration.si() == Approx(forward).epsilon(1e-12));
  }
}

TEST_CASE("[M436] every method and sharding evaluates") {
  const cost::Profile profile = round_profile();
  for (const spec::MethodRule& rule : spec::method_rules())
    for (const spec::Sharding sharding : rule.shardings) {
      spec::Scenario s = small(4);
      s.strategy.method = rule.method;
      s.strategy.sharding = sharding;
      s.strategy.density = rule.density;
      if (rule.method == spec::Method::scape) s.training.optimizer = spec::Optimizer::adams;
      s.training.stalls.evaluation_interval = 10;
      s.training.stalls.evaluation_iterations = 1;
      const Prediction p = prediction_of(s, profile);
      const auto* run = std::get_if<result::Run>(&p.outcome);
      if (run == nullptr) continue;
      INFO(name_of(rule.method) << " " << name_of(sharding));
      CHECK(run->evaluation->iteration > Seconds(0));
      CHECK(run->evaluation->iteration < run->step_time);
    }
}

TEST_CASE("[M430] every method trains adapters") {
  const cost::Profile profile = round_profile();
  for (const spec::MethodRule& rule : spec::method_rules()) {
    if (rule.method == spec::Method::qsdp || rule.method == spec::Method::zeropp) continue;
    for (const spec::Sharding sharding : rule.shardings) {
      spec::Scenario s = small(4);
      s.strategy.method = rule.method;
      s.strategy.sharding = sharding;
      s.strategy.density = rule.density;
      if (rule.method == spec::Method::scape) s.training.optimizer = spec::Optimizer::adams;
      const Prediction whole = prediction_of(s, profile);
      const Prediction adapted = prediction_of(with_lora(s), profile);
      INFO(name_of(rule.method) << " " << name_of(sharding));
      CHECK(run_of(adapted).memory.optimizer < 0.1 * run_of(whole).memory.optimizer);
      CHECK(run_of(adapted).step_time < 1.2 * run_of(whole).step_time);
    }
  }
}
