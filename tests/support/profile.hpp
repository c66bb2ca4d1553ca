// SPDX-License-Identifier: Apache-2.0
// A calibration profile with round numbers, so that tests can compute by hand what it costs.
#pragma once

#include <string>

#include "sim/cost/profile.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::test {

inline cost::Number exactly(double value, cost::Factor factor) {
  return {value, value, value, factor, {cost::Provenance::measured, "made up for a test"}};
}

inline cost::Curve attention_curve(double at_1k, double at_4k) {
  return {.x = "sequence_tokens",
          .y = "share_of_dense_bf16_peak",
          .points = {{1024, at_1k}, {4096, at_4k}},
          .low_factor = 1,
          .high_factor = 1,
          .factor = cost::Factor::attention,
          .origin = {cost::Provenance::measured, "made up for a test"}};
}

/// GEMMs at half of peak without any overhead per tile, HBM 1 TB/s, copies 100 GB/s, no latencies,
/// no host time.
inline cost::Profile round_profile() {
  using cost::Factor;
  cost::Profile profile;
  profile.id = "round";
  profile.machine = "none";
  const auto put = [&](const char* key, double value, Factor factor) {
    profile.numbers[key] = exactly(value, factor);
  };
  put("network.efficiency", 1, Factor::network);
  put("network.hop_latency_s", 0, Factor::latency);
  put("network.scalar_latency_s", 0, Factor::latency);
  put("gemm.efficiency", 0.5, Factor::gemm);
  put("gemm.scale", 1, Factor::gemm);
  put("gemm.k_half_B", 0, Factor::gemm);
  put("gemm.tile_m", 128, Factor::gemm);
  put("gemm.tile_n", 256, Factor::gemm);
  put("gemm.small_tile_efficiency", 0.8, Factor::gemm);
  put("attention.backward_ratio", 0.8, Factor::attention);
  put("hbm.bandwidth_Bps", 1e12, Factor::hbm);
  put("hbm.launch_s", 0, Factor::hbm);
  put("copy.h2d_Bps", 100e9, Factor::copy);
  put("copy.d2h_Bps", 100e9, Factor::copy);
  put("copy.staged_Bps", 50e9, Factor::copy);
  put("copy.latency_s", 0, Factor::copy);
  put("host.step_s", 0, Factor::host);
  put("host.micro_batch_s", 0, Factor::host);
  put("memory.context_B", 1e9, Factor::host);
  put("model.discrepancy", 1, Factor::model);
  profile.curves["attention.forward.d64"] = attention_curve(0.2, 0.4);
  profile.curves["attention.forward.d128"] = attention_curve(0.4, 0.6);
  profile.curves["attention.forward.d256"] = attention_curve(0.5, 0.5);
  return profile;
}

inline void set(cost::Profile& profile, const std::string& key, double value) {
  cost::Number& number = profile.numbers.at(key);
  number.value = number.low = number.high = value;
}

/// One PFLOP/s in bf16, 100 multiprocessors.
inline spec::Gpu round_gpu() {
  spec::Gpu gpu;
  gpu.name = "round";
  gpu.peak_bf16 = FlopsPerSecond(1e15);
  gpu.peak_fp8 = FlopsPerSecond(2e15);
  gpu.peak_tf32 = FlopsPerSecond(0.5e15);
  gpu.hbm_bandwidth = BytesPerSecond(1e12);
  gpu.memory = Bytes(1e12);
  gpu.multiprocessors = 100;
  return gpu;
}

}  // namespace scapesim::test
