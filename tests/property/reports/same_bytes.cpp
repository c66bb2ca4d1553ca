// SPDX-License-Identifier: Apache-2.0
// The same scenario and profile give the same JSON, byte for byte, interval included.
#include <catch2/catch.hpp>

#include "reports/json.hpp"
#include "tests/support/random_scenario.hpp"

using namespace scapesim;
using namespace scapesim::test;

TEST_CASE("the same input gives the same JSON bytes twice") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    const auto json = [&] {
      const spec::Scenario scenario = random_scenario(seed);
      const study::Point point{
          .scenario = scenario.name,
          .series = {},
          .gpus = scenario.cluster.gpus,
          .outcome = predict(scenario, random_profile(seed),
                             {.driver = engine::Driver::standalone, .interval_draws = 4})
                         .outcome};
      return reports::runs_json(std::span(&point, 1));
    };
    CHECK(json() == json());
  }
}
