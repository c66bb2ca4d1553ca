// SPDX-License-Identifier: Apache-2.0
// The main path and the library's entry: scenario + calibration -> prediction.
#pragma once

#include "sim/cost/profile.hpp"
#include "sim/engine/replay.hpp"
#include "sim/result/result.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim {

struct PredictOptions {
  engine::Driver driver = engine::Driver::simgrid;
  int interval_draws = 16;  ///< 0: no interval
};

/// A prediction and, for traces, what it was read from (empty when infeasible).
struct Prediction {
  result::Outcome outcome;
  graph::StepGraph graph;
  engine::Timeline timeline;
};

/// Predicts one training step. The scenario has no violations (spec::violations). Pure: the same
/// input gives the same bytes.
Prediction predict(const spec::Scenario& scenario, const cost::Profile& profile,
                   const PredictOptions& options = {});

/// One row of a collective table.
struct CollectiveTime {
  Bytes size;
  Seconds time;
  BytesPerSecond algbw;
  BytesPerSecond busbw;
  std::string algorithm;
  std::string protocol;
};

/// One collective alone on the cluster's first `cluster.gpus` GPUs; without a profile the raw links
/// and the fabric's latency count.
CollectiveTime predict_collective(graph::CollectiveKind kind, Bytes size,
                                  const spec::Cluster& cluster, const cost::Profile* profile);

}  // namespace scapesim
