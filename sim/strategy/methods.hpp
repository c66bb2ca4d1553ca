// SPDX-License-Identifier: Apache-2.0
// What the files of the methods offer to the table in strategy.cpp.
#pragma once

#include <memory>

#include "sim/strategy/strategy.hpp"

namespace scapesim::strategy {

std::unique_ptr<Communication> make_dense(const Context& context);
StateMemory dense_memory(const Context& context);

/// Dense gradients and no parameters beyond the shard: zero3, fsdp, hsdp.
bool is_fully_sharded(spec::Sharding sharding);
std::unique_ptr<Communication> make_fully_sharded(const Context& context);
StateMemory fully_sharded_memory(const Context& context);

std::unique_ptr<Communication> make_scape(const Context& context);
StateMemory scape_memory(const Context& context);

}  // namespace scapesim::strategy
