// SPDX-License-Identifier: Apache-2.0
// From training runs to a machine's numbers: how fast its GEMMs are sustained, what the host adds,
// and how its transport moves bulk collectives.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calib/fit.hpp"
#include "sim/cost/profile.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::calib {

/// A run that overlaps nothing: its step is computation (all local work) plus communication.
struct TrainingRun {
  spec::Scenario scenario;  ///< as run: model, GPU count, strategy
  Seconds computation;      ///< per step
  Seconds communication;    ///< per step
};

/// [M82] Bandwidth B per NIC and latency alpha per ring step from t = volume/B + steps alpha. A
/// negative alpha is refitted as 0. Sets network.transport_cap_Bps, network.hop_latency_s,
/// network.smallest_fitted_B and network.efficiency = 1, with `source` and residuals as origin; a
/// regime of small collectives in the profile is dropped. Throws InputError when time does not grow
/// with volume.
void fit_transport(cost::Profile& profile, const std::vector<TrainingRun>& runs,
                   const cost::Origin& source, std::string& report);

/// [M85] One scale on all GEMM rates and one host term per step that explain the computation of all
/// runs, given the profile's curves. Sets gemm.scale, host.step_s and model.discrepancy.
void fit_computation(cost::Profile& profile, const std::vector<TrainingRun>& runs,
                     const cost::Origin& source, std::string& report);

/// Local work of one step under a profile.
Seconds computation(const TrainingRun& run, const cost::Profile& profile);
/// [M82] Bulk collectives of one step under the profile's transport and latency.
Seconds communication(const TrainingRun& run, const cost::Profile& profile);

}  // namespace scapesim::calib
