// SPDX-License-Identifier: Apache-2.0
// In place of the CUDA backend where nvcc or NCCL is not found: says so.
#include "kernels/step/backends.hpp"
#include "sim/base/check.hpp"

namespace scapesim::step {

std::string cuda_missing() {
  return "no CUDA device: this program was built without CUDA and NCCL";
}

int cuda_devices() { return 0; }

std::unique_ptr<Backend> cuda_backend(int, int, int, const Agree&) {
  throw InternalError("built without CUDA");
}

void run_stand_in(Backend&, const StandIn&) { throw InternalError("built without CUDA"); }

}  // namespace scapesim::step
