// SPDX-License-Identifier: Apache-2.0
// [M405] [M406] [M408] [M409] What GPUs that work together, and their sustained clock, do to
// kernels.
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/cost/kernels.hpp"
#include "tests/support/profile.hpp"

using namespace scapesim;
using namespace scapesim::test;
using cost::KernelCosts;

namespace {

const cost::Gemm kGemm{.m = 8192, .n = 8192, .k = 8192};
const cost::Attention kAttention{.batch = 4, .sequence = 4096, .heads = 32, .head_dim = 128};
const cost::Pass kPass{.traffic = Bytes(1e9)};

KernelCosts costs_with(const cost::Profile& profile, const cost::Fleet& fleet = {}) {
  return KernelCosts(profile, round_gpu(), spec::Precision::bf16, fleet);
}

}  // namespace

TEST_CASE("[M405] the expected largest draw is that of the tables of order statistics") {
  CHECK(cost::expected_largest(1) == Approx(0).margin(1e-9));
  // Harter 1961, expected values of normal order statistics; Blom is within 1 % from 8 on.
  for (const auto& [draws, expected] :
       {std::pair{8, 1.42360}, {20, 1.86748}, {50, 2.24907}, {100, 2.50759}, {400, 2.96818}}) {
    INFO(draws);
    CHECK(cost::expected_largest(draws) == Approx(expected).epsilon(0.01));
  }
}

TEST_CASE("[M405] arithmetic takes as much longer as the slowest GPU, memory traffic does not") {
  const KernelCosts alone = costs_with(round_profile());
  const KernelCosts slowest = costs_with(round_profile(), {.slowest = 1.05});
  CHECK(slowest.time(kGemm) / alone.time(kGemm) == Approx(1.05).epsilon(1e-12));
  CHECK(slowest.time(kAttention) / alone.time(kAttention) == Approx(1.05).epsilon(1e-12));
  CHECK(slowest.time(kPass) == alone.time(kPass));
}

TEST_CASE("[M405] the cluster's word goes before the profile's; without either all are alike") {
  cost::Profile profile = round_profile();
  spec::Cluster cluster;
  cluster.gpus = 8;
  CHECK(cost::fleet_of(profile, cluster).slowest == 1);
  CHECK(cost::fleet_of(profile, cluster).overlap_slowdown == 0);
  profile.numbers["gpu.speed_spread"] = exactly(0.02, cost::Factor::gemm);
  profile.numbers["gpu.overlap_slowdown"] = exactly(0.2, cost::Factor::gemm);
  CHECK(cost::fleet_of(profile, cluster).slowest ==
        Approx(1 + 0.02 * cost::expected_largest(8)).epsilon(1e-15));
  CHECK(cost::fleet_of(profile, cluster).overlap_slowdown == 0.2);
  cluster.speed_spread = 0;
  cluster.overlap_slowdown = 0.1;
  CHECK(cost::fleet_of(profile, cluster).slowest == 1);
  CHECK(cost::fleet_of(profile, cluster).overlap_slowdown == 0.1);
  cluster.speed_spread.reset();
  cluster.gpus = 1;
  CHECK(cost::fleet_of(profile, cluster).slowest == Approx(1).epsilon(1e-12));
}

TEST_CASE("[M406] a kernel beside an exchange goes on at 1 / (1 + c) until one of them ends") {
  // c = 0.25: an exchange of 5 s takes 1 s of a long kernel's time; a kernel of 4 s beside a long
  // exchange takes 5 s.
  CHECK(cost::added_beside(Seconds(5), Seconds(100), 0.25).si() == Approx(1).epsilon(1e-15));
  CHECK(cost::added_beside(Seconds(100), Seconds(4), 0.25).si() == Approx(1).epsilon(1e-15));
  CHECK(cost::added_beside(Seconds(5), Seconds(4), 0.25).si() == Approx(1).epsilon(1e-15));
  CHECK(cost::added_beside(Seconds(5), Seconds(4), 0) == Seconds(0));
  CHECK(cost::added_beside(Seconds(0), Seconds(4), 0.25) == Seconds(0));
}

TEST_CASE("[M408] a lower clock slows products and attention alike") {
  cost::Profile profile = round_profile();
  const KernelCosts boosted = costs_with(profile);
  profile.numbers["gpu.clock_scale"] = exactly(0.5, cost::Factor::gemm);
  const KernelCosts sustained = costs_with(profile);
  CHECK(sustained.time(kGemm) / boosted.time(kGemm) == Approx(2).epsilon(1e-12));
  CHECK(sustained.time(kAttention) / boosted.time(kAttention) == Approx(2).epsilon(1e-12));
  CHECK(sustained.time(kPass) == boosted.time(kPass));
}

TEST_CASE("[M409] a pass of atomic additions takes the longer of its bytes and its additions") {
  cost::Profile profile = round_profile();
  const cost::Pass pass{.traffic = Bytes(1e9), .added = 2e8};
  const auto time = [&] { return costs_with(profile).time(pass).si(); };
  const double plain = time();
  profile.numbers["hbm.scatter_add_per_s"] = exactly(1e9, cost::Factor::hbm);
  CHECK(time() == Approx(2e8 / 1e9 + profile.number("hbm.launch_s")).epsilon(1e-12));
  profile.numbers["hbm.scatter_add_per_s"] = exactly(1e13, cost::Factor::hbm);
  CHECK(time() == plain);
}
