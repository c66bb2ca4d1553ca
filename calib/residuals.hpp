// SPDX-License-Identifier: Apache-2.0
// What a calibration leaves: every row that it used beside what the new profile makes of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calib/collectives.hpp"
#include "calib/gpu_kernels.hpp"
#include "calib/training.hpp"

namespace scapesim::calib {

struct Residual {
  double x = 0;  ///< size, GPUs or FLOPs
  Seconds measured;
  Seconds fitted;
  std::optional<BytesPerSecond> measured_busbw, fitted_busbw;  ///< of collectives
};

/// Rows that one curve explains.
struct ResidualSet {
  std::string name;    ///< "all-reduce, 16 ranks on 2 nodes"
  std::string family;  ///< "collective", "computation", "communication", "gemm", "attention"
  std::string x;       ///< "size_B", "gpus", "flops"
  std::vector<Residual> rows;
};

/// By collective and layout, ascending in size; fitted as the simulator times a call on the
/// cluster.
std::vector<ResidualSet> residuals_of(const cost::Profile& profile, std::vector<TimedCall> calls,
                                      const spec::Cluster& cluster);
/// Computation and communication over GPUs.
std::vector<ResidualSet> residuals_of(const cost::Profile& profile,
                                      const std::vector<TrainingRun>& runs);
std::vector<ResidualSet> residuals_of(const cost::Profile& profile,
                                      const std::vector<GemmRow>& gemms,
                                      const std::vector<AttentionTiming>& attention,
                                      const spec::Gpu& gpu);

}  // namespace scapesim::calib
