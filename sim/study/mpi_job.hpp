// SPDX-License-Identifier: Apache-2.0
// The processes of an mpirun as workers that share items by a counter on rank 0. A build without
// MPI knows that it was started by mpirun, no more.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace scapesim::study {

/// Whether a launcher of MPI started this process.
bool started_by_mpi();

/// MPI from its initialisation to its end. Throws InputError in a build without MPI.
class MpiJob {
 public:
  MpiJob();
  ~MpiJob();
  MpiJob(const MpiJob&) = delete;
  MpiJob& operator=(const MpiJob&) = delete;

  int rank() const;
  int ranks() const;

  /// Runs `part` on every rank and waits for all. False when it threw on another rank; where it
  /// threw first by rank, the exception goes on, so that one rank tells it.
  bool together(const std::function<void()>& part);

  /// The list of rank 0, on every rank.
  std::vector<std::uint64_t> agreed(std::vector<std::uint64_t> of_rank_0);

  /// 0, 1, 2, ... over all ranks, each number once (MPI_Fetch_and_op).
  std::uint64_t next();
  /// From now on next() is above any item.
  void end_numbers();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace scapesim::study
