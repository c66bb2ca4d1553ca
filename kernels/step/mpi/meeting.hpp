// SPDX-License-Identifier: Apache-2.0
// Ranks that mpirun started: their numbers, and a text that rank 0 tells all.
#pragma once

#include <string>

namespace scapesim::step {

/// Whether a launcher of MPI started this process: only then is MPI initialised.
bool started_by_mpi();

class MpiMeeting {
 public:
  MpiMeeting();
  MpiMeeting(const MpiMeeting&) = delete;
  MpiMeeting& operator=(const MpiMeeting&) = delete;
  ~MpiMeeting();
  int rank() const;
  int ranks() const;
  std::string agreed_text(const std::string& text_of_rank_0) const;
};

}  // namespace scapesim::step
