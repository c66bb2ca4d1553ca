// SPDX-License-Identifier: Apache-2.0
// The fluid core: timers and transfers in continuous time. A transfer waits for its latency, then
// its bytes per flow move at the max-min rate of [M22]; rates change only when the set of moving
// transfers does. Knows no streams and no SimGrid.
#pragma once

#include <span>
#include <vector>

#include "sim/engine/max_min.hpp"
#include "sim/graph/graph.hpp"

namespace scapesim::engine {

/// The caller's name for an activity; ties in time are served in the order of tags.
using Tag = std::uint32_t;

class Fluid {
 public:
  explicit Fluid(std::span<const graph::Resource> resources) : max_min_(resources) {}

  /// Time of the last event; what is started, starts now.
  Seconds now() const { return now_; }
  void start_timer(Tag tag, Seconds duration);
  /// The phase must outlive the activity.
  void start(Tag tag, const graph::Phase& phase);

  bool idle() const { return timers_.empty() && flows_.empty(); }
  /// When something next ends or begins to move. Not when idle.
  Seconds next_event();
  /// Goes to the next event; the tags that end there in ascending order, valid until the next call.
  /// What ends at a time has given its rate back before anything that begins then shares it.
  std::span<const Tag> advance();

 private:
  struct Timer {
    Seconds end;
    Tag tag = 0;
    const graph::Phase* phase = nullptr;  ///< begins to move at the end; null: the tag ends
  };
  struct Flow {
    Tag tag = 0;
    Bytes left;  ///< per flow, at `since`
    Seconds since;
    BytesPerSecond rate;
    Seconds end;
  };
  static bool later(const Timer& a, const Timer& b);
  void push(const Timer& timer);
  void move(Tag tag, const graph::Phase& phase);
  void share_rates();

  MaxMin max_min_;
  Seconds now_;
  std::vector<Timer> timers_;                ///< heap, earliest first
  std::vector<Flow> flows_;                  ///< moving
  std::vector<const graph::Phase*> phases_;  ///< of flows_
  std::vector<BytesPerSecond> rates_;        ///< scratch
  std::vector<Tag> ended_;
  bool flows_changed_ = false;
};

}  // namespace scapesim::engine
