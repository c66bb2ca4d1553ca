// SPDX-License-Identifier: Apache-2.0
// Rows of scapesim.bench/1, the format that `scapesim calibrate` reads: one JSON object per line,
// whole lines only, so that what an interrupted run leaves is a valid file.
#pragma once

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/bench/statistics.hpp"

namespace scapesim::bench {

/// What the device said of itself beside a measurement; absent where it could not be asked.
struct DeviceState {
  std::optional<double> sm_clock_hz;
  std::optional<double> memory_clock_hz;
  std::optional<double> temperature_c;
  std::optional<unsigned long long> throttle_reasons;  ///< NVML's bits
};

/// Where numbers come from.
struct Provenance {
  std::string machine;
  std::string gpu;
  std::string driver;
  std::string date;
  std::string tool;
};

struct Row {
  std::string kind;  ///< copy, memory, kernel, attention, gemm, collective
  std::string name;
  Measured measured;
  std::optional<double> bytes;      ///< counted, of one repetition
  std::optional<double> copy_rate;  ///< bytes/s of the device's own copy, measured before
  std::map<std::string, double> numbers = {};     ///< m, n, k, ranks, nodes ...
  std::map<std::string, std::string> texts = {};  ///< dtype, shape, beside ...
  DeviceState state = {};
};

/// One line, with its end.
std::string line_of(const Row& row, const Provenance& provenance);
/// The environment's row: only NCCL_* and CUDA_* variables are kept; further members as given.
std::string environment_line(const std::map<std::string, std::string>& variables,
                             const std::map<std::string, std::string>& members,
                             const Provenance& provenance);

/// A file that is written line by line, each one flushed whole.
class RowFile {
 public:
  /// Throws InputError when it cannot be written, or is there already.
  explicit RowFile(const std::filesystem::path& path);
  void write(const std::string& line);

 private:
  struct Close {
    void operator()(std::FILE* file) const { static_cast<void>(std::fclose(file)); }
  };
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace scapesim::bench
