// SPDX-License-Identifier: Apache-2.0
// Attention that writes its scores.
#include <catch2/catch.hpp>

#include "sim/workload/workload.hpp"
#include "tests/support/models.hpp"

using namespace scapesim;

namespace {

spec::Scenario scenario_with(spec::AttentionCore core) {
  spec::Scenario s;
  s.model = test::llama_1_8b();
  s.training.micro_batch = 2;
  s.training.sequence = 2048;
  s.training.attention = core;
  return s;
}

workload::Workload work_of(const spec::Scenario& s) {
  return workload::workload_of(s.model, s.training, s.parallelism);
}

}  // namespace

// [M262]
TEST_CASE("unfused attention executes all scores, flash half of them, forward and backward") {
  const auto core_flops = [](const std::vector<workload::Operation>& list) {
    double sum = 0;
    for (const workload::Operation& operation : list)
      if (operation.name.starts_with("attention")) sum += workload::flops_of(operation).si();
    return sum;
  };
  const auto flash = work_of(scenario_with(spec::AttentionCore::flash));
  const auto unfused = work_of(scenario_with(spec::AttentionCore::unfused));
  CHECK(core_flops(unfused.layers[1].forward) ==
        Approx(2 * core_flops(flash.layers[1].forward)).epsilon(1e-3));
  // Flash computes the scores again: five products backward against four.
  CHECK(core_flops(unfused.layers[1].backward) ==
        Approx(2 * 4.0 / 5 * core_flops(flash.layers[1].backward)).epsilon(1e-3));
  CHECK(unfused.model_flops == flash.model_flops);
  CHECK(unfused.parameters == flash.parameters);
}

// [M263]
TEST_CASE("unfused attention keeps a probability per score, unless the core is recomputed") {
  spec::Scenario s = scenario_with(spec::AttentionCore::unfused);
  const double scores = static_cast<double>(s.training.micro_batch) * s.model.heads *
                        static_cast<double>(s.training.sequence * s.training.sequence);
  const Bytes kept = work_of(s).layers[1].kept;
  s.training.recompute = spec::Recompute::selective;
  CHECK((kept - work_of(s).layers[1].kept).si() == Approx(2 * scores).epsilon(1e-12));
}

TEST_CASE("a batched product costs one launch however many matrices it has") {
  const auto work = work_of(scenario_with(spec::AttentionCore::unfused));
  for (const workload::Operation& operation : work.layers[1].forward)
    if (operation.name == "attention scores") CHECK(workload::launches_of(operation) == 1);
}
