// SPDX-License-Identifier: Apache-2.0
// The in-memory collectives: what arrives, and what each rank sends.
#include "kernels/reference/communicator.hpp"

#include <catch2/catch.hpp>
#include <numeric>

#include "sim/base/check.hpp"
#include "tests/unit/kernels/support.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

}  // namespace

TEST_CASE("an all-reduce leaves the mean of all ranks, the same bits on each") {
  Random random(1);
  for (const int ranks : {1, 2, 3, 5, 8, 16})
    for (const std::size_t size : {0U, 1U, 2U, 31U, 32U, 33U, 1009U}) {
      PerRank<double> buffers = random_gradients<double>(ranks, size, random);
      std::vector<double> mean(size);
      for (const auto& buffer : buffers)
        for (std::size_t i = 0; i < size; ++i) mean[i] += buffer[i] / ranks;
      Communicator communicator(ranks);
      communicator.all_reduce_mean("x", buffers);
      // 16 summands below 1 in double precision, in another order.
      CHECK(largest_difference(buffers[0], mean) < 1e-15);
      for (const auto& buffer : buffers) CHECK(buffer == buffers[0]);
    }
}

TEST_CASE("a ring all-reduce sends every element 2(P-1) times, equal shares when P divides it") {
  for (const int ranks : {1, 2, 3, 7, 16})
    for (const std::size_t size : {1U, 31U, 16U * 21U, 1009U}) {
      Communicator communicator(ranks);
      PerRank<float> buffers(static_cast<std::size_t>(ranks), std::vector<float>(size));
      communicator.all_reduce_sum("x", buffers);
      const Call& call = communicator.calls().at(0);
      CHECK(call.elements == static_cast<std::int64_t>(size));
      CHECK(call.bytes == 4 * call.elements);
      CHECK(sum_of(call.bytes_sent) == 2 * (ranks - 1) * call.bytes);
      if (size % static_cast<std::size_t>(ranks) == 0)
        for (const std::int64_t sent : call.bytes_sent)
          CHECK(sent == 2 * (ranks - 1) * call.bytes / ranks);
    }
}

TEST_CASE("an all-gather gives every rank all contributions, padded with zeros to the largest") {
  Communicator communicator(3);
  const PerRank<std::uint8_t> all = communicator.all_gather("x", {{1, 2, 3}, {}, {4}});
  for (const auto& received : all)
    CHECK(received == std::vector<std::uint8_t>{1, 2, 3, 0, 0, 0, 4, 0, 0});
  const Call& call = communicator.calls().at(0);
  CHECK(call.bytes == 9);
  CHECK(call.bytes_sent == std::vector<std::int64_t>(3, 2 * 3));
}

TEST_CASE("the OR of masks has a bit where any rank has one") {
  Communicator communicator(3);
  PerRank<std::uint8_t> buffers = {{0b0001, 0}, {0b0100, 0}, {0b0101, 0x80}};
  communicator.all_reduce_or("x", buffers);
  for (const auto& buffer : buffers) CHECK(buffer == std::vector<std::uint8_t>{0b0101, 0x80});
}

TEST_CASE("buffers of unequal length are refused") {
  Communicator communicator(2);
  PerRank<float> unequal = {{1, 2}, {1}};
  CHECK_THROWS_AS(communicator.all_reduce_sum("x", unequal), InternalError);
}
