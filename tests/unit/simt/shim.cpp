// SPDX-License-Identifier: Apache-2.0
// The SIMT shim itself: collectives give what CUDA gives, and what cannot go on is a fault. Races
// and bounds are tested by faults planted in the kernels (tests/gpu/faults_test.py).
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "kernels/cuda/launch.hpp"
#include "kernels/simt/simt.hpp"

namespace {

constexpr unsigned kFull = 0xffffffffU;

void run(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
  simt::launch({.name = "test",
                .function = nullptr,
                .blocks = blocks,
                .threads = threads,
                .shared_bytes = 64},
               kernel);
}

std::string fault_of(unsigned threads, const std::function<void()>& kernel) {
  try {
    run(1, threads, kernel);
  } catch (const simt::Fault& fault) {
    return fault.what();
  }
  return {};
}

}  // namespace

TEST_CASE("every thread of every block runs once, in an order that follows from the seed") {
  const auto order_of = [](std::uint64_t seed) {
    std::vector<unsigned> order;
    simt::set_seed(seed);
    run(5, 64, [&] { order.push_back(blockIdx.x * 64 + threadIdx.x); });
    return order;
  };
  const auto order = order_of(1);
  CHECK(std::set(order.begin(), order.end()).size() == 5 * 64);
  CHECK(order.size() == 5 * 64);
  CHECK(order == order_of(1));
  CHECK(order != order_of(2));
}

TEST_CASE("collectives of a warp give what CUDA's give") {
  int wrong = 0;
  run(1, 64, [&] {
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    const unsigned mine = 100 * warp + lane;
    const auto expect = [&](bool right) { wrong += right ? 0 : 1; };
    expect(__ballot_sync(kFull, lane % 3 == warp) == (warp == 0 ? 0x49249249U : 0x92492492U));
    expect(__shfl_sync(kFull, mine, 7U) == 100 * warp + 7);
    expect(__shfl_up_sync(kFull, mine, 3U) == (lane < 3 ? mine : mine - 3));
    expect(__shfl_down_sync(kFull, mine, 5U) == (lane + 5 > 31 ? mine : mine + 5));
    expect(__shfl_xor_sync(kFull, 0.5 * mine, 16U) == 0.5 * (100 * warp + (lane ^ 16U)));
  });
  CHECK(wrong == 0);
}

TEST_CASE("a barrier lets nobody through before all have come") {
  unsigned arrived = 0;
  bool early = false;
  run(3, 128, [&] {
    ++arrived;
    __syncthreads();
    early = early || arrived % 128 != 0;
    __syncthreads();
  });
  CHECK(arrived == 3 * 128);
  CHECK_FALSE(early);
}

TEST_CASE("what cannot go on is a fault, and the machine works afterwards") {
  CHECK(fault_of(64, [] {
          if (threadIdx.x != 5) __syncthreads();
        }).find("deadlock: 63 threads at a barrier") != std::string::npos);
  CHECK(fault_of(64, [] {
          if (threadIdx.x < 40) __ballot_sync(kFull, true);
        }).find("deadlock") != std::string::npos);
  CHECK(fault_of(64, [] {
          if (threadIdx.x < 32)
            __syncthreads();
          else if (threadIdx.x != 63)
            __ballot_sync(kFull, true);
        }).find("31 at a collective") != std::string::npos);
  CHECK(fault_of(32, [] { __ballot_sync(0xffffU, true); }).find("less than a full warp") !=
        std::string::npos);
  CHECK(fault_of(32, [] {
          if (threadIdx.x < 16)
            __ballot_sync(kFull, true);
          else
            __shfl_sync(kFull, 1U, 0U);
        }).find("different collectives") != std::string::npos);
  CHECK(fault_of(32, [] { simt::shared_bytes(65); }).find("shared memory") != std::string::npos);
  CHECK(fault_of(64, [] { __syncthreads(); }).empty());
}

TEST_CASE("device memory that is freed is given again, and never more than there is") {
  using namespace scapesim::kernels;
  void* first = device_allocate(1000);
  void* second = device_allocate(1);
  CHECK(first != second);
  device_free(first);
  void* third = device_allocate(500);
  device_free(second);
  device_free(third);
  if (simt::sees_accesses()) CHECK_THROWS_AS(device_allocate(std::size_t{1} << 40U), CudaError);
}
