// SPDX-License-Identifier: Apache-2.0
// From timed collectives to the network numbers of a profile, through the simulator's own rings.
#pragma once

#include <string>
#include <vector>

#include "calib/fit.hpp"
#include "calib/observations.hpp"
#include "sim/cost/profile.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::calib {

/// What a sample is to the ring model: time at full line rate, latencies paid, measured time.
struct CollectiveRow {
  Bytes size;
  Seconds wire;  ///< bytes per flow over the flow's share of the links at efficiency 1
  int steps = 0;
  Seconds time;
};

/// One or two regimes of t = wire / efficiency + steps alpha; the break lies where the rows put it.
struct CollectiveFit {
  Fit bulk;   ///< value = (1/efficiency, alpha)
  Fit small;  ///< the same below `break_size`; rows = 0: one regime
  Bytes break_size;
  std::vector<Bytes> outliers;  ///< sizes left out of the fit
};

/// [M82] with [M86]: the split that leaves the least squared relative error, taken when it beats
/// one line by the Bayesian information criterion. Rows further off than 4 robust standard
/// deviations are left out, a fifth of them at most. Needs 4 rows.
CollectiveFit fit_regimes(std::vector<CollectiveRow> rows);

/// Sets network.* from the samples that cross nodes and network.node_* from those inside one; what
/// cannot be used is named in `gaps`. The cluster says what the links are.
void fit_collectives(cost::Profile& profile, const std::vector<CollectiveSample>& samples,
                     const spec::Cluster& cluster, const std::string& source, std::string& report,
                     std::vector<std::string>& gaps);

}  // namespace scapesim::calib
