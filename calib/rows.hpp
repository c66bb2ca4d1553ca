// SPDX-License-Identifier: Apache-2.0
// The measured rows in calib/data that shipped profiles are fitted to.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "calib/fit.hpp"
#include "sim/cost/kernels.hpp"

namespace scapesim::calib {

struct GemmRow {
  cost::Gemm shape;
  spec::Precision precision = spec::Precision::bf16;
  FlopsPerSecond rate;
  std::string gpu = {};
};

struct AttentionRow {
  std::string library;
  std::int64_t head_dim = 0;
  std::int64_t sequence = 0;
  bool forward_only = true;
  FlopsPerSecond rate;
};

/// Flash attention as timed: one pass, or both together.
struct AttentionTiming {
  enum class Passes { forward, backward, both };
  std::string gpu = {};
  std::string library = {};
  cost::Attention shape = {};  ///< the forward pass
  Passes passes = Passes::forward;
  FlopsPerSecond rate = {};
};

/// Bandwidth of large arrays on one path.
struct MemoryRow {
  std::string gpu = {};
  std::string path = {};  ///< "hbm", "h2d", "d2h"
  BytesPerSecond rate;
};

/// A training step that a number of a shipped profile is fitted to.
struct SustainedRow {
  std::string profile = {};
  std::string key = {};
  std::string name = {};
  std::string scenario = {};  ///< a shipped one
  Seconds step_time;
};

/// One measured metric of a training run on TACC Vista; flags as run.
struct VistaRow {
  std::string model;  ///< "llama-1.8B"
  std::string strategy = {};
  bool distributed_optimizer = false;
  bool residual_offload = false;
  bool replica_offload = false;
  double density = 1;
  int micro_batch = 0;
  int gpus = 0;
  std::string metric = {};  ///< "step_time_s", "computation_s", "communication_s", "memory_B"
  double value = 0;
};

/// Throw InputError for a file that cannot be read or understood.
std::vector<GemmRow> gemm_rows(const std::filesystem::path& file);
std::vector<AttentionRow> attention_rows(const std::filesystem::path& file);
/// As gemm_rows(), with columns for the output and for groups.
std::vector<GemmRow> grouped_gemm_rows(const std::filesystem::path& file);
std::vector<AttentionTiming> attention_timings(const std::filesystem::path& file);
/// The causal rows of attention_rows() as what they timed: hidden 2048, 16,384 tokens per batch.
std::vector<AttentionTiming> timings_of(const std::vector<AttentionRow>& rows, std::string gpu);
std::vector<MemoryRow> memory_rows(const std::filesystem::path& file);
std::vector<SustainedRow> sustained_rows(const std::filesystem::path& file);
std::vector<VistaRow> vista_rows(const std::filesystem::path& file);

}  // namespace scapesim::calib
