// SPDX-License-Identifier: Apache-2.0
// Arithmetic of quantities: what compiles is checked here, what must not is in tests/compile.
#include "sim/base/units.hpp"

#include <catch2/catch.hpp>
#include <cstring>
#include <type_traits>
#include <vector>

#include "sim/base/random.hpp"

namespace scapesim {
namespace {

using namespace literals;

static_assert(400_Gbps == 50_GBps, "bits become bytes exactly");
static_assert(1_GiB > 1_GB && 1_GiB == Bytes(1073741824.0));
static_assert(1000_MB == 1_GB && 1024_MiB == 1_GiB && 1024_KiB == 1_MiB && 1000_KB == 1_MB);
static_assert(1000_GBps == 1_TBps);
static_assert(5_us == Seconds(5e-6) && 1.1_ms == Seconds(1.1e-3) && 3_ns == Seconds(3e-9));
static_assert(1_TFLOP / 1_s == 1_TFLOPps);

static_assert(std::is_same_v<decltype(1_GB / 1_s), BytesPerSecond>);
static_assert(std::is_same_v<decltype(1_GB / 1_GBps), Seconds>);
static_assert(std::is_same_v<decltype(1_GBps * 1_s), Bytes>);
static_assert(std::is_same_v<decltype(Joules(1) / 1_s), Watts>);
static_assert(std::is_same_v<decltype(Dollars(1) / 1_s * 2.0), DollarsPerSecond>);
static_assert(std::is_same_v<decltype(1.0 / (1_s * 1_s) * 1_s * 1_s), Quantity<Dim{}>>);
static_assert(std::is_convertible_v<Quantity<Dim{}>, double>, "a pure number is a double");
static_assert(!std::is_convertible_v<Bytes, double>, "a size is not");
static_assert(!std::is_convertible_v<double, Bytes>, "nor is a number a size");
static_assert(std::is_trivially_copyable_v<Bytes> && sizeof(Bytes) == sizeof(double));

TEST_CASE("100 GB over a 400Gbps link take 2 s") {
  const Seconds time = 100_GB / 400_Gbps;
  REQUIRE(time == 2_s);
}

TEST_CASE("sums, differences, signs and comparisons stay inside one dimension") {
  REQUIRE(3_ms + 4_ms == Seconds(0.007));
  REQUIRE(3_MB - 4_MB == -1_MB);
  REQUIRE(-(2_s) == Seconds(-2));
  REQUIRE(2_GB < 2_GiB);
  Bytes total;
  total += 3_B;
  total -= 1_B;
  total *= 4;
  total /= 2;
  REQUIRE(total == 4_B);
  REQUIRE(2 * 3_B == 3_B * 2);
  REQUIRE(7_B / 2 == Bytes(3.5));
}

TEST_CASE("the ratio of two equal dimensions is a plain number") {
  const double ratio = 3_GB / 2_GB;
  REQUIRE(ratio == 1.5);
}

TEST_CASE("quantities give the same bits as plain doubles") {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const double a = random.uniform(-1e12, 1e12);
    const double b = random.uniform(1, 1e12);
    const double typed = (Bytes(a) / BytesPerSecond(b) + Seconds(b)).si();
    const double plain = a / b + b;
    REQUIRE(std::memcmp(&typed, &plain, sizeof plain) == 0);
  }
}

}  // namespace
}  // namespace scapesim
