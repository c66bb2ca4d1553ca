// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/fluid.hpp"

#include <algorithm>

#include "sim/base/check.hpp"

namespace scapesim::engine {

bool Fluid::later(const Timer& a, const Timer& b) {
  return a.end != b.end ? a.end > b.end : a.tag > b.tag;
}

void Fluid::push(const Timer& timer) {
  SCAPESIM_CHECK(timer.end >= now_, "timer ends at {} s, it is {} s", timer.end.si(), now_.si());
  timers_.push_back(timer);
  std::push_heap(timers_.begin(), timers_.end(), later);
}

void Fluid::start_timer(Tag tag, Seconds duration) { push({now_ + duration, tag}); }

void Fluid::start(Tag tag, const graph::Phase& phase) {
  if (phase.latency.si() == 0)
    move(tag, phase);
  else
    push({now_ + phase.latency, tag, &phase});
}

void Fluid::move(Tag tag, const graph::Phase& phase) {
  SCAPESIM_CHECK(phase.bytes.si() >= 0, "{} bytes", phase.bytes.si());
  flows_.push_back({.tag = tag, .left = phase.bytes, .since = now_, .rate = {}, .end = {}});
  phases_.push_back(&phase);
  flows_changed_ = true;
}

Seconds Fluid::next_event() {
  if (flows_changed_) share_rates();
  Seconds next = timers_.empty() ? flows_.front().end : timers_.front().end;
  for (const Flow& flow : flows_) next = std::min(next, flow.end);
  return next;
}

/// A flow whose rate stays keeps its end to the last bit.
void Fluid::share_rates() {
  flows_changed_ = false;
  rates_.resize(flows_.size());
  max_min_.solve(phases_, rates_);
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    Flow& flow = flows_[i];
    if (flow.rate == rates_[i]) continue;
    if (now_ > flow.since) flow.left -= flow.rate * (now_ - flow.since);
    flow.left = std::max(flow.left, Bytes(0));
    flow.since = now_;
    flow.rate = rates_[i];
    flow.end = now_ + flow.left / flow.rate;
  }
}

std::span<const Tag> Fluid::advance() {
  now_ = next_event();
  ended_.clear();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (flows_[i].end <= now_) {
      ended_.push_back(flows_[i].tag);
      continue;
    }
    flows_[kept] = flows_[i];
    phases_[kept++] = phases_[i];
  }
  flows_changed_ |= kept < flows_.size();
  flows_.resize(kept);
  phases_.resize(kept);
  while (!timers_.empty() && timers_.front().end <= now_) {
    const Timer timer = timers_.front();
    std::pop_heap(timers_.begin(), timers_.end(), later);
    timers_.pop_back();
    if (timer.phase == nullptr)
      ended_.push_back(timer.tag);
    else
      move(timer.tag, *timer.phase);
  }
  std::sort(ended_.begin(), ended_.end());
  return ended_;
}

}  // namespace scapesim::engine
