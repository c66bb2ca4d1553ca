// SPDX-License-Identifier: Apache-2.0
// On the host, and here: programs without CUDA plan with chunks too.
#include <algorithm>
#include <stdexcept>

#include "kernels/cuda/launch.hpp"

namespace scapesim::kernels {

// Cut where the part is a multiple of the chunk, so that chunks of a piece share no mask word.
std::vector<SelectChunk> select_chunks(std::span<const SelectPiece> pieces,
                                       std::uint32_t chunk_elements) {
  if (chunk_elements == 0 || chunk_elements % 32 != 0)
    throw std::invalid_argument("a chunk is whole words of the mask");
  std::vector<SelectChunk> chunks;
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    const SelectPiece& it = pieces[piece];
    if (it.numel > 0xffffffffU) throw std::length_error("a piece of 2^32 elements or more");
    const std::uint64_t end = it.begin + it.numel;
    std::uint32_t earlier = 0;
    for (std::uint64_t begin = it.begin; begin < end;
         begin = chunks.back().begin + chunks.back().count) {
      const std::uint64_t cut = (begin / chunk_elements + 1) * chunk_elements;
      chunks.push_back({.begin = begin,
                        .count = static_cast<std::uint32_t>(std::min(cut, end) - begin),
                        .piece = static_cast<std::uint32_t>(piece),
                        .earlier = earlier++});
    }
  }
  return chunks;
}

}  // namespace scapesim::kernels
