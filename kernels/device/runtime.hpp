// SPDX-License-Identifier: Apache-2.0
// Owners of what the CUDA runtime hands out. Every call is checked.
#pragma once

#include <cstddef>
#include <cuda_runtime.h>
#include <memory>
#include <string>

#include "kernels/cuda/launch.hpp"

namespace scapesim::device {

/// Throws kernels::CudaError with the call's name and the runtime's text.
void check(cudaError_t code, const char* call);

struct StreamDeleter {
  void operator()(cudaStream_t stream) const { static_cast<void>(cudaStreamDestroy(stream)); }
};
using StreamOwner = std::unique_ptr<CUstream_st, StreamDeleter>;
/// Does not wait for the default stream; `priority` below 0 goes first.
StreamOwner make_stream(int priority = 0);

struct EventDeleter {
  void operator()(cudaEvent_t event) const { static_cast<void>(cudaEventDestroy(event)); }
};
using EventOwner = std::unique_ptr<CUevent_st, EventDeleter>;
/// With times.
EventOwner make_event();
double seconds_between(cudaEvent_t begin, cudaEvent_t end);

/// Device memory.
class Memory {
 public:
  Memory() = default;
  explicit Memory(std::size_t bytes) : pointer_(kernels::device_allocate(bytes)), bytes_(bytes) {}
  template <class T>
  T* as() const {
    return static_cast<T*>(pointer_.get());
  }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* pointer) const { kernels::device_free(pointer); }
  };
  std::unique_ptr<void, Free> pointer_;
  std::size_t bytes_ = 0;
};

/// Pinned host memory, addressable by the device.
class HostMemory {
 public:
  HostMemory() = default;
  explicit HostMemory(std::size_t bytes);
  template <class T>
  T* as() const {
    return static_cast<T*>(pointer_.get());
  }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* pointer) const { static_cast<void>(cudaFreeHost(pointer)); }
  };
  std::unique_ptr<void, Free> pointer_;
  std::size_t bytes_ = 0;
};

}  // namespace scapesim::device
