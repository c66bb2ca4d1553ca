// SPDX-License-Identifier: Apache-2.0
// The GPU part of every shipped profile: kernels, memory, copies, host and power, from the rows in
// calib/data; what no row tells is taken over from a sibling part and labelled so.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "calib/rows.hpp"
#include "sim/cost/profile.hpp"

namespace scapesim::calib {

/// Rows of all parts.
struct KernelData {
  std::vector<GemmRow> gemms;
  std::vector<AttentionTiming> attention;
  std::vector<AttentionTiming> generations;  ///< of older libraries
  std::vector<MemoryRow> memory;
};
KernelData kernel_data(const std::filesystem::path& folder);

/// The numbers of every part by its name in data_sheet(), without a network. `hopper` holds those
/// of add_gemm(), add_attention() and add_memory_and_host().
std::map<std::string, cost::Profile, std::less<>> gpu_profiles(const KernelData& data,
                                                               const cost::Profile& hopper,
                                                               std::string& report);

}  // namespace scapesim::calib
