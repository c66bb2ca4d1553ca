// SPDX-License-Identifier: Apache-2.0
// Work on many items by processes: forked, so that a crash or an engine's globals stay in one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>

namespace scapesim::study {

/// A worker that died (killed, out of memory): what it worked on, and by which signal.
class WorkerDied : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct WorkerOptions {
  int jobs = 1;
  /// Asked between results and several times a second: true ends the work early.
  std::function<bool()> stop = {};
  /// Runs first in every worker: closes what only the caller should hold, such as locked files.
  std::function<void()> begin = {};
};

/// In a worker: the answer for one item, as bytes. What it throws ends the whole call as
/// InternalError with the same text.
using Work = std::function<std::string(std::uint64_t item)>;
/// In the calling process, in the order in which answers come, which varies.
using Take = std::function<void(std::uint64_t item, std::string answer)>;

/// Hands each item to the next free of `jobs` processes. True when every item was taken; false when
/// it was told to stop: items that were begun are taken, too. Throws what `take` throws, WorkerDied
/// and InternalError; no process is left in any case. Workers see the caller's memory as it was at
/// the call; they ignore SIGINT and die with the caller.
bool work_on(std::span<const std::uint64_t> items, const Work& work, const Take& take,
             const WorkerOptions& options);

/// Processors that this process may use.
int usable_processors();

}  // namespace scapesim::study
