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

std::unique_ptr<Communication> make_topk(const Context& context);
StateMemory topk_memory(const Context& context);

std::unique_ptr<Communication> make_dgc(const Context& context);
StateMemory dgc_memory(const Context& context);

std::unique_ptr<Communication> make_zeropp(const Context& context);
StateMemory zeropp_memory(const Context& context);

std::unique_ptr<Communication> make_qsdp(const Context& context);
StateMemory qsdp_memory(const Context& context);

std::unique_ptr<Communication> make_demo(const Context& context);
StateMemory demo_memory(const Context& context);

std::unique_ptr<Communication> make_oktopk(const Context& context);
StateMemory oktopk_memory(const Context& context);

/// Whether the simulated step is one of the leading dense ones.
bool sends_dense(const spec::Strategy& strategy);
std::unique_ptr<Communication> make_onebit_adam(const Context& context);
StateMemory onebit_adam_memory(const Context& context);

std::unique_ptr<Communication> make_powersgd(const Context& context);
StateMemory powersgd_memory(const Context& context);

std::unique_ptr<Communication> make_local_sgd(const Context& context);
StateMemory local_sgd_memory(const Context& context);

std::unique_ptr<Communication> make_scape(const Context& context);
StateMemory scape_memory(const Context& context);

}  // namespace scapesim::strategy
