// SPDX-License-Identifier: Apache-2.0
#include "topologies/xml_nesting.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace scapesim;

TEST_CASE("nesting counts elements that are open at once") {
  CHECK(topology::xml_nesting("<?xml?><a><b/><c><d x='1'/></c></a>") == 2);
  CHECK(topology::xml_nesting("<a></a><b></b>") == 1);
  CHECK(topology::xml_nesting("no xml <") == 0);
  std::string deep;
  for (int i = 0; i < 50'000; ++i) deep += "<system>";
  CHECK(topology::xml_nesting(deep) == 50'000);
}
