// SPDX-License-Identifier: Apache-2.0
// What a table of a collective says of the numbers behind it.
#include <algorithm>
#include <catch2/catch.hpp>

#include "sim/study/collective.hpp"
#include "tests/support/profile.hpp"

using namespace scapesim;
using namespace scapesim::literals;

namespace {

spec::Cluster cluster_of(int gpus) {
  spec::Cluster cluster;
  cluster.nodes = cluster.gpus = gpus;
  cluster.nic_bandwidth = 50_GBps;
  return cluster;
}

std::vector<result::Warning> warnings(const cost::Profile& profile, Bytes size) {
  return study::collective_table(graph::CollectiveKind::all_reduce, {{size}}, cluster_of(8),
                                 &profile)
      .warnings;
}

}  // namespace

TEST_CASE("a table that rests on assumed numbers names them") {
  cost::Profile profile = test::round_profile();
  CHECK(warnings(profile, 1_MiB).empty());
  profile.numbers.at("network.efficiency").origin.kind = cost::Provenance::assumed;
  const auto list = warnings(profile, 1_MiB);
  REQUIRE(list.size() == 1);
  CHECK(list[0].code == "assumed");
  CHECK(list[0].message.find("network.efficiency") != std::string::npos);
  CHECK(list[0].message.find("network.hop_latency_s") == std::string::npos);
}

TEST_CASE("pieces beyond a mode's curve of efficiency are told, with how far") {
  cost::Profile profile = test::round_profile();
  profile.curves["network.between.ring_simple.efficiency"] = {
      .x = "piece_B",
      .y = "share",
      .points = {{1e3, 0.5}, {1 << 20, 0.9}},
      .factor = cost::Factor::network,
      .origin = {cost::Provenance::measured, "made up for a test"}};
  CHECK(warnings(profile, 8_MiB).empty());  // a ring of 8 passes 1 MiB on
  const auto list = warnings(profile, 32_MiB);
  REQUIRE(list.size() == 1);
  CHECK(list[0].code == "extrapolation");
  CHECK(list[0].octaves == Approx(2));
}
