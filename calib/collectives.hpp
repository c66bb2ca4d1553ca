// SPDX-License-Identifier: Apache-2.0
// From timed collectives to the modes of a profile: which algorithm a call ran, in which regime,
// and what latency and efficiency that says. The flat closed forms of collective_traffic.hpp carry
// it.
#pragma once

#include <string>
#include <vector>

#include "calib/collective_modes.hpp"
#include "calib/observations.hpp"
#include "sim/cost/profile.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::calib {

/// [M124] Sets the modes (network.inside.*, network.between.*) that the calls tell, and the plain
/// numbers of what has no mode. Calls that are too few, or that no algorithm explains, are named in
/// `gaps`; fits with residuals go to `report`.
void fit_modes(cost::Profile& profile, const std::vector<TimedCall>& calls,
               const cost::Origin& origin, std::string& report, std::vector<std::string>& gaps);

/// Predicted time of a call alone: the fastest mode that the profile offers.
Seconds predicted_alone(const cost::Profile& profile, const TimedCall& call);

/// Samples as calls on full nodes of the cluster; `unusable` counts those that are none, or that
/// ran inside a training step.
std::vector<TimedCall> timed_calls(const std::vector<CollectiveSample>& samples,
                                   const spec::Cluster& cluster, int& unusable);

/// fit_modes() of what logs hold, on the links of `cluster`.
void fit_collectives(cost::Profile& profile, const std::vector<CollectiveSample>& samples,
                     const spec::Cluster& cluster, const std::string& source, std::string& report,
                     std::vector<std::string>& gaps);

}  // namespace scapesim::calib
