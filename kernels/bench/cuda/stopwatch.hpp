// SPDX-License-Identifier: Apache-2.0
// Times of what is enqueued on a stream, by events: long work after a flush of the caches, short
// work as a graph of many launches over rotating data, so that no launch gap is counted.
#pragma once

#include <functional>

#include "kernels/bench/session.hpp"
#include "kernels/device/runtime.hpp"

namespace scapesim::bench {

/// Enqueues the work on set number `set` of its data.
using Launch = std::function<void(int set, cudaStream_t stream)>;

class Stopwatch {
 public:
  Stopwatch();
  cudaStream_t stream() const { return stream_.get(); }
  std::size_t cache_bytes() const { return cache_bytes_; }

  /// Sets of data of some bytes each that together are larger than the caches: at least 3 where the
  /// data is small, 1 where a flush is cheaper.
  int sets_for(std::size_t bytes) const;
  /// Samples of one launch by the session's rules.
  Measured measure(const Session& session, const Launch& launch, int sets);
  /// Seconds of one launch, the caches as they are.
  double once(const std::function<void()>& enqueue);

 private:
  double after_flush(const std::function<void()>& enqueue);
  void flush();

  device::StreamOwner stream_;
  device::EventOwner begin_;
  device::EventOwner end_;
  std::size_t cache_bytes_ = 0;
  device::Memory flushed_;
};

}  // namespace scapesim::bench
