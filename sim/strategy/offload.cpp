// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/offload.hpp"

#include <algorithm>
#include <cmath>

namespace scapesim::strategy {

using graph::OpId;
using graph::Stream;

Bytes offload_chunk(const Context& context) {
  const Bytes largest(4.0 * static_cast<double>(context.workload.largest_tensor));
  return context.scenario.strategy.offload_chunk.value_or(largest);
}

namespace {

OpId add_state_copy(Program& program, const Context& context, const std::string& state, Bytes bytes,
                    Stream stream, std::string_view rate_key, std::string formula, Waits waits) {
  const bool inward = stream == Stream::copy_in;
  if (rate_key.empty()) rate_key = inward ? "copy.h2d_Bps" : "copy.d2h_Bps";
  return add_copy(program, context,
                  {.name = state + (inward ? " copy in" : " copy out"),
                   .stream = stream,
                   .bytes = bytes,
                   .rate_key = rate_key,
                   .formula = std::move(formula)},
                  std::move(waits));
}

}  // namespace

OpId add_pipelined(Program& program, const Context& context, PassSpec spec,
                   const std::string& state, Bytes bytes, const Waits& waits) {
  const int chunks = std::max(1, static_cast<int>(std::ceil(bytes / offload_chunk(context))));
  refuse_too_many("strategy.offload_chunk", chunks, "chunks");
  const Bytes chunk = bytes / chunks;
  spec.traffic /= chunks;
  std::vector<OpId> in;
  std::vector<OpId> out;
  OpId last{};
  for (int i = 0; i < chunks; ++i) {
    Waits free_buffer;
    if (i >= 2) free_buffer.push_back({out[static_cast<std::size_t>(i - 2)]});
    in.push_back(
        add_state_copy(program, context, state, chunk, Stream::copy_in, {}, "M55", free_buffer));
    Waits ready = waits;
    ready.push_back({in.back()});
    last = add_pass(program, context, spec, ready);
    out.push_back(
        add_state_copy(program, context, state, chunk, Stream::copy_out, {}, "M55", {{last}}));
  }
  // Across steps: a chunk is fetched after it was stored, into a buffer that has been emptied.
  for (std::size_t i = 0; i < in.size(); ++i)
    program.operations[index(in[i])].waits_for.push_back({out[i], 1});
  for (std::size_t i = 0; i < std::min<std::size_t>(2, in.size()); ++i)
    program.operations[index(in[i])].waits_for.push_back({out.back(), 1});
  return last;
}

OpId add_staged(Program& program, const Context& context, PassSpec spec, const std::string& state,
                Bytes bytes, std::string_view rate_key, const Waits& waits) {
  const OpId in =
      add_state_copy(program, context, state, bytes, Stream::copy_in, rate_key, "M56", waits);
  const OpId computed = add_pass(program, context, std::move(spec), {{in}});
  const OpId out = add_state_copy(program, context, state, bytes, Stream::copy_out, rate_key, "M56",
                                  {{computed}});
  return add_pass(program, context,
                  {.name = state + " stored",
                   .kind = graph::Kind::host,
                   .traffic = Bytes(0),
                   .launches = 0,
                   .formula = "M56"},
                  {{out}});
}

}  // namespace scapesim::strategy
