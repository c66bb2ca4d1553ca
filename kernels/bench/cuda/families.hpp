// SPDX-License-Identifier: Apache-2.0
// The families of measurements on a CUDA device; each writes its rows as it goes.
#pragma once

#include "kernels/bench/cuda/stopwatch.hpp"

namespace scapesim::bench {

void measure_environment(Session& session);
void measure_memory(Session& session, Stopwatch& stopwatch);  ///< sets the session's copy rate
void measure_kernels(Session& session, Stopwatch& stopwatch);
void measure_gemms(Session& session, Stopwatch& stopwatch, const std::vector<GemmCase>& shapes);
void measure_attention(Session& session, Stopwatch& stopwatch);
void measure_copies(Session& session, Stopwatch& stopwatch);
/// Over all devices of this machine; with one, NCCL moves nothing and the rows say ranks 1.
void measure_collectives(Session& session);

}  // namespace scapesim::bench
