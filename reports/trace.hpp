// SPDX-License-Identifier: Apache-2.0
// The Chrome trace event format, as chrome://tracing and Perfetto read it: one process per series
// and rank class, one thread per stream, all simulated steps, times in microseconds to the
// nanosecond; arrows from collectives to what waits for them; counters of link use.
#pragma once

#include <span>
#include <string>

#include "sim/predict/predict.hpp"

namespace scapesim::reports {

/// Infeasible predictions have no part in it.
std::string chrome_trace(std::span<const Prediction> predictions);

}  // namespace scapesim::reports
