// SPDX-License-Identifier: Apache-2.0
// [M12] attention, [M13] memory-bound passes, [M14] sampled curves.
#include <catch2/catch.hpp>
#include <cmath>

#include "sim/cost/kernels.hpp"
#include "tests/support/profile.hpp"

using namespace scapesim;
using namespace scapesim::test;
using cost::Attention;
using cost::KernelCosts;
using spec::Precision;

namespace {

// A few multiplications, divisions and a power in double precision.
constexpr double kRounding = 1e-12;

/// Memory so fast that arithmetic decides.
cost::Profile compute_bound_profile() {
  cost::Profile profile = round_profile();
  set(profile, "hbm.bandwidth_Bps", 1e14);
  return profile;
}

KernelCosts round_costs(Precision precision = Precision::bf16) {
  return KernelCosts(compute_bound_profile(), round_gpu(), precision);
}

Attention attention_of(std::int64_t head_dim, std::int64_t sequence) {
  return {.batch = 2, .sequence = sequence, .heads = 8, .head_dim = head_dim};
}

/// Share of the bf16 peak that the time amounts to.
double share(const KernelCosts& costs, const Attention& attention) {
  return cost::flops_of(attention).si() / costs.time(attention).si() / 1e15;
}

}  // namespace

TEST_CASE("[M12] attention takes the sampled share of peak at every sampled point") {
  const KernelCosts costs = round_costs();
  const double sampled[3][2] = {{0.2, 0.4}, {0.4, 0.6}, {0.5, 0.5}};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::int64_t head_dim = cost::kSampledHeadDims[i];
    CHECK(share(costs, attention_of(head_dim, 1024)) == Approx(sampled[i][0]).epsilon(kRounding));
    CHECK(share(costs, attention_of(head_dim, 4096)) == Approx(sampled[i][1]).epsilon(kRounding));
  }
}

TEST_CASE("[M12] between sampled head dimensions and lengths the share is a geometric mean") {
  const KernelCosts costs = round_costs();
  CHECK(share(costs, attention_of(64, 2048)) == Approx(std::sqrt(0.2 * 0.4)).epsilon(kRounding));
  const double towards_128 = std::log2(96.0 / 64);
  CHECK(share(costs, attention_of(96, 1024)) ==
        Approx(0.2 * std::pow(0.4 / 0.2, towards_128)).epsilon(kRounding));
  const double towards_256 = std::log2(160.0 / 128);
  CHECK(share(costs, attention_of(160, 4096)) ==
        Approx(0.6 * std::pow(0.5 / 0.6, towards_256)).epsilon(kRounding));
}

TEST_CASE("[M12] narrower heads than sampled idle in proportion, wider ones are like the widest") {
  const KernelCosts costs = round_costs();
  CHECK(share(costs, attention_of(32, 1024)) == Approx(0.2 / 2).epsilon(kRounding));
  CHECK(share(costs, attention_of(512, 1024)) == Approx(0.5).epsilon(kRounding));
}

TEST_CASE("[M12] the backward pass runs at its own rate, and in fp32 at the tf32 peak") {
  Attention attention = attention_of(128, 1024);
  const double forward = round_costs().time(attention).si();
  CHECK(round_costs(Precision::fp8).time(attention).si() == forward);
  CHECK(round_costs(Precision::fp32).time(attention).si() ==
        Approx(2 * forward).epsilon(kRounding));
  attention.backward = true;
  CHECK(round_costs().time(attention).si() == Approx(2.5 * forward / 0.8).epsilon(kRounding));
}

TEST_CASE("[M12] attention is a kernel launch more than its arithmetic") {
  cost::Profile profile = compute_bound_profile();
  set(profile, "hbm.launch_s", 1e-3);
  const Attention attention = attention_of(64, 1024);
  const KernelCosts with(profile, round_gpu(), Precision::bf16);
  CHECK((with.time(attention) - round_costs().time(attention)).si() ==
        Approx(1e-3).epsilon(1e-9));  // difference of two sums near 1e-3
}

TEST_CASE("[M173] few blocks of queries leave multiprocessors idle") {
  cost::Profile profile = compute_bound_profile();
  profile.numbers["attention.half_waves"] = exactly(2, cost::Factor::attention);
  const KernelCosts costs(profile, round_gpu(), Precision::bf16);
  // 100 multiprocessors; 25 heads of 8 blocks are two waves: half of the rate.
  const Attention two_waves{.batch = 1, .sequence = 1024, .heads = 25, .head_dim = 128};
  CHECK(share(costs, two_waves) == Approx(0.4 / 2).epsilon(kRounding));
  Attention backward = two_waves;  // has a number of its own
  backward.backward = true;
  CHECK(share(costs, backward) == Approx(0.4 * 0.8).epsilon(kRounding));
  profile.numbers["attention.backward_half_waves"] = exactly(6, cost::Factor::attention);
  CHECK(share(KernelCosts(profile, round_gpu(), Precision::bf16), backward) ==
        Approx(0.4 * 0.8 / 4).epsilon(kRounding));
}

TEST_CASE("[M173] without a mask no tile reaches over its edge; a window has two edges") {
  cost::Profile profile = compute_bound_profile();
  profile.numbers["attention.diagonal_tokens"] = exactly(256, cost::Factor::attention);
  const KernelCosts costs(profile, round_gpu(), Precision::bf16);
  Attention attention = attention_of(128, 1024);
  CHECK(share(costs, attention) == Approx(0.4).epsilon(kRounding));  // as sampled, causal
  attention.causal = false;
  CHECK(share(costs, attention) == Approx(0.4 * (1 + 256.0 / 1024)).epsilon(kRounding));
  Attention windowed = attention_of(128, 65'536);
  windowed.window = 1024;
  const double pairs = 1024.0 * 65'536 - 1024.0 * 1024 / 2;
  CHECK(share(costs, windowed) ==
        Approx(0.4 * (1 + 256.0 / 1024) * pairs / (pairs + 256.0 * 65'536)).epsilon(kRounding));
}

TEST_CASE("[M12] backward curves replace the ratio where every width has one") {
  cost::Profile profile = compute_bound_profile();
  Attention attention = attention_of(128, 1024);
  attention.backward = true;
  for (const char* width : {"64", "128"})
    profile.curves[std::string("attention.backward.d") + width] = attention_curve(0.1, 0.1);
  const auto costs = [&] { return KernelCosts(profile, round_gpu(), Precision::bf16); };
  CHECK(share(costs(), attention) == Approx(0.4 * 0.8).epsilon(kRounding));
  profile.curves["attention.backward.d256"] = attention_curve(0.1, 0.1);
  CHECK(share(costs(), attention) == Approx(0.1).epsilon(kRounding));
}

TEST_CASE("[M12] values narrower than keys count with their mean width") {
  const Attention narrow{
      .batch = 1, .sequence = 1024, .heads = 1, .head_dim = 192, .value_head_dim = 64};
  CHECK(share(round_costs(), narrow) ==
        Approx(share(round_costs(), attention_of(128, 1024))).epsilon(kRounding));
}

TEST_CASE("[M12] a window of few keys is bound by the memory that it reads and writes") {
  const Attention attention{
      .batch = 1, .sequence = 65'536, .heads = 8, .head_dim = 128, .kv_heads = 2, .window = 16};
  const KernelCosts costs(round_profile(), round_gpu(), Precision::bf16);
  // Queries and outputs of 8 heads, keys and values of 2, in bf16, at 1 TB/s.
  const double bytes = 2.0 * 65'536 * 256 * (8 + 2);
  CHECK(costs.time(attention).si() == Approx(bytes / 1e12).epsilon(kRounding));
  Attention backward = attention;
  backward.backward = true;
  CHECK(costs.time(backward).si() == Approx(2 * bytes / 1e12).epsilon(kRounding));
}

TEST_CASE("[M13] a pass takes its traffic over HBM bandwidth and a launch per kernel") {
  cost::Profile profile = round_profile();
  set(profile, "hbm.launch_s", 2e-6);
  const KernelCosts costs(profile, round_gpu(), Precision::bf16);
  CHECK(costs.time({.traffic = Bytes(5e9), .launches = 3}).si() ==
        Approx(5e-3 + 3 * 2e-6).epsilon(kRounding));
  CHECK(costs.time({.traffic = Bytes(0), .launches = 0}) == Seconds(0));
}

TEST_CASE("[M14] a curve is exact at its points, a power law between them and flat outside") {
  const cost::Curve curve{.x = "size_B",
                          .y = "rate_Bps",
                          .points = {{1, 10}, {100, 1000}, {10'000, 1000}, {1e6, 1}},
                          .origin = {}};
  for (const auto& [x, y] : curve.points) CHECK(curve.at(x) == Approx(y).epsilon(1e-15));
  CHECK(curve.at(10) == Approx(100).epsilon(kRounding));                 // y = 10 x
  CHECK(curve.at(1000) == Approx(1000).epsilon(kRounding));              // constant
  CHECK(curve.at(1e5) == Approx(std::sqrt(1000.0)).epsilon(kRounding));  // halfway in logarithms
  CHECK(curve.at(0.5) == 10);
  CHECK(curve.at(1e9) == 1);
}

TEST_CASE("a curve covers its first and last point, and nothing outside") {
  const cost::Curve curve = attention_curve(0.3, 0.5);
  CHECK(curve.covers(1024));
  CHECK(curve.covers(2000));
  CHECK(curve.covers(4096));
  CHECK_FALSE(curve.covers(1023));
  CHECK_FALSE(curve.covers(4097));
  CHECK_FALSE(cost::Curve{}.covers(1));
}

TEST_CASE("a curve of one point is that value everywhere") {
  cost::Curve curve = attention_curve(0.3, 0.5);
  curve.points.resize(1);
  CHECK(curve.at(1) == 0.3);
  CHECK(curve.at(1024) == 0.3);
  CHECK(curve.at(1e6) == 0.3);
}
