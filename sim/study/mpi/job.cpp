// SPDX-License-Identifier: Apache-2.0
// MPI 3: one-sided communication for the counter, two collectives for agreement.
#define OMPI_SKIP_MPICXX 1  // the C functions only, not the C++ classes that MPI 3 took out
#include <exception>
#include <limits>
#include <mpi.h>

#include "sim/study/mpi_job.hpp"

namespace scapesim::study {

/// The counter lies in rank 0's memory; the window is open for everybody as long as it lives.
struct MpiJob::State {
  MPI_Win window = MPI_WIN_NULL;
  std::uint64_t* counter = nullptr;
  int rank = 0;
  int ranks = 1;

  std::uint64_t add(std::uint64_t amount) {
    std::uint64_t before = 0;
    MPI_Fetch_and_op(&amount, &before, MPI_UINT64_T, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    return before;
  }
};

// Errors of MPI end the program: its default.
MpiJob::MpiJob() : state_(std::make_unique<State>()) {
  MPI_Init(nullptr, nullptr);
  MPI_Comm_rank(MPI_COMM_WORLD, &state_->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &state_->ranks);
  const MPI_Aint bytes = state_->rank == 0 ? sizeof(std::uint64_t) : 0;
  MPI_Win_allocate(bytes, sizeof(std::uint64_t), MPI_INFO_NULL, MPI_COMM_WORLD,
                   static_cast<void*>(&state_->counter), &state_->window);
  MPI_Win_lock_all(0, state_->window);
  if (state_->rank == 0) *state_->counter = 0;
  MPI_Win_sync(state_->window);
  MPI_Barrier(MPI_COMM_WORLD);
}

MpiJob::~MpiJob() {
  MPI_Win_unlock_all(state_->window);
  MPI_Win_free(&state_->window);
  MPI_Finalize();
}

int MpiJob::rank() const { return state_->rank; }
int MpiJob::ranks() const { return state_->ranks; }

bool MpiJob::together(const std::function<void()>& part) {
  std::exception_ptr thrown;
  try {
    part();
  } catch (...) {
    thrown = std::current_exception();
  }
  const int mine = thrown ? state_->rank : std::numeric_limits<int>::max();
  int first = mine;
  MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == state_->rank) std::rethrow_exception(thrown);
  return first == std::numeric_limits<int>::max();
}

std::vector<std::uint64_t> MpiJob::agreed(std::vector<std::uint64_t> of_rank_0) {
  std::uint64_t size = of_rank_0.size();
  MPI_Bcast(&size, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  of_rank_0.resize(size);
  MPI_Bcast(of_rank_0.data(), static_cast<int>(size), MPI_UINT64_T, 0, MPI_COMM_WORLD);
  return of_rank_0;
}

std::uint64_t MpiJob::next() { return state_->add(1); }

void MpiJob::end_numbers() { state_->add(std::uint64_t{1} << 62U); }

}  // namespace scapesim::study
