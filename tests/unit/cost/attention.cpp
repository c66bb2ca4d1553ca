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

KernelCosts round_costs(Precision precision = Precision::bf16) {
  return KernelCosts(round_profile(), round_gpu(), precision);
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
  cost::Profile profile = round_profile();
  set(profile, "hbm.launch_s", 1e-3);
  const Attention attention = attention_of(64, 1024);
  const KernelCosts with(profile, round_gpu(), Precision::bf16);
  CHECK((with.time(attention) - round_costs().time(attention)).si() ==
        Approx(1e-3).epsilon(1e-9));  // difference of two sums near 1e-3
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
