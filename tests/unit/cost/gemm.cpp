// SPDX-License-Identifier: Apache-2.0
// [M10] Time of a matrix product: tiles, waves, the fixed cost of a tile, and the memory roof.
#include <catch2/catch.hpp>

#include "sim/base/random.hpp"
#include "sim/cost/kernels.hpp"
#include "tests/support/profile.hpp"

using namespace scapesim;
using namespace scapesim::test;
using cost::Gemm;
using cost::KernelCosts;
using spec::Precision;

namespace {

constexpr double kRate = 0.5e15;  // gemm.efficiency x peak of the round profile
constexpr int kMultiprocessors = 100;
// A handful of multiplications and divisions in double precision.
constexpr double kRounding = 1e-12;

KernelCosts costs_of(const cost::Profile& profile, Precision precision = Precision::bf16) {
  return KernelCosts(profile, round_gpu(), precision);
}

/// The large tile only, and memory so fast that arithmetic decides.
cost::Profile one_tile_profile() {
  cost::Profile profile = round_profile();
  set(profile, "gemm.small_tile_efficiency", 0.1);
  set(profile, "hbm.bandwidth_Bps", 1e14);
  return profile;
}

Gemm random_gemm(Random& random) {
  const auto size = [&] { return static_cast<std::int64_t>(1 + random.below(20'000)); };
  return {.m = size(), .n = size(), .k = size(), .accumulate_fp32 = random.below(2) == 1};
}

double memory_bytes(const Gemm& gemm, double element, double output) {
  const auto m = static_cast<double>(gemm.m), n = static_cast<double>(gemm.n);
  const auto k = static_cast<double>(gemm.k);
  return (m * k + n * k) * element + m * n * output;
}

}  // namespace

TEST_CASE("[M10] a matrix product is never faster than arithmetic or memory allow") {
  const KernelCosts costs = costs_of(round_profile());
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const Gemm gemm = random_gemm(random);
    INFO(gemm.m << " x " << gemm.n << " x " << gemm.k);
    const double time = costs.time(gemm).si();
    CHECK(time >= cost::flops_of(gemm).si() / kRate * (1 - kRounding));
    CHECK(time >= memory_bytes(gemm, 2, gemm.accumulate_fp32 ? 8 : 2) / 1e12 * (1 - kRounding));
  }
}

TEST_CASE("[M10] a larger matrix product is never faster, in any of its sizes") {
  cost::Profile profile = round_profile();
  set(profile, "gemm.k_half_B", 500);
  const KernelCosts costs = costs_of(profile);
  Random random(2);
  for (int i = 0; i < 2000; ++i) {
    const Gemm gemm = random_gemm(random);
    const auto more = static_cast<std::int64_t>(1 + random.below(300));
    INFO(gemm.m << " x " << gemm.n << " x " << gemm.k << ", " << more << " more");
    const Seconds time = costs.time(gemm);
    Gemm larger = gemm;
    larger.m += more;
    CHECK(costs.time(larger) >= time);
    larger = gemm;
    larger.n += more;
    CHECK(costs.time(larger) >= time);
    larger = gemm;
    larger.k += more;
    CHECK(costs.time(larger) >= time);
  }
}

TEST_CASE("[M10] one tile more than a full wave costs a whole wave") {
  const KernelCosts costs = costs_of(one_tile_profile());
  const std::int64_t k = 4096;
  const double wave = 2.0 * kMultiprocessors * 128 * 256 * static_cast<double>(k) / kRate;
  const std::int64_t full = std::int64_t{256} * kMultiprocessors;
  CHECK(costs.time({.m = 128, .n = full, .k = k}).si() == Approx(wave).epsilon(kRounding));
  CHECK(costs.time({.m = 128, .n = full + 1, .k = k}).si() == Approx(2 * wave).epsilon(kRounding));
  CHECK(costs.time({.m = 128, .n = 2 * full, .k = k}).si() == Approx(2 * wave).epsilon(kRounding));
  CHECK(costs.time({.m = 1, .n = 1, .k = k}).si() == Approx(wave).epsilon(kRounding));
}

TEST_CASE("[M10] tiles may lie either way: a product and its transpose take the same time") {
  const KernelCosts costs = costs_of(one_tile_profile());
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    const Gemm gemm = random_gemm(random);
    const Gemm transpose{
        .m = gemm.n, .n = gemm.m, .k = gemm.k, .accumulate_fp32 = gemm.accumulate_fp32};
    CHECK(costs.time(gemm).si() == Approx(costs.time(transpose).si()).epsilon(kRounding));
  }
}

TEST_CASE("[M10] the half tile is taken where the large one would be half empty") {
  cost::Profile profile = round_profile();
  set(profile, "hbm.bandwidth_Bps", 1e14);
  const std::int64_t k = 4096;
  const double large_wave = 2.0 * kMultiprocessors * 128 * 256 * static_cast<double>(k) / kRate;
  CHECK(costs_of(profile).time({.m = 128, .n = 128, .k = k}).si() ==
        Approx(large_wave / 2 / 0.8).epsilon(kRounding));
}

TEST_CASE("[M10] a tile's ends cost as much as k_half bytes of its loop") {
  cost::Profile profile = one_tile_profile();
  const Gemm gemm{.m = 128, .n = 256, .k = 1000};
  const double without = costs_of(profile).time(gemm).si();
  set(profile, "gemm.k_half_B", 2 * 1000);  // as many bytes as this loop has in bf16
  CHECK(costs_of(profile).time(gemm).si() == Approx(2 * without).epsilon(kRounding));
  const double fp8_without = without / 2;  // twice the peak
  CHECK(costs_of(profile, Precision::fp8).time(gemm).si() ==
        Approx(3 * fp8_without).epsilon(kRounding));  // twice the loop's bytes
}

TEST_CASE("[M10] very large products reach efficiency x peak") {
  cost::Profile profile = round_profile();
  set(profile, "gemm.k_half_B", 500);
  set(profile, "hbm.launch_s", 5e-6);
  const KernelCosts costs = costs_of(profile);
  double last = 0;
  for (std::int64_t size = 1024; size <= 131'072; size *= 2) {
    const Gemm gemm{.m = size, .n = size, .k = size};
    const double rate = cost::flops_of(gemm).si() / costs.time(gemm).si();
    CHECK(rate > last);
    CHECK(rate < kRate);
    last = rate;
  }
  // Left over: 500 B of 262,144 B of k, and a part of the last of 5,243 waves.
  CHECK(last > 0.997 * kRate);
}

TEST_CASE("[M10] a thin product takes its memory traffic and a launch") {
  cost::Profile profile = round_profile();
  set(profile, "hbm.launch_s", 3e-6);
  const Gemm thin{.m = 25'600, .n = 25'600, .k = 1};
  Gemm added = thin;
  added.accumulate_fp32 = true;
  const auto time = [&](const Gemm& gemm, Precision precision) {
    return costs_of(profile, precision).time(gemm).si();
  };
  const auto roof = [&](double element, double output) {
    return Approx(memory_bytes(thin, element, output) / 1e12 + 3e-6).epsilon(kRounding);
  };
  CHECK(time(thin, Precision::bf16) == roof(2, 2));
  CHECK(time(thin, Precision::fp8) == roof(1, 2));  // the result stays bf16
  CHECK(time(thin, Precision::fp32) == roof(4, 4));
  CHECK(time(added, Precision::bf16) == roof(2, 8));  // fp32 read and written
}

TEST_CASE("[M10] groups share their waves: eight products of 25 tiles take two waves of 100") {
  const KernelCosts costs = costs_of(one_tile_profile());
  const Gemm one{.m = 128, .n = 256 * 25, .k = 4096};
  Gemm eight = one;
  eight.groups = 8;
  CHECK(costs.time(eight).si() == Approx(2 * costs.time(one).si()).epsilon(kRounding));
}

TEST_CASE("[M10] a wave share of 0 charges the waves that are filled, never less than one") {
  cost::Profile profile = one_tile_profile();
  profile.numbers["gemm.wave_share"] = exactly(0, cost::Factor::gemm);
  const KernelCosts smooth = costs_of(profile);
  const std::int64_t k = 4096;
  const double wave = 2.0 * kMultiprocessors * 128 * 256 * static_cast<double>(k) / kRate;
  CHECK(smooth.time({.m = 128, .n = 256 * 150, .k = k}).si() ==
        Approx(1.5 * wave).epsilon(kRounding));
  CHECK(smooth.time({.m = 128, .n = 256 * 50, .k = k}).si() == Approx(wave).epsilon(kRounding));
  set(profile, "gemm.wave_share", 0.5);
  CHECK(costs_of(profile).time({.m = 128, .n = 256 * 150, .k = k}).si() ==
        Approx(1.75 * wave).epsilon(kRounding));
}

TEST_CASE("[M10] adding to an fp32 accumulator has a k_half of its own") {
  cost::Profile profile = one_tile_profile();
  Gemm gemm{.m = 128, .n = 256, .k = 1000};
  const double without = costs_of(profile).time(gemm).si();
  profile.numbers["gemm.k_half_accumulate_B"] = exactly(2 * 1000, cost::Factor::gemm);
  CHECK(costs_of(profile).time(gemm).si() == Approx(without).epsilon(kRounding));
  gemm.accumulate_fp32 = true;
  CHECK(costs_of(profile).time(gemm).si() == Approx(2 * without).epsilon(kRounding));
}

TEST_CASE("[M172] every further group is a launch: its own, or that of any kernel") {
  cost::Profile profile = one_tile_profile();
  const Gemm grouped{.m = 128, .n = 256, .k = 4096, .groups = 9};
  const double without = costs_of(profile).time(grouped).si();
  set(profile, "hbm.launch_s", 1e-3);
  CHECK(costs_of(profile).time(grouped).si() == Approx(without + 9e-3).epsilon(kRounding));
  profile.numbers["gemm.group_launch_s"] = exactly(2e-3, cost::Factor::gemm);
  CHECK(costs_of(profile).time(grouped).si() ==
        Approx(without + 1e-3 + 8 * 2e-3).epsilon(kRounding));
}

TEST_CASE("[M171] narrow formats fall back on the next wider efficiency that is known") {
  cost::Profile profile = one_tile_profile();
  const Gemm gemm{.m = 12'800, .n = 25'600, .k = 8192};
  const auto time = [&](Precision precision) { return costs_of(profile, precision).time(gemm); };
  const Seconds fp8 = time(Precision::fp8);
  CHECK(time(Precision::mxfp8) == fp8);
  profile.numbers["gemm.efficiency_fp8"] = exactly(0.25, cost::Factor::gemm);
  CHECK(time(Precision::mxfp8).si() == Approx(2 * fp8.si()).epsilon(kRounding));
  profile.numbers["gemm.efficiency_mxfp8"] = exactly(0.125, cost::Factor::gemm);
  CHECK(time(Precision::mxfp8).si() == Approx(4 * fp8.si()).epsilon(kRounding));
  CHECK(time(Precision::fp8).si() == Approx(2 * fp8.si()).epsilon(kRounding));
  const Seconds fp32 = time(Precision::fp32);
  profile.numbers["gemm.efficiency_tf32"] = exactly(0.25, cost::Factor::gemm);
  CHECK(time(Precision::fp32).si() == Approx(2 * fp32.si()).epsilon(kRounding));
}

TEST_CASE("GEMMs run at the peak of their precision, fp8 with an efficiency of its own if known") {
  cost::Profile profile = one_tile_profile();
  const Gemm gemm{.m = 12'800, .n = 25'600, .k = 8192};
  const double bf16 = costs_of(profile).time(gemm).si();
  CHECK(costs_of(profile, Precision::fp16).time(gemm).si() == bf16);
  CHECK(costs_of(profile, Precision::fp32).time(gemm).si() == Approx(2 * bf16).epsilon(kRounding));
  CHECK(costs_of(profile, Precision::fp8).time(gemm).si() == Approx(bf16 / 2).epsilon(kRounding));
  profile.numbers["gemm.efficiency_fp8"] = exactly(0.25, cost::Factor::gemm);
  CHECK(costs_of(profile, Precision::fp8).time(gemm).si() == Approx(bf16).epsilon(kRounding));
  CHECK(costs_of(profile).time(gemm).si() == bf16);
}

TEST_CASE("the machine's scale applies to every GEMM") {
  cost::Profile profile = one_tile_profile();
  const Gemm gemm{.m = 12'800, .n = 25'600, .k = 8192};
  const double before = costs_of(profile).time(gemm).si();
  set(profile, "gemm.scale", 0.8);
  CHECK(costs_of(profile).time(gemm).si() == Approx(before / 0.8).epsilon(kRounding));
}

TEST_CASE("a part without fp8 units has no fp8 peak") {
  spec::Gpu gpu = round_gpu();
  gpu.peak_fp8 = FlopsPerSecond(0);
  CHECK(cost::peak(gpu, Precision::fp8) == FlopsPerSecond(0));
  CHECK(cost::peak(gpu, Precision::bf16) == gpu.peak_bf16);
  CHECK(cost::peak(gpu, Precision::fp16) == gpu.peak_bf16);
  CHECK(cost::peak(gpu, Precision::fp32) == gpu.peak_tf32);
}
