// SPDX-License-Identifier: Apache-2.0
// P ranks on the host, with lanes that really run apart: calls are put into queues, and run() takes
// the next one from a lane that may go on, in order or by priorities drawn from a seed, which let
// some lanes run far ahead of others. A step that lacks a wait gives other bits in some order.
// Collectives are the reference's and happen when the same lane of every rank has come to them.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/reference/communicator.hpp"
#include "kernels/step/backend.hpp"
#include "sim/base/random.hpp"

namespace scapesim::step {

class DeferredWorld {
 public:
  /// Without a seed the order is the same everywhere: rank after rank, lane after lane.
  explicit DeferredWorld(int ranks, std::optional<std::uint64_t> seed = {});
  DeferredWorld(const DeferredWorld&) = delete;
  DeferredWorld& operator=(const DeferredWorld&) = delete;
  ~DeferredWorld();

  Backend& rank(int rank);
  /// Runs until every queue is empty. Throws InternalError when lanes wait for each other or the
  /// ranks call different collectives.
  void run();
  const std::vector<reference::Call>& calls() const { return communicator_.calls(); }
  void forget_calls() { communicator_.forget_calls(); }
  /// Lanes of the waits enqueued so far, of all ranks.
  const std::vector<Lane>& waits() const { return waits_; }
  /// A fault to plant: the wait of this number is not enqueued.
  void leave_out_wait(std::size_t number) { left_out_ = number; }

 private:
  friend class DeferredRank;
  struct Collective {
    reference::Collective kind;
    bool mean;
    void* values;
    const std::uint8_t* own;
    std::size_t count;
  };
  struct Task {
    std::function<bool()> may_run;  ///< empty: at once
    std::function<void()> run;
    std::optional<Collective> collective;
  };
  using Queue = std::deque<Task>;

  Queue& queue(std::size_t rank, std::size_t lane) { return queues_[rank * kLanes + lane]; }
  bool can_run(std::size_t lane_of_rank);
  std::size_t pick(const std::vector<std::size_t>& ready);
  void step_of(std::size_t lane_of_rank);
  void run_collective(std::size_t lane);
  std::string stuck() const;

  std::size_t ranks_;
  std::optional<Random> random_;
  reference::Communicator communicator_;
  std::vector<Queue> queues_;  ///< rank x kLanes + lane
  std::vector<std::uint64_t> priorities_;
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<Lane> waits_;
  std::optional<std::size_t> left_out_;
};

}  // namespace scapesim::step
