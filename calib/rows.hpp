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
};

struct AttentionRow {
  std::string library;
  std::int64_t head_dim = 0;
  std::int64_t sequence = 0;
  bool forward_only = true;
  FlopsPerSecond rate;
};

/// A dense training row of TACC Vista.
struct DenseRow {
  std::string model;  ///< "llama-1.8B"
  bool distributed_optimizer = false;
  int gpus = 0;
  std::string metric;  ///< "computation_s" or "communication_s"
  Seconds time;
};

/// Throw InputError for a file that cannot be read or understood.
std::vector<GemmRow> gemm_rows(const std::filesystem::path& file);
std::vector<AttentionRow> attention_rows(const std::filesystem::path& file);
/// Only rows of strategy "dense"; rows of other strategies are never returned.
std::vector<DenseRow> dense_rows(const std::filesystem::path& file);

}  // namespace scapesim::calib
