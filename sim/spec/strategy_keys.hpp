// SPDX-License-Identifier: Apache-2.0
// Which keys of [strategy] mean something to which methods: the others would change nothing.
#pragma once

#include <span>
#include <string_view>

#include "sim/spec/spec.hpp"

namespace scapesim::spec {

struct StrategyKey {
  std::string_view name;             ///< "low_rank"
  bool (*is_set)(const Strategy&);   ///< has another value than where nobody says it
  bool (*is_read)(const Scenario&);  ///< the scenario's method and sharding read it
  std::string_view read_by;          ///< for people: "powersgd"
};

/// Every key that some methods do not read. Not method, sharding, kernels and tokens_to_loss.
std::span<const StrategyKey> strategy_keys();

/// The row of a key; nullptr for keys that every method reads.
const StrategyKey* strategy_key(std::string_view name);

}  // namespace scapesim::spec
