// SPDX-License-Identifier: Apache-2.0
#include "calib/hopper.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace scapesim::calib {

using cost::Factor;
using cost::Provenance;
using Eigen::VectorXd;

namespace {

// H100 SXM data sheet, dense.
constexpr double kPeakBf16 = 989.4e12;
constexpr double kPeakFp8 = 1978.9e12;
constexpr double kMultiprocessors = 132;
constexpr double kRange90 = 1.645;

spec::Gpu hopper() {
  spec::Gpu gpu;
  gpu.name = "H100 SXM";
  gpu.peak_bf16 = FlopsPerSecond(kPeakBf16);
  gpu.peak_fp8 = FlopsPerSecond(kPeakFp8);
  gpu.multiprocessors = static_cast<int>(kMultiprocessors);
  return gpu;
}

/// A fitted number with the 90 % range of its standard error, kept inside [lowest, highest].
cost::Number fitted(double value, double error, double lowest, double highest, Factor factor,
                    std::string source) {
  const double ratio = std::exp(kRange90 * error / value);
  return {std::clamp(value, lowest, highest),
          std::clamp(value / ratio, lowest, value),
          std::clamp(value * ratio, value, highest),
          factor,
          {Provenance::published, std::move(source)}};
}

constexpr std::string_view kGemmKeys[] = {"gemm.efficiency", "gemm.efficiency_fp8", "gemm.k_half_B",
                                          "gemm.small_tile_efficiency", "hbm.launch_s"};

/// Rates of all rows under candidate values of kGemmKeys.
VectorXd gemm_rates(cost::Profile profile, const std::vector<GemmRow>& rows, const VectorXd& at) {
  for (Eigen::Index i = 0; i < at.size(); ++i)
    profile.numbers[std::string(kGemmKeys[i])].value = at[i];
  VectorXd rates(static_cast<Eigen::Index>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const cost::KernelCosts costs(profile, hopper(), rows[i].precision);
    rates[static_cast<Eigen::Index>(i)] =
        (cost::flops_of(rows[i].shape) / costs.time(rows[i].shape)).si();
  }
  return rates;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

const AttentionRow* find(const std::vector<AttentionRow>& rows, const AttentionRow& like,
                         bool forward_only) {
  for (const AttentionRow& row : rows)
    if (row.library == like.library && row.head_dim == like.head_dim &&
        row.sequence == like.sequence && row.forward_only == forward_only)
      return &row;
  return nullptr;
}

/// [M84] With F forward FLOPs: forward takes F / r_f, both passes 3.5 F / r_b; the backward rate is
/// 2.5 F over the difference.
std::vector<double> backward_ratios(const std::vector<AttentionRow>& rows) {
  std::vector<double> ratios;
  for (const AttentionRow& both : rows) {
    if (both.forward_only) continue;
    const AttentionRow* forward = find(rows, both, true);
    if (forward == nullptr) continue;
    const double backward = 2.5 / (3.5 / both.rate.si() - 1 / forward->rate.si());
    ratios.push_back(backward / forward->rate.si());
  }
  return ratios;
}

}  // namespace

void add_gemm(cost::Profile& profile, const std::vector<GemmRow>& rows, std::string& report) {
  const std::string tile = "large output tile of cuBLAS and CUTLASS kernels on sm_90";
  profile.numbers["gemm.tile_m"] = {128, 128, 128, Factor::gemm, {Provenance::published, tile}};
  profile.numbers["gemm.tile_n"] = {256, 256, 256, Factor::gemm, {Provenance::published, tile}};
  profile.numbers["gemm.scale"] = {
      1, 1, 1, Factor::gemm, {Provenance::published, "short benchmarks, as published"}};
  VectorXd measured(static_cast<Eigen::Index>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i)
    measured[static_cast<Eigen::Index>(i)] = rows[i].rate.si();
  const Model model = [&](const VectorXd& at) { return gemm_rates(profile, rows, at); };
  const Fit fit = fit_positive(model, measured, VectorXd{{0.85, 0.7, 800.0, 0.9, 3e-6}});
  const std::string source = fmt::format(
      "fit to {} published Hopper GEMM rows (calib/data/gemm_hopper.csv), rms {:.1f} %, worst "
      "{:.1f} %",
      fit.rows, 100 * fit.rms, 100 * fit.worst);
  const Factor factors[] = {Factor::gemm, Factor::gemm, Factor::gemm, Factor::gemm, Factor::hbm};
  const double highest[] = {1, 1, 1e5, 1, 1e-3};
  for (Eigen::Index i = 0; i < fit.value.size(); ++i)
    profile.numbers[std::string(kGemmKeys[i])] =
        fitted(fit.value[i], fit.standard_error[i], 0, highest[i], factors[i], source);
  report += fmt::format(
      "gemm: {} rows, rms {:.2f} %, worst {:.2f} %: bf16 {:.3f}, fp8 {:.3f}, "
      "k_half {:.0f} B, small tile {:.3f}, launch {:.2f} us\n",
      fit.rows, 100 * fit.rms, 100 * fit.worst, fit.value[0], fit.value[1], fit.value[2],
      fit.value[3], 1e6 * fit.value[4]);
}

void add_attention(cost::Profile& profile, const std::vector<AttentionRow>& rows,
                   std::string& report) {
  for (const std::int64_t head_dim : cost::kSampledHeadDims) {
    cost::Curve curve{.x = "sequence_tokens",
                      .y = "share_of_dense_bf16_peak",
                      .points = {},
                      .low_factor = 0.88,
                      .high_factor = 1.14,
                      .factor = Factor::attention,
                      .origin = {Provenance::published,
                                 "cuDNN 9 on H100 SXM, causal (calib/data/attention_hopper.csv); "
                                 "range: FlashAttention-3 is up to 14 % faster"}};
    for (const AttentionRow& row : rows)
      if (row.library == "cuDNN 9" && row.head_dim == head_dim && row.forward_only)
        curve.points.push_back({static_cast<double>(row.sequence), row.rate.si() / kPeakBf16});
    std::sort(curve.points.begin(), curve.points.end());
    profile.curves[fmt::format("attention.forward.d{}", head_dim)] = std::move(curve);
  }
  std::vector<double> ratios = backward_ratios(rows);
  const auto [lowest, highest] = std::minmax_element(ratios.begin(), ratios.end());
  profile.numbers["attention.backward_ratio"] = {
      median(ratios),
      *lowest,
      *highest,
      Factor::attention,
      {Provenance::published,
       fmt::format("median of {} FlashAttention-2 pairs on H100 SXM, range their extremes "
                   "(calib/data/attention_hopper.csv)",
                   ratios.size())}};
  report +=
      fmt::format("attention: backward over forward rate {:.3f} ({:.3f} to {:.3f}, {} pairs)\n",
                  median(ratios), *lowest, *highest, ratios.size());
}

void add_memory_and_host(cost::Profile& profile) {
  const auto put = [&](std::string_view key, double value, double low, double high, Factor factor,
                       Provenance kind, std::string source) {
    profile.numbers[std::string(key)] = {value, low, high, factor, {kind, std::move(source)}};
  };
  const std::string schieffer =
      "GH200 480GB, cudaMemcpy between pinned and device memory (Schieffer et al. 2024, arXiv "
      "2407.07850)";
  put("hbm.bandwidth_Bps", 3.2e12, 2.95e12, 3.4e12, Factor::hbm, Provenance::published,
      "GH200 96GB HBM3: BabelStream copy 2.98, add 3.30, triad 3.31 TB/s "
      "(UoB-HPC/BabelStream issue 194); STREAM 3.4 TB/s (arXiv 2407.07850)");
  put("copy.h2d_Bps", 375e9, 340e9, 420e9, Factor::copy, Provenance::published, schieffer);
  put("copy.d2h_Bps", 297e9, 270e9, 380e9, Factor::copy, Provenance::published, schieffer);
  put("copy.staged_Bps", 95e9, 45e9, 300e9, Factor::copy, Provenance::assumed,
      "tensor-by-tensor copies of the released SCAPE code over one copy stream, about 95 GB/s; no "
      "independent measurement is known, so the range reaches from half of it to the rate of large "
      "pinned copies");
  put("copy.latency_s", 5e-6, 2e-6, 2e-5, Factor::copy, Provenance::assumed,
      "one asynchronous copy call");
  put("host.step_s", 0.02, 0.005, 0.08, Factor::host, Provenance::assumed,
      "Megatron-LM step outside its micro-batches");
  put("host.micro_batch_s", 0, 0, 0, Factor::host, Provenance::assumed,
      "kernels are queued ahead: the host does not show inside micro-batches of this size");
  put("memory.context_B", 1.2e9, 0.6e9, 3e9, Factor::host, Provenance::assumed,
      "CUDA context and NCCL buffers");
}

}  // namespace scapesim::calib
