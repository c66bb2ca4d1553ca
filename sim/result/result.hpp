// SPDX-License-Identifier: Apache-2.0
// What a prediction says: the numbers of `run --json`, typed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/engine/timeline.hpp"
#include "sim/graph/graph.hpp"

namespace scapesim::result {

struct Breakdown {
  Seconds compute, optimizer, exposed_communication, copy, host, bubble;  ///< sum to the step
};

/// All calls of one collective in a step.
struct Communication {
  std::string name;
  std::string collective;
  int group_size = 1;
  double count = 0;      ///< calls per step
  Bytes bytes;           ///< nccl-tests size of one call
  BytesPerSecond busbw;  ///< mean over the calls; 0 for a group of one
  Seconds time;          ///< per step, all calls
  Seconds exposed;       ///< per step, the compute stream waits for it
  std::string algorithm{};
  std::string protocol{};
};

struct Memory {
  Bytes parameters, gradients, optimizer, strategy, activations, temporary;
  Bytes total;    ///< what the framework's allocator reserves on the fullest rank
  Bytes context;  ///< CUDA and NCCL, outside the allocator
  Bytes capacity;
};

struct Warning {
  std::string code;
  std::string message;
  double octaves = 0;  ///< of an extrapolation: factors of two outside the calibrated range
};

/// One term of --explain step_time; terms sum to the step.
struct Term {
  std::string name;
  Seconds time;
  std::string formula;      ///< "M6"
  std::string calibration;  ///< profile keys
};

/// A step whose ranks do not compute alike: step_time is the mean of the drawn steps.
struct Uneven {
  Seconds even;  ///< the step if all ranks computed like one of the cluster's own GPUs
  int steps = 1;
  Seconds mean, deviation;  ///< standard deviation from step to step
  Seconds shortest, longest;
  std::size_t pipelines = 0;  ///< that differ and were simulated
};

/// [M430] Parameters of a model of which some are frozen.
struct Trained {
  std::int64_t parameters = 0;
  std::int64_t all = 0;
};

/// [M432] Documents that do not each fill a sequence.
struct DocumentUse {
  double useful = 1;   ///< share of the sequences' tokens that are no padding
  double reach = 0;    ///< tokens of the documents that a token attends to, were all alike
  double slowest = 1;  ///< [M433] step time over that of a mean rank
};

/// [M436] Forward passes over batches of their own.
struct Evaluation {
  int interval = 0;    ///< steps from one to the next
  int iterations = 0;  ///< global batches of each
  Seconds iteration;   ///< of one batch
  Seconds all() const { return static_cast<double>(iterations) * iteration; }
};

/// [M434] Steps at a batch of a ramp.
struct RampRow {
  std::int64_t batch = 0;  ///< sequences
  std::int64_t steps = 0;
  Seconds step_time;
};

/// What equal GPUs that work together do to the step's kernels.
struct Fleet {
  double slowest = 1;           ///< [M405] what the slowest takes to compute, over the mean
  double overlap_slowdown = 0;  ///< [M406] of kernels beside collectives
  Seconds beside;               ///< what that adds to the kernels of a step, outside layers
};

struct Run {
  std::string scenario;
  std::string series;
  std::string hash;
  std::string calibration;
  std::string weakest_provenance;
  std::string version;
  int gpus = 0;
  Seconds step_time, step_time_low, step_time_high;
  double interval_level = 0.9;
  bool has_interval = false;
  std::vector<Seconds> drawn;  ///< step times under the draws of the profile, in their order
  TokensPerSecond tokens_per_second;
  double mfu = 0;
  std::optional<double> efficiency;
  Breakdown breakdown;
  std::vector<Communication> communication;
  Fleet fleet;
  std::optional<Uneven> uneven;            ///< none when all ranks compute alike
  std::optional<Trained> trained;          ///< none when all parameters are
  std::optional<DocumentUse> documents;    ///< none when each fills a sequence
  std::optional<Evaluation> evaluation;    ///< none without
  std::vector<RampRow> ramp;               ///< before the batch has grown
  std::int64_t batch = 0;                  ///< sequences of the step
  std::optional<double> overlap_fraction;  ///< none when nothing is communicated
  Memory memory;
  std::optional<Joules> energy;
  std::optional<Dollars> cost;
  std::vector<Warning> warnings;
  std::vector<Term> terms;
};

/// The plan does not fit: a normal answer.
struct Infeasible {
  std::string reason;
  Bytes need;
  Bytes have;
  std::string hint;
  Memory memory;
};

using Outcome = std::variant<Run, Infeasible>;

}  // namespace scapesim::result
