// SPDX-License-Identifier: Apache-2.0
// Points of a sweep as lines of results.jsonl (schema scapesim.sweep/1) and rows of results.csv.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/study/sweep.hpp"
#include "sim/study/sweep_folder.hpp"

namespace scapesim::reports {

/// One JSON object without a line break:
///
///   {"schema": "scapesim.sweep/1", "point": 12, "series": "AdamS" (with variants only),
///    "axes": {"cluster.gpus": 64, ...}, "status": "done" | "infeasible" | "refused",
///    "reason", "hint" (null when done), "scenario": {"name", "hash"}, "gpus",
///    "step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_s", "mfu",
///    "breakdown_s": {as in run}, "overlap_fraction", "memory_B": {"total", "context", "capacity"},
///    "energy_J", "cost_usd", "warnings": [codes], "calibration", "weakest_provenance", "version"}
///
/// What a point that is not done does not have is null. An infeasible one has its memory.
std::string sweep_line(const study::SweepPoint& point);

/// What the lines of a sweep say together.
struct SweepSummary {
  std::uint64_t done = 0, infeasible = 0, refused = 0;
  struct Best {
    std::uint64_t point = 0;
    double value = 0;
    std::string where;  ///< "AdamS, cluster.gpus=64, parallelism.tp=2"
  };
  std::optional<Best> shortest_step;  ///< seconds; the first of equals
  std::optional<Best> most_tokens;    ///< per second
  std::string first_refusal;
};

/// The table of such lines: point, series, one column per axis named by its key, then the numbers
/// by their keys (breakdown_s.compute as compute_s, memory_B.total as memory_total_B). Every row
/// is counted in `summary`, which outlives the form.
study::CsvForm sweep_csv(SweepSummary& summary);

std::string sweep_text(const std::string& name, const SweepSummary& summary);
std::string sweep_json(const std::string& name, const SweepSummary& summary);

}  // namespace scapesim::reports
