// SPDX-License-Identifier: Apache-2.0
#include "calib/shipped_gpus.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "calib/gpu_kernels.hpp"
#include "sim/base/check.hpp"

namespace scapesim::calib {

using cost::Factor;
using cost::Profile;
using cost::Provenance;

namespace {

template <typename Row>
std::vector<Row> rows_of(const std::vector<Row>& rows, std::string_view part) {
  std::vector<Row> some;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(some),
               [&](const Row& row) { return row.gpu == part; });
  return some;
}

cost::Origin published(std::string_view what, std::string_view part, std::string_view file) {
  return {Provenance::published, fmt::format("{} of {} (calib/data/{})", what, part, file)};
}

/// [M174] Numbers and curves whose keys begin so, as a sibling part has them: assumed, their
/// ranges wider by a share on either side.
void transfer(Profile& profile, const Profile& from, std::string_view prefix,
              std::string_view sibling, double wider) {
  const auto origin = [&](const cost::Origin& was) {
    return cost::Origin{Provenance::assumed, fmt::format("as on {}: {}", sibling, was.source)};
  };
  for (const auto& [key, number] : from.numbers) {
    if (!key.starts_with(prefix) || key.starts_with("gemm.tile")) continue;
    cost::Number moved = number;
    moved.low *= 1 - wider;
    moved.high *= 1 + wider;
    if (key.find("efficiency") != key.npos || key == "gemm.wave_share")
      moved.high = std::min(moved.high, 1.0);
    moved.origin = origin(number.origin);
    profile.numbers[key] = moved;
  }
  for (const auto& [key, curve] : from.curves) {
    if (!key.starts_with(prefix)) continue;
    cost::Curve moved = curve;
    moved.low_factor *= 1 - wider;
    moved.high_factor *= 1 + wider;
    moved.origin = origin(curve.origin);
    profile.curves[key] = std::move(moved);
  }
}

/// [M87] Median and extremes of a path's rows; false when the part has none.
bool use_rates(Profile& profile, const KernelData& data, std::string_view part,
               std::string_view path, const std::string& key, Factor factor) {
  std::vector<double> rates;
  for (const MemoryRow& row : rows_of(data.memory, part))
    if (row.path == path) rates.push_back(row.rate.si());
  if (rates.empty()) return false;
  std::sort(rates.begin(), rates.end());
  const std::size_t half = rates.size() / 2;
  const double middle = rates.size() % 2 == 1 ? rates[half] : (rates[half - 1] + rates[half]) / 2;
  profile.numbers[key] = {middle, rates.front() * 0.95, rates.back() * 1.05, factor,
                          published("median of large arrays", part, "memory_kernels.csv")};
  return true;
}

void assume(Profile& profile, std::string_view key, double value, double low, double high,
            Factor factor, std::string source) {
  profile.numbers[std::string(key)] = {
      value, low, high, factor, {Provenance::assumed, std::move(source)}};
}

/// Element-wise bandwidth and copies, from rows where there are any.
void use_memory(Profile& profile, const KernelData& data, std::string_view part) {
  if (!use_rates(profile, data, part, "hbm", "hbm.bandwidth_Bps", Factor::hbm)) {
    const double sheet = data_sheet(part).hbm_bandwidth.si();
    assume(
        profile, "hbm.bandwidth_Bps", 0.86 * sheet, 0.76 * sheet, 0.93 * sheet, Factor::hbm,
        "86 % of the data sheet, between what BabelStream reaches on H100 and H200 (83 to 89 %)");
  }
  const bool pcie4 = part.starts_with("A100");
  const bool coherent = part.starts_with("GH200") || part.starts_with("GB200");
  if (!coherent) {
    const double slot = pcie4 ? 26.3e9 : 52e9;
    const std::string source = fmt::format("pinned copies over PCIe {}.0 x16", pcie4 ? 4 : 5);
    for (const auto& [path, key] : {std::pair{"h2d", "copy.h2d_Bps"}, {"d2h", "copy.d2h_Bps"}})
      if (!use_rates(profile, data, part, path, key, Factor::copy))
        assume(profile, key, slot, 0.85 * slot, 1.08 * slot, Factor::copy, source);
    assume(profile, "copy.staged_Bps", 0.5 * slot, 0.15 * slot, slot, Factor::copy,
           "half of large pinned copies; nobody measured tensor-by-tensor copies apart");
  } else if (part == "GB200") {
    use_rates(profile, data, part, "h2d", "copy.h2d_Bps", Factor::copy);
    use_rates(profile, data, part, "d2h", "copy.d2h_Bps", Factor::copy);
    for (const char* key : {"copy.h2d_Bps", "copy.d2h_Bps"})
      profile.numbers[key].high = 380e9;  // a bare GB300: 359 and 377 GB/s
  }
}

void use_power(Profile& profile, std::string_view part) {
  struct Board {
    std::string_view part;
    double watts;
  };
  constexpr Board kBoards[] = {{"A100-PCIe-80GB", 300}, {"A100-SXM-80GB", 400},
                               {"A100-SXM-40GB", 400},  {"H100-SXM-80GB", 700},
                               {"H200-SXM-141GB", 700}, {"GH200-96GB", 680},
                               {"B200-SXM", 1000},      {"GB200", 1200}};
  for (const Board& board : kBoards)
    if (board.part == part)
      assume(profile, "power.gpu_W", 0.85 * board.watts, 0.6 * board.watts, board.watts,
             Factor::power,
             fmt::format("85 % of the board's power limit of {:.0f} W (data sheet)", board.watts));
}

/// What a training run sustains over short benchmarks, where no run of this part was fitted.
void assume_sustained(Profile& profile, std::string_view part) {
  assume(profile, "gemm.scale", 0.95, 0.85, 1, Factor::gemm,
         "sustained clocks of training, 85 to 100 % of those of benchmarks; no run fitted");
  // H100 and H200 run bf16 products of Llama 70B's sizes (k of 8,192) at about 720 TFLOP/s; the
  // curve follows the best kernels of searches.
  if (part.starts_with("H100") || part.starts_with("H200")) {
    constexpr double kMeasured = 720e12, kWidth = 8192 * 2;
    const double curve = data_sheet(part).peak_bf16.si() * profile.number("gemm.efficiency") /
                         (1 + profile.number("gemm.k_half_B") / kWidth);
    profile.numbers["gemm.scale"] = {
        kMeasured / curve,
        0.85,
        1,
        Factor::gemm,
        {Provenance::published,
         "bf16 products of Llama 70B's sizes at about 720 TFLOP/s on H100 and H200 (SemiAnalysis, "
         "MI300X vs H100 vs H200 training benchmark, December 2024) over the curve, which follows "
         "the best kernels of searches"}};
  }
  // The power limit is the module's, processor included, and each site sets its own.
  if (part.starts_with("GH200"))
    assume(profile, "gemm.scale", 0.75, 0.5, 0.95, Factor::gemm,
           "between what two sites sustain in training: 0.90 on Vista, 0.54 on JUPITER");
  assume(profile, "model.discrepancy", 1, 0.9, 1.1, Factor::model, "no training run fitted");
}

/// [M405] [M406] GPUs that work together.
void use_fleet(Profile& profile) {
  // Sinha et al. 2022, five clusters of V100 and MI60: 8 % between the ends of the box plots, which
  // of a normal distribution are 5.4 standard deviations apart.
  constexpr double kBetweenEnds = 0.08, kDeviationsBetweenEnds = 5.4;
  const double spread = kBetweenEnds / kDeviationsBetweenEnds;
  assume(profile, "gpu.speed_spread", spread, spread / 3, 2 * spread, Factor::gemm,
         "as of V100 and MI60: 8 % between the ends of box plots of compute-bound programs on five "
         "clusters, 5.4 standard deviations (Sinha et al., SC22, arXiv 2208.11035)");
  profile.numbers["gpu.overlap_slowdown"] = {
      0.189,
      0.05,
      0.4,
      Factor::gemm,
      {Provenance::published,
       "computation beside communication takes 18.9 % longer on average, 40 % at most, over "
       "training "
       "on H100, A100, MI210 and MI250 (Lee et al. 2025, arXiv 2507.03114)"}};
}

void use_launch(Profile& profile) {
  assume(profile, "hbm.launch_s", 2.3e-6, 1e-6, 5e-6, Factor::hbm,
         "gap between kernels of a busy stream, as fitted to Hopper GEMM rows");
}

std::vector<AttentionTiming> library(std::vector<AttentionTiming> rows, std::string_view name) {
  std::erase_if(rows, [&](const AttentionTiming& row) { return row.library != name; });
  return rows;
}

/// A100: GEMMs of the PCIe card; attention of both boards.
Profile ampere(const KernelData& data, const Profile& hopper, std::string& report) {
  Profile profile = hopper;
  profile.id = "a100-pcie";
  profile.numbers.erase("gemm.efficiency_fp8");
  use_launch(profile);
  use_memory(profile, data, "A100-PCIe-80GB");
  const spec::Gpu gpu = data_sheet("A100-PCIe-80GB");
  const auto gemms = rows_of(data.gemms, gpu.name);
  const cost::Origin gemm = published("GEMM rows", gpu.name, "gemm_kernels.csv");
  fit_gemm(profile, gemms, gpu, gemm, report);
  fit_groups(profile, gemms, gpu, gemm, report);
  std::vector<AttentionTiming> attention = rows_of(data.attention, gpu.name);
  const auto boards = rows_of(data.attention, "A100-SXM-80GB");
  attention.insert(attention.end(), boards.begin(), boards.end());
  fit_attention(profile, attention, gpu,
                published("attention rows", "both A100 boards", "attention_kernels.csv"), report);
  return profile;
}

Profile ampere_sxm(const Profile& pcie, std::string_view part, const KernelData& data,
                   std::string& report) {
  Profile profile = pcie;
  transfer(profile, pcie, "gemm.", "A100 PCIe", 0.03);
  transfer(profile, pcie, "attention.", "A100 PCIe", 0.03);
  use_memory(profile, data, part);
  // Boards of 40 and 80 GB differ in memory only.
  fit_gemm(profile, rows_of(data.gemms, "A100-SXM-80GB"), data_sheet(part),
           published("GEMM rows", "A100-SXM-80GB", "gemm_kernels.csv"), report);
  return profile;
}

Profile blackwell(const KernelData& data, const Profile& hopper, std::string& report) {
  Profile profile = hopper;
  profile.id = "b200-sxm";
  use_launch(profile);
  use_memory(profile, data, "B200-SXM");
  const spec::Gpu gpu = data_sheet("B200-SXM");
  const auto gemms = rows_of(data.gemms, gpu.name);
  const cost::Origin gemm = published("GEMM rows", gpu.name, "gemm_kernels.csv");
  fit_gemm(profile, gemms, gpu, gemm, report);
  fit_groups(profile, gemms, gpu, gemm, report);
  fit_attention(profile, rows_of(data.attention, gpu.name), gpu,
                published("attention rows", gpu.name, "attention_kernels.csv"), report);
  return profile;
}

Profile grace_blackwell(const Profile& b200, const KernelData& data, std::string& report) {
  Profile profile = b200;
  transfer(profile, b200, "gemm.", "B200", 0.1);
  transfer(profile, b200, "attention.", "B200", 0.1);
  use_memory(profile, data, "GB200");
  // Best shapes found by stas00/ml-engineering: 1,822 of 2,500 TFLOP/s against 1,745 of 2,250.
  constexpr double kBestShapes = (1822.0 / 2500) / (1745.0 / 2250);
  for (double cost::Number::*end : {&cost::Number::value, &cost::Number::low, &cost::Number::high})
    profile.numbers["gemm.efficiency"].*end *= kBestShapes;
  std::vector<GemmRow> rows = rows_of(data.gemms, "GB200");
  std::erase_if(rows, [](const GemmRow& row) { return row.precision != spec::Precision::fp8; });
  fit_gemm(profile, rows, data_sheet("GB200"),
           published("fp8 GEMM rows", "GB200", "gemm_kernels.csv"), report);
  return profile;
}

/// Hopper SXM parts and GH200: GEMMs of Hopper parts; attention of cuDNN 9, with and without mask.
Profile hopper_kernels(const Profile& hopper, const KernelData& data, std::string& report) {
  Profile profile = hopper;
  for (const char* key : {"attention.half_waves", "attention.backward_half_waves"})
    assume(profile, key, 1, 0.5, 2, Factor::attention,
           "between nothing and the 1 to 2 of A100 (TransformerEngine)");
  fit_attention(
      profile, library(rows_of(data.attention, "H100-SXM-80GB"), "cuDNN 9"),
      data_sheet("H100-SXM-80GB"),
      published("cuDNN 9", "H100 SXM", "attention_hopper.csv and calib/data/attention_kernels.csv"),
      report);
  fit_library(profile, "flash2",
              library(rows_of(data.attention, "H100-SXM-80GB"), "FlashAttention-2"),
              data_sheet("H100-SXM-80GB"),
              published("FlashAttention-2", "H100 SXM",
                        "attention_hopper.csv and calib/data/attention_kernels.csv"));
  return profile;
}

enum class Cores { ampere, hopper };

/// [M450] Older flash attention: Triton's from its rows on A100; FlashAttention 1 at half the rate
/// of 2. Hopper's tensor cores are driven as on A100 by all of these, so that the ratios to
/// FlashAttention 2 hold there.
void add_generations(Profile& profile, const Profile& ampere, Cores cores) {
  const bool hopper = cores == Cores::hopper;
  const auto flash2 = [&](const char* key) { return hopper ? profile.number(key) : 1.0; };
  const double forward = flash2("attention.flash2_ratio");
  const double backward = flash2("attention.flash2_backward_ratio");
  // Dao 2023, table 1: 189, 170, 189, 175 against 196, 220, 205, 225 TFLOP/s of GPT 1.3B and 2.7B
  // at 2k and 8k; with FlashAttention 2 at its own rates these differences are ratios of 0.73,
  // 0.48, 0.52 and 0.47.
  const std::string table =
      "training speed with both versions on A100 (Dao 2023, arXiv 2307.08691, table 1): ratios "
      "0.47, 0.48, 0.52 and 0.73";
  for (const auto& [key, share] : {std::pair{"attention.flash1_ratio", forward},
                                   {"attention.flash1_backward_ratio", backward}})
    profile.numbers[key] = {0.5 * share,
                            0.42 * share,
                            0.7 * share,
                            Factor::attention,
                            {hopper ? Provenance::assumed : Provenance::published,
                             hopper ? "to FlashAttention 2 as on A100: " + table : table}};
  for (const auto& [key, share] : {std::pair{"attention.triton_ratio", forward},
                                   {"attention.triton_backward_ratio", backward}}) {
    cost::Number number = ampere.numbers.at(key);
    number.value *= share;
    number.low *= share;
    number.high *= share;
    if (hopper)
      number.origin = {Provenance::assumed,
                       "to FlashAttention 2 as on A100: " + number.origin.source};
    profile.numbers[key] = std::move(number);
  }
}

/// [M451] Products whose rows are not aligned. A100: GPT-2 124M trains 112,046 tokens/s with 50,257
/// words and 127,345 with 50,304 (rasbt/LLMs-from-scratch, ch05/10_llm-training-speed): 1.07 us
/// more per token for 232 MFLOP of the output layer, which takes 1.09 us aligned by this profile
/// and whose short k (768) costs a factor of 1.22.
void add_unaligned(Profile& profile, std::string_view part) {
  constexpr double kAmpere = 0.42;
  const std::string source =
      "GPT-2 124M on A100, 112,046 tokens/s with 50,257 words and 127,345 with 50,304 "
      "(rasbt/LLMs-from-scratch, ch05/10_llm-training-speed), all of it on the output layer";
  if (part.starts_with("A100")) {
    profile.numbers["gemm.unaligned_efficiency"] = {
        kAmpere, 0.3, 0.6, Factor::gemm, {Provenance::published, source}};
    return;
  }
  // 1,410 MHz of A100 against 1,830 of Hopper and 1,850 of Blackwell.
  const spec::Gpu gpu = data_sheet(part), ampere = data_sheet("A100-SXM-80GB");
  const double clock = part.find("B200") != part.npos ? 1850.0 / 1410 : 1830.0 / 1410;
  const double share = kAmpere * static_cast<double>(ampere.peak_bf16 / gpu.peak_bf16) * clock *
                       static_cast<double>(gpu.multiprocessors) /
                       static_cast<double>(ampere.multiprocessors);
  assume(profile, "gemm.unaligned_efficiency", share, 0.6 * share, 1.5 * share, Factor::gemm,
         "as on A100 by multiprocessors and clock, since newer kernels load tensors whose strides "
         "are multiples of 16 bytes only: " +
             source);
}

Profile with_memory(Profile profile, const KernelData& data, std::string_view part) {
  use_memory(profile, data, part);
  return profile;
}

}  // namespace

KernelData kernel_data(const std::filesystem::path& folder) {
  KernelData data{.gemms = grouped_gemm_rows(folder / "gemm_kernels.csv"),
                  .attention = attention_timings(folder / "attention_kernels.csv"),
                  .generations = attention_timings(folder / "attention_generations.csv"),
                  .memory = memory_rows(folder / "memory_kernels.csv")};
  const auto causal = timings_of(attention_rows(folder / "attention_hopper.csv"), "H100-SXM-80GB");
  data.attention.insert(data.attention.end(), causal.begin(), causal.end());
  return data;
}

std::map<std::string, Profile, std::less<>> gpu_profiles(const KernelData& data,
                                                         const Profile& hopper,
                                                         std::string& report) {
  std::map<std::string, Profile, std::less<>> profiles;
  profiles["GH200-96GB"] = hopper_kernels(hopper, data, report);
  for (const char* part : {"H100-SXM-80GB", "H200-SXM-141GB"})
    profiles[part] = with_memory(profiles["GH200-96GB"], data, part);
  profiles["A100-PCIe-80GB"] = ampere(data, hopper, report);
  for (const char* part : {"A100-SXM-80GB", "A100-SXM-40GB"})
    profiles[part] = ampere_sxm(profiles["A100-PCIe-80GB"], part, data, report);
  profiles["B200-SXM"] = blackwell(data, hopper, report);
  profiles["GB200"] = grace_blackwell(profiles["B200-SXM"], data, report);
  transfer(profiles["B200-SXM"], profiles["GB200"], "gemm.efficiency_fp8", "GB200", 0.15);
  const spec::Gpu a100 = data_sheet("A100-SXM-80GB");
  Profile triton = profiles["A100-SXM-80GB"];
  fit_library(triton, "triton", library(data.generations, "Triton"), a100,
              published("Triton", "A100", "attention_generations.csv"));
  for (auto& [part, profile] : profiles) {
    const bool is_hopper = part.find("H100") != part.npos || part.find("H200") != part.npos;
    if (is_hopper || part.starts_with("A100"))
      add_generations(profile, triton, is_hopper ? Cores::hopper : Cores::ampere);
    add_unaligned(profile, part);
    assume_sustained(profile, part);
    use_fleet(profile);
    use_power(profile, part);
  }
  return profiles;
}

}  // namespace scapesim::calib
