// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "sim/base/check.hpp"

namespace scapesim::cost {

namespace {

double bytes_per_element(spec::Precision precision) {
  switch (precision) {
    case spec::Precision::fp32:
      return 4;
    case spec::Precision::fp16:
    case spec::Precision::bf16:
      return 2;
    case spec::Precision::fp8:
    case spec::Precision::mxfp8:
      return 1;
    case spec::Precision::nvfp4:
      return 0.5;
  }
  throw InternalError("precision");
}

double large_gemm_efficiency(const Profile& profile, spec::Precision precision) {
  const bool own = bytes_per_element(precision) <= 1 && profile.has("gemm.efficiency_fp8");
  return profile.number(own ? "gemm.efficiency_fp8" : "gemm.efficiency");
}

}  // namespace

FlopsPerSecond peak(const spec::Gpu& gpu, spec::Precision precision) {
  switch (precision) {
    case spec::Precision::fp32:
      return gpu.peak_tf32;
    case spec::Precision::fp16:
    case spec::Precision::bf16:
      return gpu.peak_bf16;
    default:
      return gpu.peak_fp8;
  }
}

// [M2] A multiply and an add per term.
Flops flops_of(const Gemm& gemm) {
  return Flops(2.0 * static_cast<double>(gemm.groups) * static_cast<double>(gemm.m) *
               static_cast<double>(gemm.n) * static_cast<double>(gemm.k));
}

// [M170] Query i of q sees the keys up to i + (kv - q), at most the window's last ones: the
// integral of min(window, i + kv - q) over the queries that see any.
double visible_pairs(const Attention& attention) {
  const auto queries = static_cast<double>(attention.sequence);
  const auto keys = static_cast<double>(attention.kv_sequence.value_or(attention.sequence));
  const double window = std::min(
      keys,
      static_cast<double>(attention.window.value_or(std::numeric_limits<std::int64_t>::max())));
  if (!attention.causal) return queries * window;
  const double first = std::max(keys - queries, 0.0);    // keys that the first query with any sees
  const double growing = std::max(window - first, 0.0);  // queries that see less than the window
  const double whole = std::min(queries, keys) - growing;
  return growing * first + growing * growing / 2 + whole * window;
}

// [M2] Two products per visible pair and head forward, one over head_dim and one over the width of
// values; backward has five, three and two of them (Dao 2023 sec. 3.1: scores are computed again).
Flops flops_of(const Attention& attention) {
  const auto key = static_cast<double>(attention.head_dim);
  const auto value = static_cast<double>(attention.value_head_dim.value_or(attention.head_dim));
  const double per_pair = attention.backward ? 3 * key + 2 * value : key + value;
  return Flops(2.0 * static_cast<double>(attention.batch * attention.heads) * per_pair *
               visible_pairs(attention));
}

KernelCosts::KernelCosts(const Profile& profile, const spec::Gpu& gpu, spec::Precision precision)
    : gemm_rate_(peak(gpu, precision) *
                 (large_gemm_efficiency(profile, precision) * profile.number("gemm.scale"))),
      element_bytes_(bytes_per_element(precision)),
      k_half_(profile.number("gemm.k_half_B")),
      tile_m_(profile.number("gemm.tile_m")),
      tile_n_(profile.number("gemm.tile_n")),
      small_tile_efficiency_(profile.number("gemm.small_tile_efficiency")),
      multiprocessors_(gpu.multiprocessors),
      // Attention stays in bf16 beside narrower GEMMs.
      attention_peak_(precision == spec::Precision::fp32 ? gpu.peak_tf32 : gpu.peak_bf16),
      backward_ratio_(profile.number("attention.backward_ratio")),
      hbm_(profile.number("hbm.bandwidth_Bps")),
      launch_(profile.number("hbm.launch_s")) {
  for (std::size_t i = 0; i < kSampledHeadDims.size(); ++i)
    attention_curves_[i] =
        profile.curve("attention.forward.d" + std::to_string(kSampledHeadDims[i]));
}

// [M10] Tile and wave quantisation with a fixed cost per tile: the tiles of C run in waves over the
// multiprocessors; a tile's loop over k costs its FLOPs, its prologue and epilogue as much as
// k_half bytes of loop. The library picks the best of the large tile, its transpose and half of it.
// Never under the memory roof: A, B read once, C written once (read too when accumulated).
Seconds KernelCosts::time(const Gemm& gemm) const {
  struct Tile {
    double m, n, efficiency;
  };
  const std::array<Tile, 3> tiles = {Tile{tile_m_, tile_n_, 1.0}, Tile{tile_n_, tile_m_, 1.0},
                                     Tile{tile_m_, tile_n_ / 2, small_tile_efficiency_}};
  const auto groups = static_cast<double>(gemm.groups);
  const auto m = static_cast<double>(gemm.m);
  const auto n = static_cast<double>(gemm.n);
  const auto k = static_cast<double>(gemm.k);
  const double overhead = 1.0 + k_half_ / (k * element_bytes_);

  Seconds arithmetic(std::numeric_limits<double>::infinity());
  for (const Tile& tile : tiles) {
    const double count = groups * std::ceil(m / tile.m) * std::ceil(n / tile.n);
    const double waves = std::ceil(count / multiprocessors_);
    const Flops issued(2.0 * waves * multiprocessors_ * tile.m * tile.n * k);
    arithmetic = std::min(arithmetic, issued * (overhead / tile.efficiency) / gemm_rate_);
  }
  // C is written as bf16 also by fp8 inputs; an fp32 accumulator is read and written.
  const double output_bytes = gemm.accumulate_fp32 ? 8.0 : std::max(2.0, element_bytes_);
  const Bytes traffic(groups * ((m * k + n * k) * element_bytes_ + m * n * output_bytes));
  return std::max(arithmetic, traffic / hbm_) + launch_;
}

double KernelCosts::attention_efficiency(std::int64_t head_dim, std::int64_t sequence) const {
  const auto s = static_cast<double>(sequence);
  if (head_dim <= kSampledHeadDims.front()) {
    // Narrow heads leave the tensor cores idle in proportion.
    const double filled = static_cast<double>(head_dim) / static_cast<double>(kSampledHeadDims[0]);
    return attention_curves_[0].at(s) * filled;
  }
  for (std::size_t i = 1; i < kSampledHeadDims.size(); ++i) {
    if (head_dim > kSampledHeadDims[i]) continue;
    const auto low = static_cast<double>(kSampledHeadDims[i - 1]);
    const auto high = static_cast<double>(kSampledHeadDims[i]);
    const double share = std::log(static_cast<double>(head_dim) / low) / std::log(high / low);
    return std::pow(attention_curves_[i - 1].at(s), 1 - share) *
           std::pow(attention_curves_[i].at(s), share);
  }
  return attention_curves_.back().at(s);
}

// [M12] FLOPs over a measured share of peak, log-interpolated in sequence length and head
// dimension.
Seconds KernelCosts::time(const Attention& attention) const {
  const double efficiency = attention_efficiency(attention.head_dim, attention.sequence) *
                            (attention.backward ? backward_ratio_ : 1.0);
  return flops_of(attention) / (attention_peak_ * efficiency) + launch_;
}

// [M13] Traffic over HBM bandwidth, plus a launch per kernel: the latency regime of small passes.
Seconds KernelCosts::time(const Pass& pass) const {
  return pass.traffic / hbm_ + static_cast<double>(pass.launches) * launch_;
}

}  // namespace scapesim::cost
