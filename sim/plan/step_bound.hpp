// SPDX-License-Identifier: Apache-2.0
// What no simulated step of a scenario can beat, from the work of its compute streams alone, and
// what it is made of.
#pragma once

#include <vector>

#include "sim/cost/profile.hpp"
#include "sim/plan/pass_cost.hpp"
#include "sim/plan/stages.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::plan {

/// Sums of a pass: all of its time, and what of it is exposed exchanges, by axis.
struct PassTime {
  Seconds time, tensor, context, expert;
};
PassTime& operator+=(PassTime& sum, const PassTime& more);

/// Times of every layer and pass, ready to be summed over many cuts into stages.
class PassTimes {
 public:
  PassTimes(const workload::Workload& workload, const LayerCosts& costs);
  PassTime part(const Part& part, Pass pass) const;

 private:
  std::vector<PassTime> of_pass_[4];  ///< sums over the layers before one
};

/// A lower bound of the step time; its terms sum to it.
struct StepBound {
  Seconds time;
  Seconds kernels;  ///< forward and backward passes without exchanges, recomputation included
  Seconds tensor, context, expert;  ///< exchanges that passes wait for
  Seconds host;
  Seconds bubble;  ///< the first micro-batch on its way in and the last one on its way out
};

/// [M420] The longest, over the stages, of the way of the first micro-batch to the stage, all of
/// the stage's passes, and the way of the last gradient back to the first stage. Needs the times
/// and the parts of the scenario's own workload.
StepBound step_bound(const spec::Scenario& scenario, const cost::Profile& profile,
                     const PassTimes& times, const std::vector<Part>& parts);

}  // namespace scapesim::plan
