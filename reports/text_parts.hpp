// SPDX-License-Identifier: Apache-2.0
// Pieces that several text reports share.
#pragma once

#include <span>
#include <string>

#include "sim/study/point.hpp"

namespace scapesim::reports {

/// "vista-llama-1.8b, SCAPE d=0.01, 64 GPUs".
std::string title(const std::string& scenario, const std::string& series, int gpus);

/// Memory by part in GiB, with the verdict.
std::string memory_text(const result::Memory& memory);

/// Why a point does not run.
std::string infeasible_text(const study::Point& point);

/// Calibrations, weakest provenance, version, scenario hashes.
std::string rests_on(std::span<const study::Point> points);

}  // namespace scapesim::reports
