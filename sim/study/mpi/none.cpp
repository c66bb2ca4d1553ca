// SPDX-License-Identifier: Apache-2.0
// A build without MPI.
#include <cstdlib>

#include "sim/base/check.hpp"
#include "sim/base/error.hpp"
#include "sim/study/mpi_job.hpp"

namespace scapesim::study {

struct MpiJob::State {};

MpiJob::MpiJob() {
  throw InputError(
      Problem{{},
              "mpirun",
              "this program is built without MPI: every rank would do all the work",
              "tools/packages libopenmpi-dev openmpi-bin, then build again; or --shard I/N"});
}
MpiJob::~MpiJob() = default;

namespace {
[[noreturn]] void none() { throw InternalError("no MPI"); }
}  // namespace

int MpiJob::rank() const { none(); }
int MpiJob::ranks() const { none(); }
bool MpiJob::together(const std::function<void()>&) { none(); }
std::vector<std::uint64_t> MpiJob::agreed(std::vector<std::uint64_t>) { none(); }
std::uint64_t MpiJob::next() { none(); }
void MpiJob::end_numbers() { none(); }

}  // namespace scapesim::study
