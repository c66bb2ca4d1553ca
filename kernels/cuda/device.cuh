// SPDX-License-Identifier: Apache-2.0
// The vocabulary of the kernels: full warps, whole blocks, dynamic shared memory, plain launches.
#pragma once

#include <cuda_runtime.h>
#include <type_traits>

#include "kernels/cuda/launch.hpp"

namespace scapesim::kernels {

inline constexpr unsigned kBlock = 256;
inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kFull = 0xffffffffU;
inline constexpr unsigned kTileWords = kTile / 32;

/// Throws CudaError with the call's name unless it succeeded.
void check(cudaError_t code, const char* call);

/// A block's shared memory; the launch gives sizeof(T) bytes.
template <class T>
__device__ T& shared_memory() {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  return *reinterpret_cast<T*>(shared_bytes);
}

/// Launches blocks of kBlock threads; Shared is the kernel's shared memory.
struct NoShared {};
template <class Shared = NoShared, class Argument>
void launch(const char* name, void (*kernel)(const Argument), std::size_t blocks,
            const Argument& argument, Stream stream) {
  if (blocks == 0) return;
  if (blocks > 0x7fffffffU) throw CudaError(std::string(name) + ": more blocks than a grid has");
  const std::size_t shared = std::is_empty_v<Shared> ? 0 : sizeof(Shared);
  if (shared > 48 * 1024)
    check(
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)),
        name);
  kernel<<<static_cast<unsigned>(blocks), kBlock, shared, stream>>>(argument);
  check(cudaGetLastError(), name);
}

}  // namespace scapesim::kernels
