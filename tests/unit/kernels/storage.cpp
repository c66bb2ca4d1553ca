// SPDX-License-Identifier: Apache-2.0
// bfloat16 and block codes against double.
#include <catch2/catch.hpp>

#include "kernels/reference/bf16.hpp"
#include "kernels/reference/quantisation.hpp"
#include "tests/unit/kernels/support.hpp"

using namespace scapesim;
using namespace scapesim::test;

TEST_CASE("every bf16 comes back from a float as it was") {
  for (std::uint32_t bits = 0; bits <= 0xffffU; ++bits) {
    const Bf16 stored{static_cast<std::uint16_t>(bits)};
    const float value = to_float(stored);
    if (std::isnan(value))
      REQUIRE(std::isnan(to_float(to_bf16(value))));
    else
      REQUIRE(to_bf16(value) == stored);
  }
}

TEST_CASE("a float rounds to the nearer bf16, between two to the even one") {
  Random random(1);
  for (int round = 0; round < 100000; ++round) {
    const float value = float_of(static_cast<std::uint32_t>(random.bits()));
    if (!std::isfinite(value)) continue;
    const std::uint32_t low = bits_of(value) & 0xffff0000U;  // towards 0
    const float below = float_of(low);
    const float above = float_of(low + 0x10000U);
    if (!std::isfinite(above)) continue;
    const double down = std::abs(static_cast<double>(value) - static_cast<double>(below));
    const double up = std::abs(static_cast<double>(above) - static_cast<double>(value));
    const bool even = (low >> 16U) % 2 == 0;
    const float expected = down < up || (down == up && even) ? below : above;
    REQUIRE(bits_of(to_float(to_bf16(value))) == bits_of(expected));
  }
  CHECK(to_bf16(float_of(0x3f808000U)).bits == 0x3f80);  // half way, even below
  CHECK(to_bf16(float_of(0x3f818000U)).bits == 0x3f82);  // half way, even above
  CHECK(to_bf16(std::numeric_limits<float>::max()).bits == 0x7f80);
  CHECK(
      std::isnan(to_float(to_bf16(float_of(0x7f800001U)))));  // its bits are all in the lower half
}

TEST_CASE("a code is within half a scale of its value, and the largest has the largest code") {
  Random random(2);
  for (const int largest : {7, 127}) {
    const auto values = random_values<float>(1000, random);
    const Quantised it = quantised(values, 256, largest);
    REQUIRE(it.scales.size() == 4);
    for (std::size_t block = 0; block < 4; ++block) {
      int top = 0;
      for (std::size_t i = 256 * block; i < std::min<std::size_t>(1000, 256 * (block + 1)); ++i) {
        const double exact =
            static_cast<double>(it.codes[i]) * static_cast<double>(it.scales[block]);
        // Half a code, and the roundings of scale and quotient.
        CHECK(std::abs(exact - static_cast<double>(values[i])) <=
              static_cast<double>(it.scales[block]) * (0.5 + 1e-4));
        top = std::max(top, std::abs(it.codes[i]));
      }
      CHECK(top == largest);
    }
  }
}

TEST_CASE("zeros have scale and codes 0, and tiny numbers no code beyond the largest") {
  const Quantised zeros = quantised(std::vector<float>(5), 256, 7);
  CHECK(zeros.scales == std::vector<float>{0});
  CHECK(zeros.codes == std::vector<int>(5));
  const std::vector<float> tiny{1e-44F, -3e-45F, 1e-45F};
  for (const int code : quantised(tiny, 256, 7).codes) CHECK(std::abs(code) <= 7);
}

TEST_CASE("the mean of contributions is their values' mean") {
  const std::vector<float> a{1, -2, 4};
  const std::vector<float> b{3, 2, -4};
  const std::vector<Quantised> both{quantised(a, 256, 127), quantised(b, 256, 127)};
  const auto mean = dequantised_sum(both, 256, 0.5F);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(mean[i] == Approx((a[i] + b[i]) / 2).margin(4.0 / 127));  // half a code of each
}
