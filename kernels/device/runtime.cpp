// SPDX-License-Identifier: Apache-2.0
#include "kernels/device/runtime.hpp"

namespace scapesim::device {

void check(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  throw kernels::CudaError(std::string(call) + ": " + cudaGetErrorString(code) + " (" +
                           std::to_string(static_cast<int>(code)) + ")");
}

StreamOwner make_stream(int priority) {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority),
        "cudaStreamCreateWithPriority");
  return StreamOwner(stream);
}

EventOwner make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  return EventOwner(event);
}

double seconds_between(cudaEvent_t begin, cudaEvent_t end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3;
}

HostMemory::HostMemory(std::size_t bytes) : bytes_(bytes) {
  void* pointer = nullptr;
  if (bytes > 0)
    check(cudaHostAlloc(&pointer, bytes, cudaHostAllocPortable | cudaHostAllocMapped),
          "cudaHostAlloc");
  pointer_.reset(pointer);
}

}  // namespace scapesim::device
