// SPDX-License-Identifier: Apache-2.0
// One collective alone on a cluster, over sizes, and what a reader must know of it.
#pragma once

#include <span>
#include <string>
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

/// A timed call of a log and its prediction.
struct MeasuredCollective {
  Bytes size;
  Seconds time;
  BytesPerSecond busbw;
  Seconds predicted;
  BytesPerSecond predicted_busbw;
  std::string source;
};

/// A table with what it is of.
struct CollectiveStudy {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  std::string cluster;
  int gpus = 0;
  std::string calibration;  ///< empty: raw links
  std::string weakest_provenance;
  CollectiveTable table;
  std::vector<MeasuredCollective> measured;
};

/// The calls of this kind on so many GPUs that logs hold, beside their predictions. Throws
/// InputError for a log that holds none.
std::vector<MeasuredCollective> measured_collectives(std::span<const std::string> logs,
                                                     graph::CollectiveKind kind,
                                                     const spec::Cluster& cluster,
                                                     const cost::Profile* profile,
                                                     const CollectiveOptions& options = {});

}  // namespace scapesim::study
