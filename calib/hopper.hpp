// SPDX-License-Identifier: Apache-2.0
// The GPU part of the GH200 profiles: kernels of Hopper parts from published rows.
#pragma once

#include <string>
#include <vector>

#include "calib/fit.hpp"
#include "calib/rows.hpp"
#include "sim/cost/profile.hpp"

namespace scapesim::calib {

/// [M83] Large-shape efficiencies (bf16, fp8), cost of a tile's ends, small-tile rate and launch
/// gap, fitted to GEMM rows with the simulator's own GEMM time. The profile
/// has its attention and memory numbers already. Appends to the report.
void add_gemm(cost::Profile& profile, const std::vector<GemmRow>& rows, std::string& report);

/// [M84] Forward curves of cuDNN 9 by head dimension; backward over forward rate from rows that
/// time both passes of one library (FlashAttention-2).
void add_attention(cost::Profile& profile, const std::vector<AttentionRow>& rows,
                   std::string& report);

/// Memory, copies and host terms from published figures; wide ranges where nothing was measured.
void add_memory_and_host(cost::Profile& profile);

}  // namespace scapesim::calib
