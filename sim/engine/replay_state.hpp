// SPDX-License-Identifier: Apache-2.0
// The replay of a step graph as a machine that goes from event to event; who calls it is the
// driver. Its times are its own, from 0, so that they do not depend on the driver.
#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "sim/engine/fluid.hpp"
#include "sim/engine/program.hpp"
#include "sim/engine/replay.hpp"

namespace scapesim::engine {

class ReplayState {
 public:
  /// The graph must outlive the state. All streams begin their first step.
  ReplayState(const graph::StepGraph& graph, int most_steps);

  bool done() const { return done_; }
  /// None when done, or when nothing can happen any more (a deadlock, on which advance() throws).
  std::optional<Seconds> next_event() {
    if (done_ || fluid_.idle()) return std::nullopt;
    return fluid_.next_event();
  }
  /// Goes to the next event and serves it.
  void advance();
  /// The finished steps; once, when done.
  Timeline take();

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  struct Stream {
    std::uint32_t at = 0;    ///< in Program::issue
    std::uint32_t wait = 0;  ///< first dependency not yet known to be met
    int step = 0;
    StreamId next_waiter = kNone;  ///< list of streams that wait for the same operation
  };
  struct Running {
    int arrived = 0;  ///< members of a collective that wait for the others
    std::uint32_t phase = 0;
    StreamId first_member = kNone;  ///< list of the members' streams
  };

  GlobalOp op_at(StreamId stream) const { return program_.issue[streams_[stream].at]; }
  Span& span_at(StreamId stream);
  void open_step(int step);
  void try_start(StreamId stream);
  void start(StreamId stream);
  void join(StreamId stream, std::uint32_t collective);
  void run_phase(std::uint32_t collective);
  void end_collective(std::uint32_t collective);
  void end_operation(StreamId stream);
  void end_step(int step);
  bool repeats(int step) const;
  Seconds span_end(int step, GlobalOp op) const;

  const graph::StepGraph& graph_;
  Program program_;
  Fluid fluid_;
  int most_steps_;
  int memory_;  ///< how many steps back dependencies reach at most
  std::vector<Stream> streams_;
  std::vector<StreamId> next_member_;  ///< per stream
  std::vector<Running> collectives_;
  std::vector<StreamId> first_waiter_;  ///< per operation
  std::vector<int> times_done_;         ///< per operation
  std::vector<std::size_t> left_;       ///< per open step: operations not ended
  std::vector<Seconds> step_end_;       ///< per open step
  std::vector<Span> spans_;             ///< step after step
  int steps_done_ = 0;
  bool steady_ = false;
  bool done_ = false;
};

}  // namespace scapesim::engine
