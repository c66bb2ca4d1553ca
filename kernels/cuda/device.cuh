// SPDX-License-Identifier: Apache-2.0
// The vocabulary of the kernels: full warps, whole blocks, dynamic shared memory, plain launches.
// nvcc compiles it for a device, g++ for the SIMT shim, from the same kernel source.
#pragma once

#include <type_traits>

#include "kernels/cuda/launch.hpp"

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "kernels/simt/simt.hpp"
#endif

// Before loops whose arrays are to stay in registers.
#ifdef __CUDACC__
#define SCAPESIM_UNROLL _Pragma("unroll")
#else
#define SCAPESIM_UNROLL
#endif

namespace scapesim::kernels {

inline constexpr unsigned kBlock = 256;
inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kFull = 0xffffffffU;
inline constexpr unsigned kTileWords = kTile / 32;

/// Throws CudaError with the call's name unless it succeeded.
void check(cudaError_t code, const char* call);

/// A block's shared memory; the launch gives sizeof(T) bytes.
#ifdef __CUDACC__
template <class T>
__device__ T& shared_memory() {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  return *reinterpret_cast<T*>(shared_bytes);
}
#else
template <class T>
T& shared_memory() {
  return *static_cast<T*>(simt::shared_bytes(sizeof(T)));
}
#endif

/// Sets device memory to zero.
void zero(void* pointer, std::size_t bytes, Stream stream);

/// Launches blocks of kBlock threads; Shared is the kernel's shared memory.
struct NoShared {};
template <class Shared = NoShared, class Argument>
void launch(const char* name, void (*kernel)(const Argument), std::size_t blocks,
            const Argument& argument, [[maybe_unused]] Stream stream) {
  if (blocks == 0) return;
  if (blocks > 0x7fffffffU) throw CudaError(std::string(name) + ": more blocks than a grid has");
  const std::size_t shared = std::is_empty_v<Shared> ? 0 : sizeof(Shared);
  if (shared > 48 * 1024)
    check(
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)),
        name);
#ifdef __CUDACC__
  kernel<<<static_cast<unsigned>(blocks), kBlock, shared, stream>>>(argument);
#else
  simt::launch({.name = name,
                .function = reinterpret_cast<const void*>(kernel),
                .blocks = static_cast<unsigned>(blocks),
                .threads = kBlock,
                .shared_bytes = shared},
               [&] { kernel(argument); });
#endif
  check(cudaGetLastError(), name);
}

}  // namespace scapesim::kernels
