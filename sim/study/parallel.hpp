// SPDX-License-Identifier: Apache-2.0
// Independent pieces of work on several threads. What comes out does not depend on their number.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace scapesim::study {

/// result[i] = piece(i) for i below `count`, on up to `jobs` threads. `piece` is called at the same
/// time from all of them. The exception of the lowest i is thrown, after all have ended.
template <class Piece>
auto parallel(std::size_t count, int jobs, const Piece& piece) {
  using Result = decltype(piece(std::size_t{}));
  std::vector<Result> results(count);
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  std::size_t failed = count;
  const auto work = [&] {
    for (std::size_t i = next++; i < count; i = next++) try {
        results[i] = piece(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed) failed = i, failure = std::current_exception();
      }
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < jobs && static_cast<std::size_t>(i) < count; ++i) others.emplace_back(work);
  work();
  others.clear();
  if (failure) std::rethrow_exception(failure);
  return results;
}

}  // namespace scapesim::study
