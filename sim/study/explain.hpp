// SPDX-License-Identifier: Apache-2.0
// A measured step beside its prediction, term by term, with what usually makes such a difference.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calib/observations.hpp"
#include "sim/study/scale.hpp"

namespace scapesim::study {

/// One part of a step. Parts of a log sum to the step; classes of a trace's kernels run beside each
/// other and need not.
struct ExplainedTerm {
  std::string name;
  std::optional<Seconds> predicted;
  std::optional<Seconds> measured;  ///< per step; none: the file does not tell
  std::string cause;  ///< usual cause of the difference; empty below a tenth of the term
};

struct Explained {
  std::string scenario;
  std::string calibration;
  std::string file;
  std::string format;
  int gpus = 0;
  Seconds predicted;
  Seconds low, high;  ///< 90 % interval of the step
  Seconds measured;
  std::vector<ExplainedTerm> terms;
  std::vector<std::string> notes;
};

/// [M261] Reads a training log's timers or a profiler trace's kernels (calib/ importers) against
/// the prediction of the scenario. Throws InputError when the file holds no step time, or when the
/// scenario does not fit in memory.
Explained explain(const Series& series, const calib::Observations& observed,
                  const PredictOptions& options = {});

}  // namespace scapesim::study
