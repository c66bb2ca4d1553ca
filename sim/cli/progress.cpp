// SPDX-License-Identifier: Apache-2.0
#include "sim/cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace scapesim::cli {

Progress::Progress(std::uint64_t before, std::uint64_t all, std::string noun)
    : before_(before), all_(all), noun_(std::move(noun)), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::finished_one() {
  const std::lock_guard lock(mutex_);
  ++done_;
}

void Progress::finished(std::uint64_t of_all) {
  const std::lock_guard lock(mutex_);
  done_ = of_all;
}

void Progress::show() {
  constexpr std::chrono::milliseconds kOften(200);
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const bool first = done_ > 0 && !counts_;  // shown however fast the rest is
  if (!terminal_ || (!first && now - last_ < kOften)) return;
  last_ = now;
  counts_ |= first;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = static_cast<double>(done_) / seconds;
  const std::uint64_t done = before_ + done_;
  std::string left = "?";
  if (done_ > 0) {
    constexpr int kMinute = 60;
    const auto rest = static_cast<std::uint64_t>(static_cast<double>(all_ - done) / rate + 0.5);
    left = fmt::format("{}:{:02}", rest / kMinute, rest % kMinute);
  }
  const std::string speed =
      rate >= 1 ? fmt::format("{:.0f}/s", rate) : fmt::format("{:.0f}/min", 60 * rate);
  fmt::print(stderr, "\r\033[K{} of {} {}, {}, {} left", done, all_, noun_, speed, left);
}

}  // namespace scapesim::cli
