// SPDX-License-Identifier: Apache-2.0
// [M434] Stages of a growing batch against Megatron-LM's rule, step by step.
#include "sim/spec/batch_ramp.hpp"

#include <catch2/catch.hpp>
#include <cmath>

using namespace scapesim;

namespace {

spec::Training ramp_of(std::int64_t start, std::int64_t increment, std::int64_t samples,
                       std::int64_t global_batch) {
  spec::Training training;
  training.global_batch = global_batch;
  training.micro_batch = 1;
  training.sequence = 2048;
  training.batch_ramp = {.start = start, .increment = increment, .samples = samples, .stages = {}};
  return training;
}

/// megatron/core/num_microbatches_calculator.py: the batch of the next step.
std::int64_t megatron_batch(const spec::Training& training, std::int64_t consumed) {
  const spec::BatchRamp& ramp = training.batch_ramp;
  if (consumed > ramp.samples) return training.global_batch;
  const std::int64_t increments = (training.global_batch - ramp.start) / ramp.increment;
  const double each = static_cast<double>(ramp.samples) / static_cast<double>(increments);
  const auto steps = static_cast<std::int64_t>(static_cast<double>(consumed) / each);
  return ramp.start + steps * ramp.increment;
}

}  // namespace

TEST_CASE("[M434] stages are Megatron-LM's, step by step") {
  for (const auto& training :
       {ramp_of(32, 32, 100'000, 512), ramp_of(16, 16, 20'000, 256),
        ramp_of(256, 128, 50'000, 1024), ramp_of(192, 16, 9'999, 384), ramp_of(8, 8, 100, 64)}) {
    std::int64_t consumed = 0;
    for (const spec::RampStage& stage : spec::ramp_stages(training))
      for (std::int64_t i = 0; i < stage.steps; ++i) {
        REQUIRE(megatron_batch(training, consumed) == stage.batch);
        consumed += stage.batch;
      }
    CHECK(megatron_batch(training, consumed) == training.global_batch);
  }
}

TEST_CASE("[M434] where stages divide evenly the steps are the closed form") {
  // NeMo's example: 256 to 1024 by 128 over 50,331,648 samples, six stages of 8,388,608.
  const auto stages = spec::ramp_stages(ramp_of(256, 128, 50'331'648, 1024));
  REQUIRE(stages.size() == 6);
  std::int64_t consumed = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::int64_t batch = 256 + 128 * static_cast<std::int64_t>(i);
    CHECK(stages[i].batch == batch);
    const std::int64_t left = static_cast<std::int64_t>(i + 1) * 8'388'608 - consumed;
    CHECK(stages[i].steps == (left + batch - 1) / batch);
    consumed += stages[i].sequences();
  }
}

TEST_CASE("[M434] stages in tokens end with the step that reaches them") {
  spec::Training training;
  training.global_batch = 2048;
  training.sequence = 8192;
  training.batch_ramp.stages = {{512, 252e6}, {1024, 2.87e12}};
  const auto stages = spec::ramp_stages(training);
  REQUIRE(stages.size() == 2);
  CHECK(stages[0].steps == 61);  // 252e6 / (512 x 8192) = 60.1
  const double left = 2.87e12 / 8192 - 61 * 512;
  CHECK(static_cast<double>(stages[1].steps) == std::ceil(left / 1024));
}

TEST_CASE("without a ramp there are no stages") {
  CHECK(spec::ramp_stages(spec::Training{}).empty());
}
