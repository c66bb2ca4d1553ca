// SPDX-License-Identifier: Apache-2.0
// Kernel numbers of any GPU from timed GEMMs, flash attention and passes, by the simulator's own
// kernel times: for shipped profiles and for a user's files alike.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calib/rows.hpp"
#include "sim/cost/profile.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::calib {

/// Data sheet of a part by its name in calib/data ("A100-SXM-80GB"); InternalError for others.
spec::Gpu data_sheet(std::string_view part);

/// [M171] GEMM efficiencies of the precisions that occur, then k_half, the same when accumulating,
/// wave_share and the small tile's rate: a parameter per six rows at most, the others stay as they
/// are in the profile. Rows of groups do not count. Appends to the report.
void fit_gemm(cost::Profile& profile, const std::vector<GemmRow>& rows, const spec::Gpu& gpu,
              const cost::Origin& source, std::string& report);

/// [M172] Launch per group, from the rows of groups. None of them: nothing changes.
void fit_groups(cost::Profile& profile, const std::vector<GemmRow>& rows, const spec::Gpu& gpu,
                const cost::Origin& source, std::string& report);

/// [M173] Forward curves by head width, what the mask's edge and few blocks cost, and backward over
/// forward rate. Needs three rows at least; widths without rows follow the profile's curves.
void fit_attention(cost::Profile& profile, const std::vector<AttentionTiming>& rows,
                   const spec::Gpu& gpu, const cost::Origin& source, std::string& report);

/// [M450] Forward and backward rate of a library over that of the profile's curves,
/// attention.<name>_ratio and attention.<name>_backward_ratio: medians, ranges from the rows'
/// extremes. Directions without rows are left out.
void fit_library(cost::Profile& profile, std::string_view name,
                 const std::vector<AttentionTiming>& rows, const spec::Gpu& gpu,
                 const cost::Origin& source);

/// Rows that fit_attention() needs at least, one more than what they let it tell.
std::size_t attention_rows_needed(const cost::Profile& profile,
                                  const std::vector<AttentionTiming>& rows);

/// Time of a row as the profile has it.
Seconds time_of(const GemmRow& row, const cost::Profile& profile, const spec::Gpu& gpu);
Seconds time_of(const AttentionTiming& row, const cost::KernelCosts& costs);
Flops flops_of(const AttentionTiming& row);

}  // namespace scapesim::calib
