// SPDX-License-Identifier: Apache-2.0
// Devices that a step can run on in this build.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "kernels/step/backend.hpp"

namespace scapesim::step {

/// Empty when a CUDA device is there and this build can use it with NCCL; else why not, beginning
/// with "no CUDA device" or with what the build lacks.
std::string cuda_missing();

/// Devices of this process's machine.
int cuda_devices();

/// Stand-in for a backward pass: matrix products on the compute lane, about this many FLOPs.
struct StandIn {
  double flops = 0;
};

/// A text of rank 0 that all ranks receive.
using Agree = std::function<std::string(const std::string& text_of_rank_0)>;

/// A rank on one CUDA device: streams as lanes and two NCCL communicators, whose ids travel by
/// `agree`. Throws kernels::CudaError.
std::unique_ptr<Backend> cuda_backend(int rank, int ranks, int device, const Agree& agree);

/// Enqueues the stand-in; only for what cuda_backend() made.
void run_stand_in(Backend& backend, const StandIn& stand_in);

}  // namespace scapesim::step
