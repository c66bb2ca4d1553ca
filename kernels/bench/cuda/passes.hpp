// SPDX-License-Identifier: Apache-2.0
// Memory passes of the bench itself, and the making of its data, on the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/launch.hpp"

namespace scapesim::bench {

/// Uniform in [-1, 1), from a seed.
void fill_random(float* values, std::size_t count, std::uint64_t seed, kernels::Stream stream);
void fill_random_bf16(void* values, std::size_t count, std::uint64_t seed, kernels::Stream stream);
/// Bits that are set with a probability, each by itself or (run > 1) all of a run alike; bits from
/// `elements` on are zero.
struct RandomMask {
  std::uint32_t* words = nullptr;
  std::size_t elements = 0;
  double density = 0;
  std::size_t run = 1;
  std::uint64_t seed = 0;
};
void fill_mask(const RandomMask& mask, kernels::Stream stream);

/// to = from: 8 bytes per element. All three are multiples of 4 elements, aligned to 16 bytes.
void copy_pass(float* to, const float* from, std::size_t count, kernels::Stream stream);
/// a = b + 3 c: 12 bytes per element.
void triad_pass(float* a, const float* b, const float* c, std::size_t count,
                kernels::Stream stream);

/// Softmax of rows of bf16, in place: for the stand-in of attention.
void softmax_rows(void* values, std::size_t rows, std::size_t columns, kernels::Stream stream);

}  // namespace scapesim::bench
