// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "sim/study/mpi_job.hpp"

namespace scapesim::study {

bool started_by_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

}  // namespace scapesim::study
