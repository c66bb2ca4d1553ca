// SPDX-License-Identifier: Apache-2.0
// Training logs and CSV.
#include <catch2/catch.hpp>

#include "support.hpp"

using namespace scapesim;
using namespace scapesim::calib;
using Catch::Contains;

TEST_CASE("Megatron-LM's iterations, batch, throughput and world size are read") {
  const Observations found = import_fixture("megatron.log");
  CHECK(found.format == "megatron");
  REQUIRE(found.steps.size() == 2);
  const StepSample& step = found.steps[1];
  CHECK(step.iteration == 2);
  CHECK(step.step_time->si() == Approx(1.7502));
  CHECK(step.sequences == 256);
  CHECK(step.tokens->si() == 256 * 4096);
  CHECK(step.gpus == 64);
  CHECK(step.flop_rate_per_gpu->si() == Approx(411.3e12));
  CHECK(step.place.line == 17);
}

TEST_CASE("timers belong to the step above them, by the slowest rank") {
  const Observations found = import_fixture("megatron.log");
  CHECK(found.steps[0].timers.at("all-grads-sync").si() == Approx(55.75e-3));
  CHECK(found.steps[1].timers.size() == 3);
  CHECK(found.steps[1].timers.at("forward-backward").si() == Approx(1.6005));
  CHECK_THAT(warnings_of(found), Contains("1 timers before the first step"));
}

TEST_CASE("other lines of a training log are counted and keep no secrets") {
  const Observations found = import_fixture("megatron.log");
  CHECK(found.unparsed.malformed == 0);
  CHECK(found.unparsed.count == 7);
  CHECK(found.unparsed.examples[0].text == "export HF_TOKEN=... NCCL_IB_TIMEOUT=22");
  CHECK(found.environment == std::map<std::string, std::string>{{"NCCL_IB_TIMEOUT", "22"}});
}

TEST_CASE("timers as the slowest rank or all ranks read the same, behind a launcher's labels") {
  const Observations found = import_fixture("megatron-max.log");
  REQUIRE(found.steps.size() == 2);
  CHECK(found.steps[0].timers.at("optimizer").si() == Approx(50.5e-3));
  CHECK(found.steps[1].timers.at("forward-backward").si() == Approx(701.5e-3));
  CHECK(found.steps[1].timers.at("optimizer").si() == Approx(50.25e-3));
  CHECK_FALSE(found.steps[0].gpus);
  CHECK_THAT(warnings_of(found), Contains("number of GPUs"));
}

TEST_CASE("Megatron-DeepSpeed prints seconds, TFLOPs and one line of timers") {
  const Observations found = import_fixture("megatron-deepspeed.log");
  REQUIRE(found.steps.size() == 1);
  CHECK(found.steps[0].step_time->si() == Approx(104.25));
  CHECK(found.steps[0].flop_rate_per_gpu->si() == Approx(149.5e12));
  CHECK(found.steps[0].gpus == 384);
  CHECK(found.steps[0].timers.at("backward-compute").si() == Approx(60.2505));
}

TEST_CASE("a step line that is cut off inside its time is no step") {
  const Observations found = import_fixture("megatron-cut.log");
  CHECK(found.steps.size() == 1);
  CHECK(found.unparsed.malformed == 1);
  CHECK(found.unparsed.malformed_examples[0].number == 2);
}

TEST_CASE("nanotron's short numbers are read, and what they cannot tell is left open") {
  const Observations found = import_fixture("nanotron.log");
  CHECK(found.format == "nanotron");
  REQUIRE(found.steps.size() == 2);
  CHECK(found.steps[0].step_time->si() == Approx(2.28));
  CHECK(found.steps[0].gpus == 8);
  CHECK_FALSE(found.steps[0].sequences);  // 1.02K may be 1016 to 1024
  CHECK(found.steps[0].token_rate_per_gpu->si() == Approx(57500));
  CHECK(found.steps[1].step_time->si() == Approx(0.95));
  CHECK_FALSE(found.steps[1].gpus);  // 1.1M / 2.15K: 507 to 516
  CHECK(found.steps[1].sequences == 512);
  CHECK(found.unparsed.count == 1);
  CHECK_THAT(warnings_of(found), Contains("1 step times are printed with three digits"));
}

TEST_CASE("nanotron's old long numbers are exact") {
  const Observations found = import_fixture("nanotron-old.log");
  REQUIRE(found.steps.size() == 1);
  CHECK(found.steps[0].gpus == 64);
  CHECK(found.steps[0].sequences == 1024);
  CHECK(found.steps[0].step_time->si() == Approx(1.5234));
  CHECK(found.warnings.empty());
}

TEST_CASE("torchtitan's step time follows from tokens per second, batch, sequence and mesh") {
  const Observations found = import_fixture("torchtitan.log");
  CHECK(found.format == "torchtitan");
  REQUIRE(found.steps.size() == 2);
  const StepSample& step = found.steps[1];
  CHECK(step.iteration == 10);
  CHECK(step.gpus == 64);  // 2 x 8 x 4; expert parallelism lies inside
  CHECK(step.tokens->si() == 64 * 8192);
  CHECK(step.step_time->si() == Approx(64.0 * 8192 / (8192 * 64)));
  CHECK(step.flop_rate_per_gpu->si() == Approx(1408.25e12));
  CHECK(found.machine.gpu_names == std::vector<std::string>{"NVIDIA H100 80GB HBM3"});
}

TEST_CASE("torchtitan's validation and a line that is cut off are no steps") {
  const Observations found = import_fixture("torchtitan.log");
  CHECK(found.unparsed.count == 2);
  CHECK(found.unparsed.malformed == 1);
  CHECK(found.unparsed.malformed_examples[0].number == 7);
}

TEST_CASE("an old torchtitan log gives rates without step times") {
  const Observations found = import_fixture("torchtitan-old.log");
  REQUIRE(found.steps.size() == 1);
  CHECK(found.steps[0].gpus == 32);
  CHECK(found.steps[0].token_rate_per_gpu->si() == 2048);
  CHECK_FALSE(found.steps[0].step_time);
  CHECK_THAT(warnings_of(found), Contains("step times are unknown"));
}

TEST_CASE("CSV rows are collectives; hyphens and underscores name the same") {
  const Observations found = import_fixture("times.csv");
  CHECK(found.format == "csv");
  REQUIRE(found.collectives.size() == 2);
  CHECK(found.collectives[0].ranks_per_node == 8);
  CHECK(found.collectives[1].kind == graph::CollectiveKind::all_gather);
  CHECK(found.collectives[1].size.si() == 2e9);
  CHECK(found.collectives[1].place.line == 4);
}

TEST_CASE("every fault of a CSV file is told, with line and column") {
  const std::string told = refusal(fixture("bad.csv"), "bad.csv");
  CHECK_THAT(told, Contains("bad.csv:2:1: collective: unknown collective \"all-reduc\" (did you "
                            "mean \"all-reduce\"?)"));
  CHECK_THAT(told, Contains("bad.csv:3:11: ranks: two or more"));
  CHECK_THAT(told, Contains("bad.csv:4:20: time_s: \"fast\" is not a number above 0"));
}
