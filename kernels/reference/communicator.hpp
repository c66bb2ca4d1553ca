// SPDX-License-Identifier: Apache-2.0
// P ranks in one process: ring collectives that copy chunk by chunk from rank to rank and count
// what each rank sends. Sums are in ring order, the same bits on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace scapesim::reference {

/// buffers[rank]
template <class T>
using PerRank = std::vector<std::vector<T>>;

enum class Collective { all_reduce, all_gather };

/// One collective as NCCL sees it.
struct Call {
  std::string name;
  Collective kind;
  std::int64_t elements;                 ///< nccl-tests count: an all-gather's whole result
  std::int64_t bytes;                    ///< nccl-tests size
  std::vector<std::int64_t> bytes_sent;  ///< by each rank
};

class Communicator {
 public:
  explicit Communicator(int ranks);
  int ranks() const { return static_cast<int>(ranks_); }

  /// Every buffer becomes the element-wise sum, mean, or OR of all. Buffers are equally long.
  template <class T>
  void all_reduce_sum(const std::string& name, PerRank<T>& buffers);
  template <class T>
  void all_reduce_mean(const std::string& name, PerRank<T>& buffers);
  void all_reduce_or(const std::string& name, PerRank<std::uint8_t>& buffers);

  /// What every rank receives: all contributions in rank order, each padded with zeros to the
  /// largest.
  PerRank<std::uint8_t> all_gather(const std::string& name,
                                   const PerRank<std::uint8_t>& contributions);

  const std::vector<Call>& calls() const { return calls_; }
  void forget_calls() { calls_.clear(); }

 private:
  template <class T, class Combine>
  void all_reduce(const std::string& name, PerRank<T>& buffers, Combine combine);

  std::size_t ranks_;
  std::vector<Call> calls_;
};

}  // namespace scapesim::reference
