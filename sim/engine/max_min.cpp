// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/max_min.hpp"

#include <algorithm>
#include <limits>

#include "sim/base/check.hpp"

namespace scapesim::engine {

namespace {

constexpr BytesPerSecond kUnlimited(std::numeric_limits<double>::infinity());

BytesPerSecond cap_of(const graph::Phase& phase) {
  return phase.rate_cap.si() > 0 ? phase.rate_cap : kUnlimited;
}

}  // namespace

MaxMin::MaxMin(std::span<const graph::Resource> resources) {
  for (const graph::Resource& resource : resources) {
    SCAPESIM_CHECK(resource.capacity.si() > 0, "{}: {} B/s", resource.name, resource.capacity.si());
    shares_.push_back({.capacity = resource.capacity, .left = {}});
  }
}

// [M22] Max-min fairness by progressive filling, Bertsekas and Gallager 1992, sec. 6.5.2: at every
// level the phases that meet a full resource, or their own cap, are held at the common rate.
void MaxMin::solve(std::span<const graph::Phase* const> phases, std::span<BytesPerSecond> rates) {
  if (phases.size() == 1) {
    rates[0] = cap_of(*phases[0]);
    for (const graph::Load& load : phases[0]->loads)
      rates[0] = std::min(rates[0], shares_[index(load.resource)].capacity / load.flows);
    return;
  }
  collect(phases);
  BytesPerSecond level;
  for (std::size_t rising = phases.size(); rising > 0;) {
    level = next_level(phases, level);
    for (std::size_t i = 0; i < phases.size(); ++i) {
      if (!rising_[i]) continue;
      const bool meets_full = std::ranges::any_of(phases[i]->loads, [&](const graph::Load& load) {
        return shares_[index(load.resource)].full;
      });
      if (!meets_full && cap_of(*phases[i]) > level) continue;
      rates[i] = level;
      rising_[i] = false;
      --rising;
      hold(*phases[i], level);
    }
  }
}

void MaxMin::collect(std::span<const graph::Phase* const> phases) {
  rising_.assign(phases.size(), true);
  touched_.clear();
  for (const graph::Phase* phase : phases)
    for (const graph::Load& load : phase->loads) {
      Share& share = shares_[index(load.resource)];
      if (share.rising == 0) {
        touched_.push_back(load.resource.value);
        share.left = share.capacity;
        share.flows = 0;
        share.full = false;
      }
      share.flows += load.flows;
      ++share.rising;
    }
}

/// The rate at which the next resource is full or the next cap reached; marks what is full there.
BytesPerSecond MaxMin::next_level(std::span<const graph::Phase* const> phases,
                                  BytesPerSecond level) {
  BytesPerSecond next = kUnlimited;
  for (const std::uint32_t id : touched_)
    if (shares_[id].rising > 0) next = std::min(next, shares_[id].level());
  for (std::size_t i = 0; i < phases.size(); ++i)
    if (rising_[i]) next = std::min(next, cap_of(*phases[i]));
  next = std::max(next, level);  // rounding must not lower it
  for (const std::uint32_t id : touched_)
    if (shares_[id].rising > 0) shares_[id].full = shares_[id].level() <= next;
  return next;
}

void MaxMin::hold(const graph::Phase& phase, BytesPerSecond rate) {
  for (const graph::Load& load : phase.loads) {
    Share& share = shares_[index(load.resource)];
    share.left -= load.flows * rate;
    share.flows -= load.flows;
    --share.rising;
  }
}

}  // namespace scapesim::engine
