// SPDX-License-Identifier: Apache-2.0
// State that lives in host memory and visits the GPU during a pass.
#pragma once

#include "sim/strategy/program.hpp"

namespace scapesim::strategy {

/// Size of one of the two staging buffers: the scenario's, or fp32 of the largest tensor.
Bytes offload_chunk(const Context& context);

/// [M55] Double-buffered: chunk i comes in while chunk i-1 is computed on and chunk i-2 goes out;
/// the first two are fetched before they are needed. Returns the last chunk's pass.
graph::OpId add_pipelined(Program& program, const Context& context, PassSpec spec,
                          const std::string& state, Bytes bytes, const Waits& waits);

/// [M56] As the released code: everything in, compute, everything out, one after the other on one
/// copy stream. rate_key empty: the directions' large-copy rates. Returns what ends it.
graph::OpId add_staged(Program& program, const Context& context, PassSpec spec,
                       const std::string& state, Bytes bytes, std::string_view rate_key,
                       const Waits& waits);

}  // namespace scapesim::strategy
