// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/communicator.hpp"

#include <algorithm>
#include <span>

#include "sim/base/check.hpp"

namespace scapesim::reference {

namespace {

/// The part of a rank's buffer that travels as chunk `index` of `count`.
template <class T>
std::span<T> chunk(std::vector<T>& buffer, std::size_t index, std::size_t count) {
  const std::size_t begin = buffer.size() * index / count;
  const std::size_t end = buffer.size() * (index + 1) / count;
  return std::span<T>(buffer).subspan(begin, end - begin);
}

/// P-1 rounds; in each, rank i hands chunk (i + first - round) mod P to its neighbour, who takes it
/// in by `receive(own element, sent element)`. Within a round no chunk is both sent and received by
/// a rank, so the order of the ranks does not matter.
template <class T, class Receive>
void pass_around(PerRank<T>& buffers, std::size_t first, Receive receive, Call& call) {
  const std::size_t ranks = buffers.size();
  for (std::size_t round = 0; round + 1 < ranks; ++round)
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const std::size_t index = (rank + first + ranks - round) % ranks;
      const std::span<T> sent = chunk(buffers[rank], index, ranks);
      const std::span<T> own = chunk(buffers[(rank + 1) % ranks], index, ranks);
      for (std::size_t i = 0; i < sent.size(); ++i) own[i] = receive(own[i], sent[i]);
      call.bytes_sent[rank] += static_cast<std::int64_t>(sent.size_bytes());
    }
}

template <class T>
T replaced(T, T sent) {
  return sent;
}

}  // namespace

Communicator::Communicator(int ranks) : ranks_(static_cast<std::size_t>(ranks)) {
  SCAPESIM_CHECK(ranks >= 1, "{} ranks", ranks);
}

// Reduce-scatter, then all-gather, each around the ring (Thakur et al. 2005, sec. 4.5).
template <class T, class Combine>
void Communicator::all_reduce(const std::string& name, PerRank<T>& buffers, Combine combine) {
  SCAPESIM_CHECK(buffers.size() == ranks_, "{} buffers on {} ranks", buffers.size(), ranks_);
  const std::size_t size = buffers[0].size();
  for (const auto& buffer : buffers)
    SCAPESIM_CHECK(buffer.size() == size, "{} and {} elements", buffer.size(), size);
  Call call{name, Collective::all_reduce, static_cast<std::int64_t>(size),
            static_cast<std::int64_t>(size * sizeof(T)), std::vector<std::int64_t>(ranks_)};
  pass_around(buffers, 0, combine, call);
  pass_around(buffers, 1, replaced<T>, call);
  calls_.push_back(std::move(call));
}

template <class T>
void Communicator::all_reduce_sum(const std::string& name, PerRank<T>& buffers) {
  all_reduce(name, buffers, [](T own, T sent) { return sent + own; });
}

template <class T>
void Communicator::all_reduce_mean(const std::string& name, PerRank<T>& buffers) {
  all_reduce_sum(name, buffers);
  for (auto& buffer : buffers)
    for (T& value : buffer) value /= static_cast<T>(ranks_);
}

void Communicator::all_reduce_or(const std::string& name, PerRank<std::uint8_t>& buffers) {
  all_reduce(name, buffers, [](std::uint8_t own, std::uint8_t sent) {
    return static_cast<std::uint8_t>(own | sent);
  });
}

PerRank<std::uint8_t> Communicator::all_gather(const std::string& name,
                                               const PerRank<std::uint8_t>& contributions) {
  SCAPESIM_CHECK(contributions.size() == ranks_, "{} contributions", contributions.size());
  std::size_t largest = 0;
  for (const auto& contribution : contributions) largest = std::max(largest, contribution.size());
  PerRank<std::uint8_t> gathered(ranks_, std::vector<std::uint8_t>(ranks_ * largest));
  for (std::size_t rank = 0; rank < ranks_; ++rank)
    std::ranges::copy(contributions[rank], chunk(gathered[rank], rank, ranks_).begin());
  const auto size = static_cast<std::int64_t>(ranks_ * largest);
  Call call{name, Collective::all_gather, size, size, std::vector<std::int64_t>(ranks_)};
  pass_around(gathered, 0, replaced<std::uint8_t>, call);
  calls_.push_back(std::move(call));
  return gathered;
}

template void Communicator::all_reduce_sum(const std::string&, PerRank<float>&);
template void Communicator::all_reduce_sum(const std::string&, PerRank<double>&);
template void Communicator::all_reduce_mean(const std::string&, PerRank<float>&);
template void Communicator::all_reduce_mean(const std::string&, PerRank<double>&);

}  // namespace scapesim::reference
