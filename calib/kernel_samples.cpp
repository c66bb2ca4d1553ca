// SPDX-License-Identifier: Apache-2.0
#include "calib/kernel_samples.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <map>

namespace scapesim::calib {

using cost::Factor;

namespace {

/// Fewest timings that a fit is made from.
constexpr std::size_t kFewestGemms = 4;

std::optional<spec::Precision> precision_of(std::string_view datatype) {
  struct Word {
    std::string_view part;
    spec::Precision precision;
  };
  using enum spec::Precision;
  constexpr Word kWords[] = {
      {"mxfp8", mxfp8},  {"nvfp4", nvfp4}, {"fp8", fp8},     {"float8", fp8}, {"e4m3", fp8},
      {"e5m2", fp8},     {"bf16", bf16},   {"bfloat", bf16}, {"fp16", fp16},  {"half", fp16},
      {"float16", fp16}, {"tf32", fp32},   {"fp32", fp32},   {"float", fp32}};
  for (const Word& word : kWords)
    if (datatype.find(word.part) != datatype.npos) return word.precision;
  return std::nullopt;
}

/// Words of a text between spaces.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// [M176] Median of timed latencies, range between their extremes.
void set_latency(cost::Profile& profile, const std::string& key, std::vector<double> times,
                 Factor factor, const cost::Origin& origin, std::string& report) {
  if (times.empty()) return;
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  const double value = median(times);
  profile.numbers[key] = {
      value,
      *least,
      *most,
      factor,
      {origin.kind, fmt::format("median of {} samples: {}", times.size(), origin.source)}};
  report += fmt::format("{}: {} samples, median {:.2f} us\n", key, times.size(), 1e6 * value);
}

/// [M176] Launch gaps from tests of empty launches; the start of a copy from copies below 1 MiB,
/// less their size over the rate of large ones.
void fit_latencies(cost::Profile& profile, const std::vector<Observations>& files,
                   const cost::Origin& origin, std::string& report) {
  constexpr Bytes kSmallCopy{1024.0 * 1024};
  std::vector<double> launches;
  std::vector<double> copies;
  for (const Observations& file : files) {
    for (const LatencySample& sample : file.latencies)
      if (sample.name.find("launch") != sample.name.npos) launches.push_back(sample.time.si());
    for (const CopySample& sample : file.copies) {
      const bool in = sample.direction == CopyDirection::host_to_device;
      const bool back = sample.direction == CopyDirection::device_to_host;
      if (!sample.size || *sample.size >= kSmallCopy || !(in || back)) continue;
      if (sample.beside != Beside::nothing) continue;
      const double large = profile.number(in ? "copy.h2d_Bps" : "copy.d2h_Bps");
      const double start = (*sample.size / sample.rate).si() - sample.size->si() / large;
      if (start > 0) copies.push_back(start);
    }
  }
  set_latency(profile, "hbm.launch_s", launches, Factor::hbm, origin, report);
  set_latency(profile, "copy.latency_s", copies, Factor::copy, origin, report);
}

std::size_t groups_in(const std::vector<GemmRow>& rows) {
  return static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [](const GemmRow& row) { return row.shape.groups > 1; }));
}

}  // namespace

std::vector<GemmRow> gemm_rows_in(const std::vector<Observations>& files, int& skipped) {
  std::vector<GemmRow> rows;
  for (const Observations& file : files)
    for (const GemmSample& sample : file.gemms) {
      const auto precision = precision_of(sample.datatype);
      if (!precision) {
        ++skipped;
        continue;
      }
      const cost::Gemm shape{.m = std::llround(sample.m),
                             .n = std::llround(sample.n),
                             .k = std::llround(sample.k),
                             .accumulate_fp32 = sample.accumulate_fp32};
      rows.push_back({.shape = shape,
                      .precision = *precision,
                      .rate = cost::flops_of(shape) / sample.time,
                      .gpu = {}});
    }
  return rows;
}

std::optional<cost::Attention> attention_in(std::string_view shape) {
  std::map<char, std::int64_t> sizes;
  bool causal = false;
  for (const std::string_view word : words_of(shape)) {
    if (word == "causal") {
      causal = true;
      continue;
    }
    std::int64_t size = 0;
    const char* end = word.data() + word.size();
    const auto parsed = std::from_chars(word.data() + 1, end, size);
    if (word.size() < 2 || parsed.ec != std::errc() || parsed.ptr != end || size < 1)
      return std::nullopt;
    sizes[word[0]] = size;
  }
  for (const char needed : {'b', 'h', 's', 'd'})
    if (!sizes.contains(needed)) return std::nullopt;
  const auto optional = [&](char letter) {
    return sizes.contains(letter) ? std::optional(sizes[letter]) : std::nullopt;
  };
  return cost::Attention{.batch = sizes['b'],
                         .sequence = sizes['s'],
                         .heads = sizes['h'],
                         .head_dim = sizes['d'],
                         .causal = causal,
                         .kv_heads = optional('g'),
                         .value_head_dim = optional('v'),
                         .window = optional('w')};
}

std::vector<AttentionTiming> attention_rows_in(const std::vector<Observations>& files) {
  using Passes = AttentionTiming::Passes;
  std::vector<AttentionTiming> rows;
  for (const Observations& file : files)
    for (const KernelSample& sample : file.kernels) {
      const auto shape = attention_in(sample.shape);
      if (sample.kind != KernelClass::attention || !shape) continue;
      AttentionTiming row{.shape = *shape};
      if (sample.name.starts_with("forward"))
        row.passes = Passes::forward;
      else if (sample.name.starts_with("backward"))
        row.passes = Passes::backward;
      else if (sample.name.starts_with("both"))
        row.passes = Passes::both;
      else
        continue;
      row.rate = flops_of(row) / sample.median;
      rows.push_back(std::move(row));
    }
  return rows;
}

void fit_kernels(cost::Profile& profile, const std::vector<Observations>& files,
                 const std::optional<spec::Gpu>& gpu, const cost::Origin& origin,
                 std::string& report, std::vector<std::string>& gaps) {
  fit_latencies(profile, files, origin, report);
  int skipped = 0;
  const std::vector<GemmRow> gemms = gemm_rows_in(files, skipped);
  const std::vector<AttentionTiming> attention = attention_rows_in(files);
  if (skipped > 0)
    gaps.push_back(fmt::format("gemm.*: {} timings of unknown data type left out", skipped));
  if (!gpu) {
    if (!gemms.empty() || !attention.empty())
      gaps.push_back("gemm.*, attention.*: timings need the GPU's peak: give --cluster");
    return;
  }
  if (gemms.size() - groups_in(gemms) >= kFewestGemms)
    fit_gemm(profile, gemms, *gpu, origin, report);
  else if (!gemms.empty())
    gaps.push_back(
        fmt::format("gemm.*: {} timings, at least {} are needed", gemms.size(), kFewestGemms));
  fit_groups(profile, gemms, *gpu, origin, report);
  const std::size_t needed = attention_rows_needed(profile, attention);
  if (!attention.empty() && attention.size() >= needed)
    fit_attention(profile, attention, *gpu, origin, report);
  else if (!attention.empty())
    gaps.push_back(
        fmt::format("attention.*: {} timings, at least {} are needed for their mix of "
                    "widths, lengths and passes",
                    attention.size(), needed));
}

}  // namespace scapesim::calib
