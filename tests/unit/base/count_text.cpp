// SPDX-License-Identifier: Apache-2.0
#include "sim/base/count_text.hpp"

#include <catch2/catch.hpp>

using scapesim::parse_count;

TEST_CASE("counts have decimal prefixes, are above 0 and at most 1e18") {
  CHECK(parse_count("300B") == 300e9);
  CHECK(parse_count("1.5 T") == 1.5e12);
  CHECK(parse_count("2e12") == 2e12);
  CHECK(parse_count("1e9B") == 1e18);
  for (const char* wrong : {"", "0", "-1M", "B", "1G", "1 T x", "inf", "nan", "1e19", "2e9B"}) {
    INFO(wrong);
    CHECK_FALSE(parse_count(wrong));
  }
}
