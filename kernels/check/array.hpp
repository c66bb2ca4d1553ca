// SPDX-License-Identifier: Apache-2.0
// Arrays in device memory for the checks: poisoned or filled, and shifted by some elements, so that
// they are not aligned.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "kernels/cuda/launch.hpp"

namespace scapesim::kernels {

template <class T>
class Array {
 public:
  /// Poisoned: every byte is 0xcd.
  explicit Array(std::size_t count, std::size_t shift = 0) : count_(count), shift_(shift) {
    const std::vector<unsigned char> poison((count + shift + 1) * sizeof(T), 0xcd);
    memory_.reset(static_cast<T*>(device_allocate(poison.size())));
    copy_to_device(memory_.get(), poison.data(), poison.size(), nullptr);
  }
  explicit Array(const std::vector<T>& values, std::size_t shift = 0)
      : Array(values.size(), shift) {
    copy_to_device(data(), values.data(), values.size() * sizeof(T), nullptr);
  }

  T* data() { return memory_.get() + shift_; }
  const T* data() const { return memory_.get() + shift_; }
  std::size_t size() const { return count_; }

  /// After everything on the default stream.
  std::vector<T> values() const {
    std::vector<T> result(count_);
    copy_to_host(result.data(), data(), count_ * sizeof(T), nullptr);
    wait_for(nullptr);
    return result;
  }

 private:
  struct Free {
    void operator()(T* pointer) const { device_free(pointer); }
  };
  std::size_t count_;
  std::size_t shift_;
  std::unique_ptr<T[], Free> memory_;
};

}  // namespace scapesim::kernels
