// SPDX-License-Identifier: Apache-2.0
// One steady step as pictures need it: operations per stream, kernels, use of links.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/predict/kernels.hpp"
#include "sim/predict/predict.hpp"
#include "sim/result/use.hpp"

namespace scapesim::reports {

/// Operations of one stream that follow each other without a pause worth seeing, as one block.
struct Block {
  Seconds begin, end;  ///< since the step's begin; what reaches over its ends is cut there
  std::string name;    ///< of the longest operation, without numbers
  graph::Kind kind = graph::Kind::compute;
  int operations = 1;
};

struct StreamBlocks {
  graph::Stream stream = graph::Stream::compute;
  std::vector<Block> blocks;
};

struct ClassBlocks {
  std::string name;
  int ranks = 1;
  std::vector<StreamBlocks> streams;
};

struct ResourceUse {
  std::string name;
  BytesPerSecond capacity;
  double share = 0;  ///< of its capacity, mean over the step
};

/// Empty where the plan does not fit.
struct StepDetails {
  Seconds step;  ///< the last simulated one
  std::vector<ClassBlocks> classes;
  std::vector<ResourceUse> resources;  ///< that are used
  std::vector<Kernel> kernels;
  FlopsPerSecond peak;              ///< dense, of the precision
  BytesPerSecond memory_bandwidth;  ///< as calibrated
};

/// Blocks of one stream: operations shorter than a thousandth of the step join their neighbours of
/// the same kind; those of one name and kind that touch are one block.
StepDetails step_details(const Prediction& prediction, const spec::Scenario& scenario,
                         const cost::Profile& profile);

/// {"timeline": ..., "resources": ..., "kernels": ..., "roofs": ...}
nlohmann::ordered_json step_details_json(const StepDetails& details);

}  // namespace scapesim::reports
