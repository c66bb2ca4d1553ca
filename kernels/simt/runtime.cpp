// SPDX-License-Identifier: Apache-2.0
// The few CUDA runtime calls that the kernels' host code makes. Everything is done when a call
// returns.
#include <cstdlib>
#include <map>

#include "kernels/simt/accesses.hpp"
#include "kernels/simt/simt.hpp"

const char* cudaGetErrorString(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
  }
  return "unknown error";
}

cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {.name = "SIMT shim", .major = 9, .minor = 0, .multiProcessorCount = 1};
  return cudaSuccess;
}

// AddressSanitizer guards what malloc gives; the shim's record guards its own memory.
cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  *pointer = simt::sees_accesses() ? simt::allocate(bytes) : std::malloc(bytes);
  return *pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  if (simt::sees_accesses())
    simt::release(pointer);
  else
    std::free(pointer);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            CUstream_st*) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  if (simt::sees_accesses()) simt::set_written(to, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, CUstream_st*) {
  std::memset(pointer, value, bytes);
  if (simt::sees_accesses()) simt::set_written(pointer, bytes);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(CUstream_st*) { return cudaSuccess; }

cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int bytes) {
  return bytes <= static_cast<int>(simt::kSharedBytes) ? cudaSuccess : cudaErrorInvalidValue;
}
