// SPDX-License-Identifier: Apache-2.0
// Where ranks and jobs are placed, on a tapered tree: solved by hand.
#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "tests/support/fabrics.hpp"

using namespace scapesim;
using namespace scapesim::test;

namespace {

/// 64 hosts of 50 GB/s in two racks of 32 below 4:1 trunks of 400 GB/s; 1 GB, no latency.
spec::Cluster two_racks() {
  spec::Cluster cluster = fat_tree_cluster(64, 32, 4);
  cluster.fabric.latency = Seconds(0);
  cluster.gpus = 64;
  return cluster;
}

double all_reduce_time(const spec::Cluster& cluster) {
  return predict_collective(graph::CollectiveKind::all_reduce, Bytes(1e9), cluster, nullptr)
      .time.si();
}

}  // namespace

TEST_CASE("a ring through a rack at a time crosses each trunk once, a strided one with every hop") {
  spec::Cluster cluster = two_racks();
  const double bytes = 2 * 63.0 / 64 * 1e9;  // on every hop of the ring
  CHECK(all_reduce_time(cluster) == Approx(bytes / 50e9).epsilon(1e-12));
  cluster.placement = spec::Placement::strided;  // 32 hops up and 32 down through either trunk
  CHECK(all_reduce_time(cluster) == Approx(bytes / (400e9 / 32)).epsilon(1e-12));
}

TEST_CASE("a job of 16 hosts spread over both racks shares the trunks only where it crosses them") {
  spec::Cluster cluster = two_racks();
  cluster.gpus = 16;
  const double bytes = 2 * 15.0 / 16 * 1e9;
  cluster.allocation = spec::Allocation::spread;  // eight in each rack
  CHECK(all_reduce_time(cluster) == Approx(bytes / 50e9).epsilon(1e-12));
  cluster.placement = spec::Placement::strided;  // eight hops up share 400 GB/s: as fast
  CHECK(all_reduce_time(cluster) == Approx(bytes / 50e9).epsilon(1e-12));
  cluster.fabric.taper = 16;  // 100 GB/s
  CHECK(all_reduce_time(cluster) == Approx(bytes / (100e9 / 8)).epsilon(1e-12));
}

TEST_CASE("ranks by rail do not change a ring, which goes node by node") {
  spec::Cluster cluster = with_gpus_per_node(two_racks(), 4, 4);
  cluster.gpus = 256;
  const double packed = all_reduce_time(cluster);
  cluster.placement = spec::Placement::rail;
  CHECK(all_reduce_time(cluster) == packed);
}
