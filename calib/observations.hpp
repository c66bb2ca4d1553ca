// SPDX-License-Identifier: Apache-2.0
// What logs and bench files say, as samples in SI units: the common language of importers and fits.
// Nothing is averaged or dropped as an outlier here; what could not be read is counted and shown.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/named.hpp"
#include "sim/base/units.hpp"
#include "sim/graph/graph.hpp"

namespace scapesim::calib {

/// One timed collective.
struct CollectiveSample {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  Bytes size{};   ///< as nccl-tests counts: the larger of what a rank sends and what it receives
  int ranks = 0;  ///< 2 or more
  std::optional<int> nodes{};
  std::optional<int> ranks_per_node{};  ///< none as well where nodes hold different numbers
  Seconds time{};                       ///< out of place; in place where only that was timed
  std::optional<Seconds> in_place{};
  std::string datatype{};  ///< lower case as the tool names it: "float", "bfloat16"
  std::string algorithm{}, protocol{}, transport{};  ///< as printed or forced; empty: unknown
  bool in_training = false;  ///< a kernel of a training step: its time holds waiting for others
  Place place{};
};

enum class CopyDirection { host_to_device, device_to_host, device_to_device, local };
inline std::span<const Named<CopyDirection>> names_of(CopyDirection*) {
  using enum CopyDirection;
  static constexpr Named<CopyDirection> kRows[] = {{host_to_device, "host-to-device"},
                                                   {device_to_host, "device-to-host"},
                                                   {device_to_device, "device-to-device"},
                                                   {local, "local"}};
  return kRows;
}

/// What else was copied at the same time; the rate is always that of the one copy.
enum class Beside { nothing, reverse_copy, other_gpus, device_memory };

/// One timed copy, or the mean of several equal ones.
struct CopySample {
  CopyDirection direction = CopyDirection::host_to_device;
  Beside beside = Beside::nothing;
  std::string name{};           ///< the tool's name of the test
  std::optional<Bytes> size{};  ///< of one copy; none where the tool does not tell
  BytesPerSecond rate{};
  Place place{};
};

/// A kernel bound by device memory.
struct MemorySample {
  std::string op{};
  Bytes bytes{};  ///< read plus written
  BytesPerSecond rate{};
  Place place{};
};

/// A latency test: one access or one empty launch.
struct LatencySample {
  std::string name{};
  Seconds time{};
  Place place{};
};

enum class KernelClass { gemm, attention, pass, nccl, other };
inline std::span<const Named<KernelClass>> names_of(KernelClass*) {
  using enum KernelClass;
  static constexpr Named<KernelClass> kRows[] = {
      {gemm, "gemm"}, {attention, "attention"}, {pass, "pass"}, {nccl, "nccl"}, {other, "other"}};
  return kRows;
}

/// All runs of one kernel in a trace or bench.
struct KernelSample {
  KernelClass kind = KernelClass::other;
  std::string name{};
  std::string shape{};  ///< as the tool writes it; empty: unknown
  int count = 0;
  Seconds total{};
  Seconds median{};
  std::optional<Bytes> bytes{};  ///< counted memory traffic of one run
  Place place{};
};

/// C[m,n] = A[m,k] B[k,n].
struct GemmSample {
  double m = 0, n = 0, k = 0;
  std::string datatype{};
  Seconds time{};
  Place place{};
  bool accumulate_fp32 = false;  ///< C is fp32 and added to
};

/// One training step, or the mean over a logging interval.
struct StepSample {
  std::optional<int> gpus{};
  int iteration = 0;
  std::optional<Seconds> step_time{};  ///< none: only a token rate is known
  std::optional<double> sequences{};   ///< per step, of all GPUs (the global batch)
  std::optional<Tokens> tokens{};      ///< per step, of all GPUs
  std::optional<TokensPerSecond> token_rate_per_gpu{};
  std::optional<FlopsPerSecond> flop_rate_per_gpu{};  ///< as the framework counts FLOPs
  std::map<std::string, Seconds> timers{};            ///< slowest rank, per step
  Place place{};
};

/// Busy time of one GPU in a trace: kernels of NCCL, all other kernels, both at once.
struct OverlapSample {
  int device = 0;
  Seconds communication{};
  Seconds compute{};
  Seconds both{};
  Seconds span{};  ///< from the first kernel's begin to the last one's end
};

struct Machine {
  std::vector<std::string> gpu_names{};  ///< each once, in order of appearance
  std::optional<int> gpus{};
  std::optional<int> hosts{};
};

/// Lines (or records) that gave nothing. Values of NAME=value are masked unless the name may be
/// kept.
struct Unparsed {
  struct Line {
    int number = 0;  ///< 0: the file has no lines
    std::string text{};
  };
  int count = 0;
  int malformed = 0;                       ///< of count: looked like data and could not be read
  std::vector<Line> malformed_examples{};  ///< the first few
  std::vector<Line> examples{};            ///< the first few of the others
};

struct Observations {
  std::string file{};
  std::string format{};  ///< name of the importer
  std::vector<CollectiveSample> collectives{};
  std::vector<CopySample> copies{};
  std::vector<MemorySample> memory{};
  std::vector<LatencySample> latencies{};
  std::vector<KernelSample> kernels{};
  std::vector<GemmSample> gemms{};
  std::vector<StepSample> steps{};
  std::vector<OverlapSample> overlaps{};
  std::map<std::string, std::string> environment{};  ///< NCCL_* and CUDA_* only
  std::map<std::string, std::string> provenance{};   ///< tool, version, date: what the file states
  Machine machine{};
  Unparsed unparsed{};
  std::vector<Problem> warnings{};

  bool empty() const {
    return collectives.empty() && copies.empty() && memory.empty() && latencies.empty() &&
           kernels.empty() && gemms.empty() && steps.empty();
  }
};

}  // namespace scapesim::calib
