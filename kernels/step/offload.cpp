// SPDX-License-Identifier: Apache-2.0
#include "kernels/step/offload.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace scapesim::step {

namespace {

/// What a copy in waits for: the chunk before it in its buffer has gone out; across steps, the
/// chunk was stored, and for the first two, both buffers are empty.
std::vector<ChunkWait> waits_of_copy_in(std::size_t chunk, std::size_t chunks) {
  std::vector<ChunkWait> waits;
  if (chunk >= 2) waits.push_back({Stage::out, chunk - 2, 0});
  waits.push_back({Stage::out, chunk, 1});
  if (chunk < 2) waits.push_back({Stage::out, chunks - 1, 1});
  return waits;
}

}  // namespace

std::vector<ChunkMove> chunk_schedule(std::size_t elements, std::size_t chunk_elements) {
  SCAPESIM_CHECK(chunk_elements > 0, "chunk of {} elements", chunk_elements);
  const std::size_t chunks = (elements + chunk_elements - 1) / chunk_elements;
  std::vector<ChunkMove> moves;
  for (std::size_t i = 0; i < chunks; ++i) {
    const std::size_t first = i * chunk_elements;
    const std::size_t count = std::min(chunk_elements, elements - first);
    const auto move = [&](Stage stage, std::vector<ChunkWait> waits) {
      moves.push_back({stage, i, first, count, i % 2, std::move(waits)});
    };
    move(Stage::in, waits_of_copy_in(i, chunks));
    move(Stage::pass, {{Stage::in, i, 0}});
    move(Stage::out, {{Stage::pass, i, 0}});
  }
  return moves;
}

}  // namespace scapesim::step
