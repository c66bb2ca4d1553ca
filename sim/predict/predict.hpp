// SPDX-License-Identifier: Apache-2.0
// The main path and the library's entry: scenario + calibration -> prediction.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/named.hpp"
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

/// How closely a collective is simulated: one rate per phase, a SimGrid communication per transfer,
/// or one per chunk.
enum class Fidelity { fluid, flow, chunk };
inline std::span<const Named<Fidelity>> names_of(Fidelity*) {
  using enum Fidelity;
  static constexpr Named<Fidelity> kRows[] = {{fluid, "fluid"}, {flow, "flow"}, {chunk, "chunk"}};
  return kRows;
}

struct CollectiveOptions {
  std::optional<graph::Algorithm> algorithm;  ///< none: the fastest that the profile knows
  std::optional<graph::Protocol> protocol;    ///< none: the fastest
  Fidelity fidelity = Fidelity::fluid;
};

/// One collective alone on the cluster's first `cluster.gpus` GPUs; without a profile the raw links
/// and the fabric's latency count. Throws InputError for an algorithm that cannot run it.
CollectiveTime predict_collective(graph::CollectiveKind kind, Bytes size,
                                  const spec::Cluster& cluster, const cost::Profile* profile,
                                  const CollectiveOptions& options = {});
std::vector<CollectiveTime> predict_collectives(graph::CollectiveKind kind,
                                                std::span<const Bytes> sizes,
                                                const spec::Cluster& cluster,
                                                const cost::Profile* profile,
                                                const CollectiveOptions& options = {});

}  // namespace scapesim
