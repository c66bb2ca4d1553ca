// SPDX-License-Identifier: Apache-2.0
#include "sim/predict/kernels.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/prediction.hpp"

using namespace scapesim;
using namespace scapesim::test;

TEST_CASE("[M490] kernels of all layers take what the passes of a step take") {
  const spec::Scenario scenario = scenario_of(llama_1_8b(), 8);
  const cost::Profile profile = round_profile();
  double kernels = 0;
  for (const Kernel& kernel : kernels_of(scenario, profile))
    kernels += kernel.calls * kernel.time.si();
  const Prediction prediction = prediction_of(scenario, profile);
  double passes = 0;
  for (const graph::Operation& operation : prediction.graph.classes.at(0).operations)
    if (operation.flops > Flops(0)) passes += operation.duration.si();
  CHECK(kernels * static_cast<double>(spec::micro_batches(scenario)) ==
        Approx(passes).epsilon(1e-12));
}

TEST_CASE("[M490] a product reads both operands and writes the result once") {
  const spec::Scenario scenario = scenario_of(llama_1_8b(), 8);
  const std::vector<Kernel> list = kernels_of(scenario, round_profile());
  const double hidden = static_cast<double>(scenario.model.hidden);
  const double tokens =
      static_cast<double>(scenario.training.micro_batch * scenario.training.sequence);
  const double vocabulary = static_cast<double>(scenario.model.vocab);
  const double expected = 2 * (tokens * hidden + hidden * vocabulary + tokens * vocabulary);
  CHECK(std::ranges::any_of(list, [&](const Kernel& kernel) {
    return kernel.kind == "gemm" && kernel.bytes.si() == Approx(expected).epsilon(1e-12);
  }));
  CHECK(std::ranges::is_sorted(list, std::greater{},
                               [](const Kernel& k) { return k.calls * k.time.si(); }));
}
