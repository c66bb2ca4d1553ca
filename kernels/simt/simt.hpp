// SPDX-License-Identifier: Apache-2.0
// Stands in for cuda_runtime.h, so that g++ compiles the kernels' source as it is and runs it on
// the CPU: a fiber per CUDA thread, block after block, both in random order. It proves indexing,
// barriers and progress, and where the compiler reports memory accesses (-fsanitize=thread, our own
// runtime) the absence of races, of reads before writes and of accesses outside an array. It says
// nothing of a device's code, limits or speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>

struct CUstream_st;

namespace simt {

/// What a kernel did wrong: deadlock, divergent collective, race, access out of bounds.
class Fault : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Index {
  unsigned x = 0;
};

struct Grid {
  const char* name;
  const void* function;
  unsigned blocks;
  unsigned threads;
  std::size_t shared_bytes;
};

/// Runs the kernel to its end. Throws Fault.
void launch(const Grid& grid, const std::function<void()>& thread);

/// Order of blocks and threads from here on.
void set_seed(std::uint64_t seed);

/// Whether memory accesses are seen: not in builds with AddressSanitizer, which sees its own.
bool sees_accesses();

/// Device memory that launches moved through a cache that loses nothing during a launch: 32-byte
/// sectors, each read (unless written before) and written once a launch.
struct Moved {
  std::size_t read = 0;
  std::size_t written = 0;
};
/// Since the start or the last call.
Moved take_moved_bytes();

void* shared_bytes(std::size_t bytes);

enum class Collective { ballot, shuffle, sync };
/// What every lane of the warp gave; all lanes must come to the same collective.
const std::uint64_t* exchange(Collective kind, unsigned mask, std::uint64_t value);
void barrier();
template <class T>
T shuffle(unsigned mask, T value, unsigned from) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  const std::uint64_t taken = exchange(Collective::shuffle, mask, bits)[from];
  std::memcpy(&value, &taken, sizeof value);
  return value;
}

}  // namespace simt

#define __global__
#define __device__
#define __host__

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(8) ushort4 {
  unsigned short x, y, z, w;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline ushort4 make_ushort4(unsigned short x, unsigned short y, unsigned short z,
                            unsigned short w) {
  return {x, y, z, w};
}

/// A store in one access.
template <class T>
void __stwb(T* to, T value) {
  *to = value;
}

extern simt::Index threadIdx;
extern simt::Index blockIdx;
extern simt::Index gridDim;

inline void __syncthreads() { simt::barrier(); }
inline void __syncwarp() { simt::exchange(simt::Collective::sync, 0xffffffffU, 0); }

inline unsigned __ballot_sync(unsigned mask, bool vote) {
  const std::uint64_t* votes = simt::exchange(simt::Collective::ballot, mask, vote ? 1 : 0);
  unsigned result = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    result |= static_cast<unsigned>(votes[lane] & 1U) << lane;
  return result;
}

template <class T>
T __shfl_sync(unsigned mask, T value, unsigned lane) {
  return simt::shuffle(mask, value, lane % 32);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by) {
  const unsigned lane = threadIdx.x % 32;
  return simt::shuffle(mask, value, lane >= by ? lane - by : lane);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by) {
  const unsigned lane = threadIdx.x % 32;
  return simt::shuffle(mask, value, lane + by < 32 ? lane + by : lane);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, unsigned with) {
  return simt::shuffle(mask, value, (threadIdx.x % 32) ^ (with % 32));
}

inline int __popc(unsigned bits) { return __builtin_popcount(bits); }

unsigned atomicAdd(unsigned* place, unsigned value);
unsigned atomicOr(unsigned* place, unsigned value);

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNoDevice = 100
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
struct cudaDeviceProp {
  char name[256];
  int major;
  int minor;
  int multiProcessorCount;
};

const char* cudaGetErrorString(cudaError_t code);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaMalloc(void** pointer, std::size_t bytes);
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            CUstream_st* stream);
cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, CUstream_st* stream);
cudaError_t cudaStreamSynchronize(CUstream_st* stream);
cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value);
