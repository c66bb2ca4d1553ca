// SPDX-License-Identifier: Apache-2.0
// One line on a terminal, renewed while a command works; nothing elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

namespace scapesim::cli {

/// "12 of 90 points, 40/s, 0:02 left". May be told from several threads; the line goes with it.
class Progress {
 public:
  /// `before` of `all` were there already; `noun` is what is counted, "points".
  Progress(std::uint64_t before, std::uint64_t all, std::string noun);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void finished_one();
  void finished(std::uint64_t of_all);
  void show();

 private:
  using Clock = std::chrono::steady_clock;
  std::mutex mutex_;
  std::uint64_t before_ = 0, all_ = 0, done_ = 0;
  std::string noun_;
  Clock::time_point begin_ = Clock::now(), last_ = begin_;
  bool terminal_ = false;
  bool shown_ = false;
  bool counts_ = false;  ///< a count of finished ones was shown
};

}  // namespace scapesim::cli
