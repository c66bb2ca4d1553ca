// SPDX-License-Identifier: Apache-2.0
// [M450] Generations of flash attention, [M451] products whose rows are not aligned.
#include <catch2/catch.hpp>

#include "sim/cost/kernels.hpp"
#include "tests/support/profile.hpp"

using namespace scapesim;
using namespace scapesim::test;
using cost::Attention;
using cost::Gemm;
using cost::KernelCosts;
using spec::AttentionCore;

namespace {

// A few multiplications and divisions in double precision.
constexpr double kRounding = 1e-12;

/// Memory and launches so fast that arithmetic decides.
cost::Profile compute_bound() {
  cost::Profile profile = round_profile();
  set(profile, "hbm.bandwidth_Bps", 1e14);
  set(profile, "hbm.launch_s", 0);
  return profile;
}

Attention attention_by(AttentionCore core, bool backward = false) {
  Attention attention{.batch = 2, .sequence = 4096, .heads = 8, .head_dim = 128};
  attention.core = core;
  attention.backward = backward;
  return attention;
}

}  // namespace

TEST_CASE("[M450] a library runs at its ratio of the sampled one's rate, each way") {
  cost::Profile profile = compute_bound();
  profile.numbers["attention.triton_ratio"] = exactly(0.5, cost::Factor::attention);
  profile.numbers["attention.triton_backward_ratio"] = exactly(0.25, cost::Factor::attention);
  profile.numbers["attention.flash1_ratio"] = exactly(0.4, cost::Factor::attention);
  const KernelCosts costs(profile, round_gpu(), spec::Precision::bf16);
  const auto slower = [&](AttentionCore core, bool backward) {
    return costs.time(attention_by(core, backward)) /
           costs.time(attention_by(AttentionCore::flash, backward));
  };
  CHECK(slower(AttentionCore::triton, false) == Approx(2).epsilon(kRounding));
  CHECK(slower(AttentionCore::triton, true) == Approx(4).epsilon(kRounding));
  // Backward as forward where the profile does not say; unknown libraries as the sampled one.
  CHECK(slower(AttentionCore::flash1, true) == Approx(2.5).epsilon(kRounding));
  CHECK(slower(AttentionCore::flash2, false) == 1);
}

TEST_CASE("[M451] unaligned products run at their own share of peak, never faster than others") {
  cost::Profile profile = compute_bound();
  const Gemm aligned{.m = 8192, .n = 8192, .k = 8192};
  Gemm unaligned = aligned;
  unaligned.aligned = false;
  const auto ratio = [&] {
    const KernelCosts costs(profile, round_gpu(), spec::Precision::bf16);
    return static_cast<double>(costs.time(unaligned) / costs.time(aligned));
  };
  CHECK(ratio() == 1);
  const double large = profile.number("gemm.efficiency") * profile.number("gemm.scale");
  profile.numbers["gemm.unaligned_efficiency"] = exactly(large / 4, cost::Factor::gemm);
  CHECK(ratio() == Approx(4).epsilon(kRounding));
  profile.numbers["gemm.unaligned_efficiency"] = exactly(1, cost::Factor::gemm);
  CHECK(ratio() == 1);
}
