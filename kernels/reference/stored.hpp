// SPDX-License-Identifier: Apache-2.0
// State that is resident, or lives in host memory and visits the device chunk by chunk through two
// staging buffers. Where it lives must not change a bit of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/check.hpp"

namespace scapesim::reference {

enum class Storage { resident, host };

template <class T>
class Stored {
 public:
  /// chunk: elements of one staging buffer, when in host memory.
  Stored(Storage storage, std::vector<T> values, std::size_t chunk)
      : storage_(storage), values_(std::move(values)), chunk_(chunk) {
    SCAPESIM_CHECK(storage == Storage::resident || chunk > 0, "chunk {}", chunk);
  }

  /// pass(first element, values) over all elements, in order; it may change them. A chunk comes in
  /// before the chunk ahead of it has gone out.
  template <class Pass>
  void visit(Pass pass) {
    if (storage_ == Storage::resident) {
      pass(std::size_t{0}, std::span<T>(values_));
      return;
    }
    const std::size_t chunks = (values_.size() + chunk_ - 1) / chunk_;
    std::array<std::vector<T>, 2> staging;
    if (chunks > 0) fetch(0, staging[0]);
    for (std::size_t i = 0; i < chunks; ++i) {
      if (i + 1 < chunks) fetch(i + 1, staging[(i + 1) % 2]);
      pass(i * chunk_, std::span<T>(staging[i % 2]));
      write_back(i, staging[i % 2]);
    }
  }

  const std::vector<T>& values() const { return values_; }
  std::int64_t bytes_in() const { return bytes_in_; }    ///< host to device, so far
  std::int64_t bytes_out() const { return bytes_out_; }  ///< device to host

 private:
  std::span<T> chunk(std::size_t i) {
    const std::size_t begin = i * chunk_;
    return std::span<T>(values_).subspan(begin, std::min(chunk_, values_.size() - begin));
  }
  void fetch(std::size_t i, std::vector<T>& buffer) {
    const std::span<T> source = chunk(i);
    buffer.assign(source.begin(), source.end());
    bytes_in_ += static_cast<std::int64_t>(source.size_bytes());
  }
  void write_back(std::size_t i, const std::vector<T>& buffer) {
    std::ranges::copy(buffer, chunk(i).begin());
    bytes_out_ += static_cast<std::int64_t>(buffer.size() * sizeof(T));
  }

  Storage storage_;
  std::vector<T> values_;
  std::size_t chunk_;
  std::int64_t bytes_in_ = 0;
  std::int64_t bytes_out_ = 0;
};

}  // namespace scapesim::reference
