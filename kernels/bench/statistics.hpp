// SPDX-License-Identifier: Apache-2.0
// What is said of repeated timings, and how many are taken.
#pragma once

#include <functional>
#include <stdexcept>
#include <vector>

namespace scapesim::bench {

struct Summary {
  double median = 0;
  double p5 = 0;
  double p95 = 0;
  double mad = 0;  ///< median of the distances to the median
};
/// Quantiles lie between the nearest ranks, in proportion. Needs a sample.
Summary summary_of(std::vector<double> samples);

/// The user asked to stop: what was measured before stands.
struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

struct Rules {
  int warmup = 10;
  int samples = 50;  ///< of each of the two rounds
};

struct Measured {
  std::vector<double> samples;  ///< seconds, of both rounds in order
  double repeat_spread = 0;     ///< distance of the rounds' medians over the smaller
};

/// Times the same thing in two rounds after a warm-up. time_once(number) gives the seconds of one
/// repetition; stop() is asked before each and ends it all by Interrupted.
Measured measure(const Rules& rules, const std::function<double(int)>& time_once,
                 const std::function<bool()>& stop);

}  // namespace scapesim::bench
