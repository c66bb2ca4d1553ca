// SPDX-License-Identifier: Apache-2.0
// In place of the CUDA families where nvcc is not found: says so.
#include "kernels/bench/session.hpp"
#include "sim/base/check.hpp"

namespace scapesim::bench {

std::string device_missing() { return "no CUDA device: this program was built without CUDA"; }

void measure_device(Session&, const std::vector<GemmCase>&) {
  throw InternalError("built without CUDA");
}

}  // namespace scapesim::bench
