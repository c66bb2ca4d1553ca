// SPDX-License-Identifier: Apache-2.0
// One collective alone on a cluster, over sizes, and what a reader must know of it.
#pragma once

#include <span>
#include <vector>

#include "sim/predict/predict.hpp"

namespace scapesim::study {

struct CollectiveTable {
  std::vector<CollectiveTime> rows;
  std::vector<result::Warning> warnings;
};

/// Without a profile the raw links and the fabric's latency count.
CollectiveTable collective_table(graph::CollectiveKind kind, std::span<const Bytes> sizes,
                                 const spec::Cluster& cluster, const cost::Profile* profile,
                                 const CollectiveOptions& options = {});

}  // namespace scapesim::study
