// SPDX-License-Identifier: Apache-2.0
// Every key of [strategy] has its place: read by every method, or in the table of those that some
// do not read.
#include "sim/spec/strategy_keys.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/scenario/keys.hpp"

using namespace scapesim;

TEST_CASE("every key of [strategy] either is in the table or is read by every method") {
  const std::vector<std::string_view> of_all = {"method", "sharding", "kernels", "tokens_to_loss"};
  for (const std::string_view name : scenario::names_in_section("strategy")) {
    INFO(name);
    const bool for_all = std::ranges::find(of_all, name) != of_all.end();
    CHECK(for_all != (spec::strategy_key(name) != nullptr));
  }
  for (const spec::StrategyKey& key : spec::strategy_keys()) {
    INFO(key.name);
    CHECK(scenario::find_key("strategy", key.name).has_value());
    CHECK_FALSE(key.is_set(spec::Strategy()));
  }
}
