// SPDX-License-Identifier: Apache-2.0
#include "kernels/step/mpi/meeting.hpp"

#include <cstdlib>
#include <mpi.h>

namespace scapesim::step {

bool started_by_mpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

// Errors end the program: MPI's default.
MpiMeeting::MpiMeeting() { MPI_Init(nullptr, nullptr); }
MpiMeeting::~MpiMeeting() { MPI_Finalize(); }

int MpiMeeting::rank() const {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int MpiMeeting::ranks() const {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

std::string MpiMeeting::agreed_text(const std::string& text_of_rank_0) const {
  int size = static_cast<int>(text_of_rank_0.size());
  MPI_Bcast(&size, 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::string text = text_of_rank_0;
  text.resize(static_cast<std::size_t>(size));
  MPI_Bcast(text.data(), size, MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

}  // namespace scapesim::step
