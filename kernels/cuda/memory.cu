// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "kernels/cuda/device.cuh"

namespace scapesim::kernels {

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  throw CudaError(std::string(call) + ": " + cudaGetErrorString(code) + " (" +
                  std::to_string(static_cast<int>(code)) + ")");
}

std::string missing_device() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count > 0) return {};
  const std::string why = code == cudaSuccess ? "the driver has none" : cudaGetErrorString(code);
  return "no CUDA device: " + why;
}

std::string device_name() {
  int device = 0;
  cudaDeviceProp properties{};
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return std::string(properties.name) + ", sm_" + std::to_string(properties.major) +
         std::to_string(properties.minor) + ", " + std::to_string(properties.multiProcessorCount) +
         " multiprocessors";
}

void* device_allocate(std::size_t bytes) {
  void* pointer = nullptr;
  if (bytes > 0) check(cudaMalloc(&pointer, bytes), "cudaMalloc");
  return pointer;
}

// A failure here is a failure of an earlier call, which wait_for reports.
void device_free(void* pointer) noexcept { static_cast<void>(cudaFree(pointer)); }

void zero(void* pointer, std::size_t bytes, Stream stream) {
  if (bytes > 0) check(cudaMemsetAsync(pointer, 0, bytes, stream), "cudaMemsetAsync");
}

void copy_to_device(void* device, const void* host, std::size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
}

void copy_to_host(void* host, const void* device, std::size_t bytes, Stream stream) {
  check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
}

void wait_for(Stream stream) { check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); }

}  // namespace scapesim::kernels
