// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/replay_state.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"

namespace scapesim::engine {

namespace {

int most_steps_back(const Program& program) {
  int most = 0;
  for (const Program::Wait& wait : program.waits) most = std::max(most, wait.steps_back);
  return most;
}

}  // namespace

ReplayState::ReplayState(const graph::StepGraph& graph, int most_steps)
    : graph_(graph),
      program_(program_of(graph)),
      fluid_(graph.resources),
      most_steps_(std::max(most_steps, 2 * graph.period)),
      memory_(most_steps_back(program_)),
      streams_(program_.streams.size()),
      next_member_(streams_.size(), kNone),
      collectives_(graph.collectives.size()),
      first_waiter_(program_.ops.size(), kNone),
      times_done_(program_.ops.size(), 0) {
  spans_.reserve(4 * program_.ops.size());
  open_step(0);
  for (StreamId stream = 0; stream < streams_.size(); ++stream) {
    streams_[stream].at = program_.streams[stream].begin;
    streams_[stream].wait = program_.ops[op_at(stream)].waits.begin;
  }
  for (StreamId stream = 0; stream < streams_.size(); ++stream) try_start(stream);
}

void ReplayState::advance() {
  SCAPESIM_CHECK(!fluid_.idle(), "deadlock in step {}: {} of {} operations ended", steps_done_,
                 program_.ops.size() - left_[static_cast<std::size_t>(steps_done_)],
                 program_.ops.size());
  for (const Tag tag : fluid_.advance()) {
    if (done_) return;
    if (tag < streams_.size()) {
      end_operation(tag);
      continue;
    }
    const auto collective = static_cast<std::uint32_t>(tag - streams_.size());
    ++collectives_[collective].phase;
    run_phase(collective);
  }
}

Span& ReplayState::span_at(StreamId stream) {
  const auto step = static_cast<std::size_t>(streams_[stream].step);
  return spans_[step * program_.ops.size() + op_at(stream)];
}

void ReplayState::open_step(int step) {
  left_.push_back(program_.ops.size());
  step_end_.emplace_back();
  for (std::uint32_t c = 0; c < graph_.classes.size(); ++c)
    for (std::uint32_t op = 0; op < graph_.classes[c].operations.size(); ++op)
      spans_.push_back({{c}, {op}, step, {}, {}, {}});
}

/// Starts what stands first in a stream, or lets the stream wait for the first operation missing.
void ReplayState::try_start(StreamId id) {
  Stream& stream = streams_[id];
  if (stream.step == 2 * most_steps_) return;  // streams that nothing holds back run ahead
  const Range waits = program_.ops[op_at(id)].waits;
  for (; stream.wait < waits.end; ++stream.wait) {
    const Program::Wait& wait = program_.waits[stream.wait];
    if (times_done_[wait.op] > stream.step - wait.steps_back) continue;
    if (stream.step < wait.steps_back) continue;  // before the first step all is done
    stream.next_waiter = first_waiter_[wait.op];
    first_waiter_[wait.op] = id;
    return;
  }
  start(id);
}

void ReplayState::start(StreamId id) {
  if (static_cast<std::size_t>(streams_[id].step) == left_.size()) open_step(streams_[id].step);
  Span& span = span_at(id);
  span.ready = span.begin = fluid_.now();
  const Program::Op& op = program_.ops[op_at(id)];
  if (op.collective != nullptr)
    join(id, op.collective_id);
  else if (op.transfer != nullptr)
    fluid_.start(id, *op.transfer);
  else
    fluid_.start_timer(id, op.duration);
}

void ReplayState::join(StreamId id, std::uint32_t collective) {
  Running& running = collectives_[collective];
  next_member_[id] = running.first_member;
  running.first_member = id;
  if (++running.arrived < program_.members[collective]) return;
  for (StreamId member = id; member != kNone; member = next_member_[member])
    span_at(member).begin = fluid_.now();
  running.phase = 0;
  run_phase(collective);
}

/// Runs the phase that is due, or ends the collective; one without phases takes no time.
void ReplayState::run_phase(std::uint32_t collective) {
  const std::vector<graph::Phase>& phases = graph_.collectives[collective].phases;
  const std::uint32_t phase = collectives_[collective].phase;
  const Tag tag = static_cast<Tag>(streams_.size() + collective);
  if (phase < phases.size())
    fluid_.start(tag, phases[phase]);
  else if (phase == 0)
    fluid_.start_timer(tag, Seconds(0));
  else
    end_collective(collective);
}

void ReplayState::end_collective(std::uint32_t collective) {
  StreamId member = collectives_[collective].first_member;
  const graph::Collective& what = graph_.collectives[collective];
  const Seconds time = fluid_.now() - span_at(member).begin;
  // The clock is a sum: late in a long step it rounds at 1e-16 of itself.
  SCAPESIM_CHECK(time >= (1 - 1e-9) * what.lower_bound - 1e-14 * fluid_.now(),
                 "{} takes {} s, less than its lower bound of {} s", what.name, time.si(),
                 what.lower_bound.si());
  collectives_[collective] = {};
  while (member != kNone) {
    const StreamId next = next_member_[member];  // its stream may join another one at once
    end_operation(member);
    member = next;
  }
}

void ReplayState::end_operation(StreamId id) {
  Stream& stream = streams_[id];
  const GlobalOp op = op_at(id);
  const int step = stream.step;
  span_at(id).end = fluid_.now();
  ++times_done_[op];
  if (program_.ops[op].ends_step) {
    Seconds& end = step_end_[static_cast<std::size_t>(step)];
    end = std::max(end, fluid_.now());
  }
  if (++stream.at == program_.streams[id].end) {
    stream.at = program_.streams[id].begin;
    ++stream.step;
  }
  stream.wait = program_.ops[op_at(id)].waits.begin;
  if (--left_[static_cast<std::size_t>(step)] == 0) end_step(step);
  StreamId waiter = first_waiter_[op];
  first_waiter_[op] = kNone;
  while (waiter != kNone) {
    const StreamId next = streams_[waiter].next_waiter;
    try_start(waiter);
    waiter = next;
  }
  try_start(id);
}

void ReplayState::end_step(int step) {
  steps_done_ = step + 1;
  steady_ = repeats(step);
  done_ = steady_ || steps_done_ == most_steps_;
}

Seconds ReplayState::span_end(int step, GlobalOp op) const {
  return spans_[static_cast<std::size_t>(step) * program_.ops.size() + op].end;
}

/// True when each of the last steps is the one a period before it, shifted as a whole: of the last
/// `memory` steps, which is all that the next one can depend on. Local work may run ahead (a host
/// that nothing holds back): it cannot delay what it did not delay before.
bool ReplayState::repeats(int step) const {
  const int period = graph_.period;
  if (step + 1 < std::max(period, memory_) + period) return false;
  const auto end_of = [&](int s) {
    return s < 0 ? Seconds(0) : step_end_[static_cast<std::size_t>(s)];
  };
  const Seconds shift = end_of(step) - end_of(step - period);
  const Seconds before = end_of(step - period) - end_of(step - 2 * period);
  const Seconds tolerance = 1e-9 * shift;  // relative; the clock's rounding is far below it
  const auto differs = [&](Seconds a, Seconds b) {
    return std::abs((a - b).si()) > tolerance.si();
  };
  const auto is_local = [&](GlobalOp op) {
    return program_.ops[op].collective == nullptr && program_.ops[op].transfer == nullptr;
  };
  if (differs(shift, before)) return false;
  for (int s = step; s > step - std::max(period, memory_); --s)
    for (GlobalOp op = 0; op < program_.ops.size(); ++op) {
      const Seconds moved = span_end(s, op) - span_end(s - period, op);
      const bool runs_ahead = moved < shift && is_local(op);
      if (differs(moved, shift) && !runs_ahead) return false;
    }
  return true;
}

Timeline ReplayState::take() {
  SCAPESIM_CHECK(done_, "taken after {} steps", steps_done_);
  const auto steps = static_cast<std::size_t>(steps_done_);
  Timeline timeline;
  spans_.resize(steps * program_.ops.size());
  step_end_.resize(steps);
  timeline.spans = std::move(spans_);
  timeline.step_begin.resize(steps);
  std::copy(step_end_.begin(), step_end_.end() - 1, timeline.step_begin.begin() + 1);
  timeline.step_end = std::move(step_end_);
  timeline.steady = steady_;
  timeline.warmup =
      steps_done_ - (steady_ ? graph_.period : steps_done_ / 2 / graph_.period * graph_.period);
  return timeline;
}

}  // namespace scapesim::engine
