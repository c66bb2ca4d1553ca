// SPDX-License-Identifier: Apache-2.0
// How processes that share a folder agree on one text, such as a communicator's id. Files that an
// earlier run left do no harm: rank 0 answers a number that each rank draws anew.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace scapesim::step {

struct Rendezvous {
  std::filesystem::path file;  ///< in a folder that all ranks see; FILE.<rank> beside it too
  int rank = 0;
  int ranks = 1;
  std::chrono::milliseconds timeout{60'000};
};

/// Rank 0 gives the text, all return it. Every rank calls it once; nothing is left of the files.
/// Throws std::runtime_error that names the ranks that did not come in time.
std::string agreed_text(const Rendezvous& rendezvous, const std::string& text_of_rank_0);

}  // namespace scapesim::step
