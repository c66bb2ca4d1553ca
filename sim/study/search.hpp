// SPDX-License-Identifier: Apache-2.0
// The best legal splits of a model over GPUs, and why the others lose.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan/step_bound.hpp"
#include "sim/study/scale.hpp"
#include "sim/study/splits.hpp"

namespace scapesim::study {

/// What the best has least of: step time, memory of the fullest GPU, cost of a step.
enum class Objective { time, memory, cost };
inline std::span<const Named<Objective>> names_of(Objective*) {
  using enum Objective;
  static constexpr Named<Objective> kRows[] = {{time, "time"}, {memory, "memory"}, {cost, "cost"}};
  return kRows;
}

struct SearchOptions {
  std::vector<int> gpus;  ///< counts to choose from; empty: the scenario's own
  Objective objective = Objective::time;
  std::size_t top = 5;
  Held held = {};  ///< keys that stay as the scenario has them
  int jobs = 1;    ///< threads; the result does not depend on them
  PredictOptions predict = {.driver = engine::Driver::standalone};  ///< of the best
};

/// A simulated split among the best.
struct Found {
  Split split;
  spec::Scenario scenario;
  result::Run run;
};

/// Why splits are not among the best.
enum class Lost {
  breaks_rule,   ///< the scenario's rules refuse it
  does_not_fit,  ///< in memory
  behind         ///< it fits, and is worse
};
inline std::span<const Named<Lost>> names_of(Lost*) {
  using enum Lost;
  static constexpr Named<Lost> kRows[] = {
      {breaks_rule, "breaks a rule"}, {does_not_fit, "does not fit"}, {behind, "behind the best"}};
  return kRows;
}

/// Splits that lose for the same reason.
struct Losers {
  Lost lost = Lost::behind;
  std::string reason;  ///< key of the rule, largest term of the memory, or what costs most more
  std::int64_t splits = 0;
  struct Nearest {
    Split split;
    Seconds time;            ///< of a step
    bool simulated = false;  ///< else a lower bound
  };
  std::optional<Nearest> nearest = {};  ///< behind: the fastest of them
  struct Smallest {
    Split split;
    Bytes need;  ///< of GPU memory
  };
  std::optional<Smallest> smallest = {};  ///< does not fit: that needs least
};

struct SearchResult {
  Objective objective = Objective::time;
  Split own = {};  ///< the scenario's
  std::vector<Found> best = {};
  std::vector<Losers> losers = {};  ///< by Lost, most splits first
  std::int64_t considered = 0;
  std::int64_t legal = 0;
  std::int64_t fitting = 0;
  std::int64_t simulated = 0;
};

/// Considers every split of every count: tensor, pipeline, context, expert and data parallelism,
/// sequence parallelism, overlap of tensor-parallel collectives, micro-batch, recomputation and of
/// how many layers, schedule with chunks, sharding. A split is left unsimulated only where it
/// breaks a rule, does not fit, or where a lower bound [M420] of its step is no better than the
/// worst of the best [M422]. Throws InputError where --gpus or the objective cannot be, and where
/// the bound is none: with jitter, which may draw fast ranks, and with other GPUs.
SearchResult search(const Series& series, const SearchOptions& options);

}  // namespace scapesim::study
