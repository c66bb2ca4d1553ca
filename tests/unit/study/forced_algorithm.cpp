// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "sim/predict/predict.hpp"
#include "sim/scenario/load.hpp"

using namespace scapesim;
using namespace scapesim::literals;

TEST_CASE(
    "large calls of a forced algorithm run Simple, on links as the profile's large calls do") {
  spec::Cluster cluster = scenario::load_cluster("dgx-h100");
  cluster.gpus = 64;
  const cost::Profile profile = cost::load_profile("h100-sxm", {});
  for (const graph::Algorithm algorithm :
       {graph::Algorithm::ring, graph::Algorithm::tree, graph::Algorithm::hierarchical,
        graph::Algorithm::halving_doubling, graph::Algorithm::nvls_tree}) {
    const CollectiveTime forced =
        predict_collective(graph::CollectiveKind::all_reduce, 1_GiB, cluster, &profile,
                           {.algorithm = algorithm, .protocol = {}});
    INFO(forced.algorithm << " " << forced.protocol << " " << forced.busbw.si());
    CHECK(forced.protocol == "Simple");
    CHECK(forced.busbw > 100_GBps);
  }
}
