// SPDX-License-Identifier: Apache-2.0
// A user's kernel timings -> numbers of a profile: GEMM and attention by the fits of gpu_kernels,
// launch and copy latencies.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calib/gpu_kernels.hpp"
#include "calib/observations.hpp"
#include "sim/cost/profile.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::calib {

/// GEMM timings with a known data type; `skipped` counts the others.
std::vector<GemmRow> gemm_rows_in(const std::vector<Observations>& files, int& skipped);

/// "b1 h16 s4096 d128 causal": batch, heads, sequence, head width; also g (key heads), v (width of
/// values) and w (window); without the word causal: no mask. Nothing where a part is missing.
std::optional<cost::Attention> attention_in(std::string_view shape);

/// Attention timings whose shape is understood; names begin with forward, backward or both.
std::vector<AttentionTiming> attention_rows_in(const std::vector<Observations>& files);

/// Everything above into the profile. GEMM and attention need the GPU's peak: without a GPU they
/// are named in `gaps`, as is what has too few rows.
void fit_kernels(cost::Profile& profile, const std::vector<Observations>& files,
                 const std::optional<spec::Gpu>& gpu, const cost::Origin& origin,
                 std::string& report, std::vector<std::string>& gaps);

}  // namespace scapesim::calib
