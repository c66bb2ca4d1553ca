// SPDX-License-Identifier: Apache-2.0
// StepGraph + Timeline -> numbers: step time, where it goes, what communication costs.
// Everything refers to the slowest rank class and to the last `period` steps, per step.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/engine/timeline.hpp"
#include "sim/graph/graph.hpp"
#include "sim/result/result.hpp"

namespace scapesim::result {

struct StepMetrics {
  Seconds step_time;
  graph::RankClassId slowest;
  Breakdown breakdown;  ///< sums to step_time
  std::vector<Communication> communication;
  std::optional<double> overlap_fraction;  ///< none when nothing is communicated
  std::vector<Term> terms;                 ///< sum to step_time, longest first
};

/// The timeline holds every operation of every class in every step, at least `period` steps.
StepMetrics metrics_of(const graph::StepGraph& graph, const engine::Timeline& timeline);

/// Mean length of the last `period` steps.
Seconds step_time(const engine::Timeline& timeline, int period);
/// Of a training step, where a step of the graph stands for several.
Seconds step_time(const graph::StepGraph& graph, const engine::Timeline& timeline);

/// Operation name without what tells equal operations apart: a number in brackets or at the end
/// ("gradient all-reduce 3", "bucket[2]") and everything after a colon.
std::string term_name(std::string_view operation);

/// Bus bandwidth over algorithm bandwidth as nccl-tests defines it.
double busbw_factor(graph::CollectiveKind kind, int group_size);

/// Share of the dense peak that the model's own arithmetic reaches.
double model_flops_utilisation(Flops model_flops, Seconds step_time, int gpus,
                               FlopsPerSecond peak_per_gpu);

struct Interval {
  Seconds low;
  Seconds high;
};
/// Central `level` share of the drawn step times, widened where needed to hold `predicted`.
Interval interval_of(std::vector<Seconds> drawn, Seconds predicted, double level);

}  // namespace scapesim::result
