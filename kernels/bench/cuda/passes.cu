// SPDX-License-Identifier: Apache-2.0
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <string>

#include "kernels/bench/cuda/passes.hpp"

namespace scapesim::bench {

namespace {

constexpr unsigned kBlock = 256;

void check_launch(const char* name) {
  const cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess)
    throw kernels::CudaError(std::string(name) + ": " + cudaGetErrorString(code));
}

unsigned blocks_of(std::size_t items) {
  const std::size_t blocks = (items + kBlock - 1) / kBlock;
  return static_cast<unsigned>(blocks < (1U << 20U) ? blocks : (1U << 20U));
}

__device__ std::uint64_t hash(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}
__device__ double uniform(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }
__device__ std::size_t first_item() {
  return static_cast<std::size_t>(blockIdx.x) * kBlock + threadIdx.x;
}
__device__ std::size_t all_threads() { return static_cast<std::size_t>(gridDim.x) * kBlock; }

__global__ void random_kernel(float* values, std::size_t count, std::uint64_t seed) {
  for (std::size_t i = first_item(); i < count; i += all_threads())
    values[i] = static_cast<float>(2 * uniform(hash(seed ^ hash(i))) - 1);
}

__global__ void random_bf16_kernel(__nv_bfloat16* values, std::size_t count, std::uint64_t seed) {
  for (std::size_t i = first_item(); i < count; i += all_threads())
    values[i] = __float2bfloat16(static_cast<float>(2 * uniform(hash(seed ^ hash(i))) - 1));
}

__global__ void mask_kernel(RandomMask mask, std::size_t words) {
  for (std::size_t word = first_item(); word < words; word += all_threads()) {
    std::uint32_t bits = 0;
    for (unsigned bit = 0; bit < 32; ++bit) {
      const std::size_t i = word * 32 + bit;
      const bool set =
          i < mask.elements && uniform(hash(mask.seed ^ hash(i / mask.run))) < mask.density;
      bits |= (set ? 1U : 0U) << bit;
    }
    mask.words[word] = bits;
  }
}

__global__ void copy_kernel(float4* to, const float4* from, std::size_t count) {
  for (std::size_t i = first_item(); i < count; i += all_threads()) to[i] = from[i];
}

__global__ void triad_kernel(float4* a, const float4* b, const float4* c, std::size_t count) {
  for (std::size_t i = first_item(); i < count; i += all_threads()) {
    const float4 x = b[i];
    const float4 y = c[i];
    a[i] = make_float4(x.x + 3 * y.x, x.y + 3 * y.y, x.z + 3 * y.z, x.w + 3 * y.w);
  }
}

/// One warp per row.
__global__ void softmax_kernel(__nv_bfloat16* values, std::size_t rows, std::size_t columns) {
  const std::size_t row = first_item() / 32;
  const unsigned lane = threadIdx.x % 32;
  if (row >= rows) return;
  __nv_bfloat16* const own = values + row * columns;
  float largest = -INFINITY;
  for (std::size_t i = lane; i < columns; i += 32)
    largest = fmaxf(largest, __bfloat162float(own[i]));
  for (int step = 16; step > 0; step /= 2)
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, step));
  float sum = 0;
  for (std::size_t i = lane; i < columns; i += 32) sum += expf(__bfloat162float(own[i]) - largest);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, step);
  for (std::size_t i = lane; i < columns; i += 32)
    own[i] = __float2bfloat16(expf(__bfloat162float(own[i]) - largest) / sum);
}

}  // namespace

void fill_random(float* values, std::size_t count, std::uint64_t seed, kernels::Stream stream) {
  if (count == 0) return;
  random_kernel<<<blocks_of(count), kBlock, 0, stream>>>(values, count, seed);
  check_launch("fill_random");
}

void fill_random_bf16(void* values, std::size_t count, std::uint64_t seed, kernels::Stream stream) {
  if (count == 0) return;
  random_bf16_kernel<<<blocks_of(count), kBlock, 0, stream>>>(static_cast<__nv_bfloat16*>(values),
                                                              count, seed);
  check_launch("fill_random_bf16");
}

void fill_mask(const RandomMask& mask, kernels::Stream stream) {
  const std::size_t words = kernels::words_of(mask.elements);
  if (words == 0) return;
  mask_kernel<<<blocks_of(words), kBlock, 0, stream>>>(mask, words);
  check_launch("fill_mask");
}

void copy_pass(float* to, const float* from, std::size_t count, kernels::Stream stream) {
  copy_kernel<<<blocks_of(count / 4), kBlock, 0, stream>>>(
      reinterpret_cast<float4*>(to), reinterpret_cast<const float4*>(from), count / 4);
  check_launch("copy_pass");
}

void triad_pass(float* a, const float* b, const float* c, std::size_t count,
                kernels::Stream stream) {
  triad_kernel<<<blocks_of(count / 4), kBlock, 0, stream>>>(
      reinterpret_cast<float4*>(a), reinterpret_cast<const float4*>(b),
      reinterpret_cast<const float4*>(c), count / 4);
  check_launch("triad_pass");
}

void softmax_rows(void* values, std::size_t rows, std::size_t columns, kernels::Stream stream) {
  const auto blocks = static_cast<unsigned>((rows * 32 + kBlock - 1) / kBlock);
  softmax_kernel<<<blocks, kBlock, 0, stream>>>(static_cast<__nv_bfloat16*>(values), rows, columns);
  check_launch("softmax_rows");
}

}  // namespace scapesim::bench
