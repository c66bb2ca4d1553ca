// SPDX-License-Identifier: Apache-2.0
// In place of the NCCL family where NCCL is not found.
#include "kernels/bench/cuda/families.hpp"

namespace scapesim::bench {

void measure_collectives(Session& session) {
  session.progress("nccl: this program was built without NCCL, left out");
}

}  // namespace scapesim::bench
