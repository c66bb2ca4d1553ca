// SPDX-License-Identifier: Apache-2.0
#include "sim/cost/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

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

/// A number that a profile may leave out.
double number_or(const Profile& profile, std::string_view key, double otherwise) {
  return profile.has(key) ? profile.number(key) : otherwise;
}

/// [M171] Narrow formats fall back on the next wider one that the profile knows.
double large_gemm_efficiency(const Profile& profile, spec::Precision precision) {
  const double wide = profile.number("gemm.efficiency");
  switch (precision) {
    case spec::Precision::fp32:
      return number_or(profile, "gemm.efficiency_tf32", wide);
    case spec::Precision::fp16:
    case spec::Precision::bf16:
      return wide;
    case spec::Precision::fp8:
      return number_or(profile, "gemm.efficiency_fp8", wide);
    case spec::Precision::mxfp8:
      return number_or(profile, "gemm.efficiency_mxfp8",
                       number_or(profile, "gemm.efficiency_fp8", wide));
    case spec::Precision::nvfp4:
      return number_or(profile, "gemm.efficiency_nvfp4",
                       number_or(profile, "gemm.efficiency_fp8", wide));
  }
  throw InternalError("precision");
}

/// [M451] What libraries run where rows do not begin at multiples of 16 bytes; as fast as aligned
/// products where the profile does not say.
FlopsPerSecond unaligned_rate(const Profile& profile, const spec::Gpu& gpu,
                              spec::Precision precision, FlopsPerSecond aligned, double pace) {
  if (!profile.has("gemm.unaligned_efficiency") || precision == spec::Precision::fp32)
    return aligned;
  return std::min(aligned, gpu.peak_bf16 * (profile.number("gemm.unaligned_efficiency") * pace));
}

/// Queries of one block of flash attention.
constexpr double kQueryBlock = 128;

/// [M432] Keys of a packed document: all of the sequence's without.
double keys_of_document(const Attention& attention) {
  const auto keys = static_cast<double>(attention.kv_sequence.value_or(attention.sequence));
  if (!attention.document) return keys;
  return keys * (*attention.document / static_cast<double>(attention.sequence));
}

/// Keys that a query sees at most.
double most_keys(const Attention& attention) {
  const std::int64_t keys = attention.kv_sequence.value_or(attention.sequence);
  const double most = static_cast<double>(std::min(keys, attention.window.value_or(keys)));
  return std::min(most, keys_of_document(attention));
}

double value_width(const Attention& attention) {
  return static_cast<double>(attention.value_head_dim.value_or(attention.head_dim));
}

/// Queries, keys, values and outputs in bf16, once forward; backward reads them with the outputs'
/// gradient, and writes gradients of queries, keys and values.
Bytes traffic_of(const Attention& attention) {
  constexpr double kElement = 2;
  const auto key = static_cast<double>(attention.head_dim);
  const double per_token = key + value_width(attention);
  const double queries =
      static_cast<double>(attention.batch * attention.heads * attention.sequence) * per_token;
  const double keys =
      static_cast<double>(attention.batch * attention.kv_heads.value_or(attention.heads) *
                          attention.kv_sequence.value_or(attention.sequence)) *
      per_token;
  return Bytes(kElement * (attention.backward ? 2 * queries + 2 * keys : queries + keys));
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
// [M432] Of packed documents every one by itself.
double visible_pairs(const Attention& attention) {
  const double all = static_cast<double>(attention.sequence);
  const double queries = attention.document.value_or(all);
  const double documents = all / queries;
  const double keys = keys_of_document(attention);
  const double window = std::min(
      keys,
      static_cast<double>(attention.window.value_or(std::numeric_limits<std::int64_t>::max())));
  if (!attention.causal) return documents * queries * window;
  const double first = std::max(keys - queries, 0.0);    // keys that the first query with any sees
  const double growing = std::max(window - first, 0.0);  // queries that see less than the window
  const double whole = std::min(queries, keys) - growing;
  return documents * (growing * first + growing * growing / 2 + whole * window);
}

// [M2] Two products per visible pair and head forward, one over head_dim and one over the width of
// values; backward has five, three and two of them (Dao 2023 sec. 3.1: scores are computed again).
Flops flops_of(const Attention& attention) {
  const auto key = static_cast<double>(attention.head_dim);
  const double value = value_width(attention);
  const double per_pair = attention.backward ? 3 * key + 2 * value : key + value;
  return Flops(2.0 * static_cast<double>(attention.batch * attention.heads) * per_pair *
               visible_pairs(attention));
}

// [M405] Blom 1958: the quantile at (n - 3/8) / (n + 1/4), within 1 % of the expectation from 8 on.
double expected_largest(int draws) { return normal_quantile((draws - 0.375) / (draws + 0.25)); }

// [M405] A step waits for the slowest of the job's GPUs.
Fleet fleet_of(const Profile& profile, const spec::Cluster& cluster) {
  const double spread = cluster.speed_spread.value_or(number_or(profile, "gpu.speed_spread", 0));
  return {.slowest = 1 + spread * expected_largest(cluster.gpus),
          .overlap_slowdown =
              cluster.overlap_slowdown.value_or(number_or(profile, "gpu.overlap_slowdown", 0))};
}

// [M406] The kernel goes on at 1 / (1 + c) of its pace until one of the two has ended.
Seconds added_beside(Seconds exchange, Seconds kernel, double overlap_slowdown) {
  const double c = overlap_slowdown;
  return std::min(c * kernel, c / (1 + c) * exchange);
}

namespace {

/// [M405] [M408] Pace of arithmetic over that of benchmarks.
double pace_of(const Profile& profile, const Fleet& fleet) {
  return number_or(profile, "gpu.clock_scale", 1) / fleet.slowest;
}

}  // namespace

KernelCosts::KernelCosts(const Profile& profile, const spec::Gpu& gpu, spec::Precision precision,
                         const Fleet& fleet)
    : gemm_rate_(peak(gpu, precision) *
                 (large_gemm_efficiency(profile, precision) * profile.number("gemm.scale")) *
                 pace_of(profile, fleet)),
      unaligned_rate_(unaligned_rate(profile, gpu, precision, gemm_rate_, pace_of(profile, fleet))),
      element_bytes_(bytes_per_element(precision)),
      k_half_(profile.number("gemm.k_half_B")),
      k_half_added_(number_or(profile, "gemm.k_half_accumulate_B", k_half_)),
      tile_m_(profile.number("gemm.tile_m")),
      tile_n_(profile.number("gemm.tile_n")),
      small_tile_efficiency_(profile.number("gemm.small_tile_efficiency")),
      wave_share_(number_or(profile, "gemm.wave_share", 1)),
      group_launch_(number_or(profile, "gemm.group_launch_s", profile.number("hbm.launch_s"))),
      multiprocessors_(gpu.multiprocessors),
      // Attention stays in bf16 beside narrower GEMMs.
      attention_peak_((precision == spec::Precision::fp32 ? gpu.peak_tf32 : gpu.peak_bf16) *
                      pace_of(profile, fleet)),
      backward_ratio_(profile.number("attention.backward_ratio")),
      half_waves_(number_or(profile, "attention.half_waves", 0)),
      backward_half_waves_(number_or(profile, "attention.backward_half_waves", 0)),
      diagonal_(number_or(profile, "attention.diagonal_tokens", 0)),
      hbm_(profile.number("hbm.bandwidth_Bps")),
      adds_(number_or(profile, "hbm.scatter_add_per_s", 0)),
      launch_(profile.number("hbm.launch_s")),
      host_launch_(number_or(profile, "host.launch_s", 0)),
      overlap_slowdown_(fleet.overlap_slowdown) {
  constexpr std::string_view kKernel = "kernel.";
  for (const auto& [key, curve] : profile.curves)
    if (key.starts_with(kKernel)) kernel_curves_.emplace(key.substr(kKernel.size()), curve);
  for (const auto core :
       {spec::AttentionCore::flash1, spec::AttentionCore::triton, spec::AttentionCore::flash2}) {
    const std::string key = "attention." + std::string(name_of(core));
    const double forward = number_or(profile, key + "_ratio", 1);
    libraries_[core] = {forward, number_or(profile, key + "_backward_ratio", forward)};
  }
  std::array<Curve, 3> backward;
  for (std::size_t i = 0; i < kSampledHeadDims.size(); ++i) {
    const std::string width = std::to_string(kSampledHeadDims[i]);
    attention_curves_[i] = profile.curve("attention.forward.d" + width);
    if (const auto found = profile.curves.find("attention.backward.d" + width);
        found != profile.curves.end())
      backward[i] = found->second;
  }
  const auto sampled = [](const Curve& curve) { return !curve.points.empty(); };
  if (std::all_of(backward.begin(), backward.end(), sampled)) backward_curves_ = backward;
}

// [M10] Tile and wave quantisation with a fixed cost per tile: the tiles of C run in waves over the
// multiprocessors; a tile's loop over k costs its FLOPs, its prologue and epilogue as much as
// k_half bytes of loop. The library picks the best of the large tile, its transpose and half of it.
// Of the idle part of the last wave, wave_share costs time: where power limits the clock, idle
// multiprocessors let the others run faster. The tiles of all groups share their waves.
Seconds KernelCosts::arithmetic(const Gemm& gemm) const {
  struct Tile {
    double m, n, efficiency;
  };
  const std::array<Tile, 3> tiles = {Tile{tile_m_, tile_n_, 1.0}, Tile{tile_n_, tile_m_, 1.0},
                                     Tile{tile_m_, tile_n_ / 2, small_tile_efficiency_}};
  const auto m = static_cast<double>(gemm.m);
  const auto n = static_cast<double>(gemm.n);
  const auto k = static_cast<double>(gemm.k);
  const double k_half = gemm.accumulate_fp32 ? k_half_added_ : k_half_;
  const FlopsPerSecond rate = gemm.aligned ? gemm_rate_ : unaligned_rate_;
  const double overhead = 1.0 + k_half / (k * element_bytes_);
  Seconds best(std::numeric_limits<double>::infinity());
  for (const Tile& tile : tiles) {
    const double count =
        static_cast<double>(gemm.groups) * std::ceil(m / tile.m) * std::ceil(n / tile.n);
    const double filled = count / multiprocessors_;
    const double whole = std::ceil(filled);
    const double waves = std::max(whole - (1 - wave_share_) * (whole - filled), 1.0);
    const Flops issued(2.0 * waves * multiprocessors_ * tile.m * tile.n * k);
    best = std::min(best, issued * (overhead / tile.efficiency) / rate);
  }
  return best;
}

// [M10] Never under the memory roof: A, B read once, C written once (read too when accumulated).
// [M172] A grouped product is one library call per group: a launch each.
Seconds KernelCosts::time(const Gemm& gemm) const {
  const auto groups = static_cast<double>(gemm.groups);
  const auto m = static_cast<double>(gemm.m);
  const auto n = static_cast<double>(gemm.n);
  const auto k = static_cast<double>(gemm.k);
  // C is written as bf16 also by fp8 inputs; an fp32 accumulator is read and written.
  const double output_bytes = gemm.accumulate_fp32 ? 8.0 : std::max(2.0, element_bytes_);
  const Bytes traffic(groups * ((m * k + n * k) * element_bytes_ + m * n * output_bytes));
  const double more_launches = gemm.batched ? 0 : groups - 1;
  return std::max(arithmetic(gemm), traffic / hbm_) + launch_ + more_launches * group_launch_;
}

double KernelCosts::attention_share(const Attention& attention, double head_dim,
                                    double keys) const {
  const bool own_curves = attention.backward && backward_curves_.has_value();
  const std::array<Curve, 3>& curves = own_curves ? *backward_curves_ : attention_curves_;
  const double ratio = attention.backward && !own_curves ? backward_ratio_ : 1.0;
  const auto narrowest = static_cast<double>(kSampledHeadDims.front());
  // Narrow heads leave the tensor cores idle in proportion.
  if (head_dim <= narrowest) return curves[0].at(keys) * (head_dim / narrowest) * ratio;
  for (std::size_t i = 1; i < kSampledHeadDims.size(); ++i) {
    const auto low = static_cast<double>(kSampledHeadDims[i - 1]);
    const auto high = static_cast<double>(kSampledHeadDims[i]);
    if (head_dim > high) continue;
    const double share = std::log(head_dim / low) / std::log(high / low);
    return std::pow(curves[i - 1].at(keys), 1 - share) * std::pow(curves[i].at(keys), share) *
           ratio;
  }
  return curves.back().at(keys) * ratio;
}

double KernelCosts::attention_fill(const Attention& attention, double keys) const {
  const auto queries = static_cast<double>(attention.sequence);
  const double all_keys = keys_of_document(attention);
  const bool windowed = keys < all_keys;
  const int edges = !attention.causal ? 0 : windowed ? 2 : 1;
  const double pairs = visible_pairs(attention);
  const double wasted = edges * queries * diagonal_ / 2;
  const double edge = (1 + diagonal_ / keys) * pairs / (pairs + wasted);

  const double tokens =
      attention.backward ? static_cast<double>(attention.kv_sequence.value_or(attention.sequence))
                         : queries;
  const double blocks =
      static_cast<double>(attention.batch * attention.heads) * std::ceil(tokens / kQueryBlock);
  const double waves = blocks / multiprocessors_;
  const double half = attention.backward ? backward_half_waves_ : half_waves_;
  return edge * waves / (waves + half);
}

double KernelCosts::library_share(const Attention& attention) const {
  const auto library = libraries_.find(attention.core);
  if (library == libraries_.end()) return 1;
  return attention.backward ? library->second.backward : library->second.forward;
}

// [M12] FLOPs over a measured share of peak, log-interpolated in the keys of a query and the head's
// width; never under the memory roof.
Seconds KernelCosts::time(const Attention& attention) const {
  const double keys = most_keys(attention);
  const double width =
      (static_cast<double>(attention.head_dim) + value_width(attention)) / 2;  // of both products
  const double share = attention_share(attention, width, keys) * attention_fill(attention, keys) *
                       library_share(attention);
  const Seconds computed = flops_of(attention) / (attention_peak_ * std::min(share, 1.0));
  return std::max(computed, traffic_of(attention) / hbm_) + launch_;
}

// [M13] Traffic over HBM bandwidth, plus a launch per kernel: the latency regime of small passes.
// [M205] Where a curve of the kernel was measured, over that share of the bandwidth instead; what
// launches cost is in it, and never less than the launches.
Seconds KernelCosts::time(const Pass& pass) const {
  if (const auto curve = kernel_curves_.find(pass.kernel); curve != kernel_curves_.end()) {
    const double share = curve->second.at(pass.traffic.si());
    return std::max(pass.traffic / (hbm_ * share), static_cast<double>(pass.launches) * launch_);
  }
  // [M409]
  const Seconds adding(adds_ > 0 ? pass.added / adds_ : 0);
  return std::max(pass.traffic / hbm_, adding) + static_cast<double>(pass.launches) * launch_;
}

}  // namespace scapesim::cost
