// SPDX-License-Identifier: Apache-2.0
// [M55] The way of state that lives in host memory through two device buffers: which chunk is in
// which buffer, in which order copies and passes are issued, and what each waits for. No device in
// here: the order is a value.
#pragma once

#include <cstddef>
#include <vector>

namespace scapesim::step {

enum class Stage { in, pass, out };

/// A stage of a chunk of this step, or of the step before.
struct ChunkWait {
  Stage stage = Stage::in;
  std::size_t chunk = 0;
  int steps_back = 0;
  bool operator==(const ChunkWait&) const = default;
};

/// One copy or pass. Copies in, passes and copies out have a queue each, in the order of the list.
struct ChunkMove {
  Stage stage = Stage::in;
  std::size_t chunk = 0;
  std::size_t first = 0;  ///< element
  std::size_t count = 0;
  std::size_t buffer = 0;  ///< 0 or 1
  std::vector<ChunkWait> waits;
};

/// All moves of a step in issue order: every chunk in, passed over and out once. A copy in waits
/// until its buffer has been emptied and until the chunk itself was stored by the step before.
std::vector<ChunkMove> chunk_schedule(std::size_t elements, std::size_t chunk_elements);

}  // namespace scapesim::step
