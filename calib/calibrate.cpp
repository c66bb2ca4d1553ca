// SPDX-License-Identifier: Apache-2.0
#include "calib/calibrate.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

#include "calib/collectives.hpp"
#include "calib/kernel_samples.hpp"
#include "calib/training.hpp"
#include "sim/base/error.hpp"
#include "sim/base/unit_text.hpp"

namespace scapesim::calib {

using cost::Factor;
using cost::Provenance;

namespace {

std::string origin_of(const Observations& file) {
  std::string text = file.format + " " + file.file;
  for (const char* key : {"version", "date", "sha256"})
    if (const auto found = file.provenance.find(key); found != file.provenance.end())
      text += fmt::format(", {} {}", key, found->second);
  return text;
}

/// A bench of this project states machine, driver and date: its numbers are measured ones. What
/// other tools' files say is imported.
cost::Origin origin_from(const Observations& file) {
  if (file.format != "bench" || !file.provenance.contains("machine") ||
      !file.provenance.contains("date"))
    return {Provenance::imported, origin_of(file)};
  std::string text = "measured by " + file.file;
  for (const char* key : {"machine", "gpu", "driver", "date", "tool"})
    if (const auto found = file.provenance.find(key); found != file.provenance.end())
      text += fmt::format(", {} {}", key, found->second.empty() ? "unknown" : found->second);
  return {Provenance::measured, text};
}

double quantile(std::vector<double> sorted, double share) {
  std::sort(sorted.begin(), sorted.end());
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// [M87] Median of the rates, range between their 5 % and 95 % quantiles.
void set_rate(Calibration& out, const std::string& key, const std::vector<double>& rates,
              Factor factor, const cost::Origin& origin) {
  if (rates.empty()) return;
  const double value = quantile(rates, 0.5);
  out.profile.numbers[key] = {
      value,
      quantile(rates, 0.05),
      quantile(rates, 0.95),
      factor,
      {origin.kind, fmt::format("median of {} samples: {}", rates.size(), origin.source)}};
  out.report +=
      fmt::format("{}: {} samples, median {}\n", key, rates.size(), text_of(BytesPerSecond(value)));
}

/// Rates of copies of at least this size count as large; where a tool states no size, all do.
constexpr Bytes kLargeCopy{32.0 * 1024 * 1024};
/// Passes over this much memory no longer live in a cache.
constexpr Bytes kLargePass{256.0 * 1024 * 1024};

void use_copies(Calibration& out, const Observations& file) {
  std::vector<double> in;
  std::vector<double> back;
  for (const CopySample& sample : file.copies) {
    if (sample.beside != Beside::nothing || sample.size.value_or(kLargeCopy) < kLargeCopy) continue;
    if (sample.direction == CopyDirection::host_to_device) in.push_back(sample.rate.si());
    if (sample.direction == CopyDirection::device_to_host) back.push_back(sample.rate.si());
  }
  set_rate(out, "copy.h2d_Bps", in, Factor::copy, origin_from(file));
  set_rate(out, "copy.d2h_Bps", back, Factor::copy, origin_from(file));
}

void use_memory(Calibration& out, const Observations& file) {
  std::vector<double> rates;
  for (const MemorySample& sample : file.memory)
    if (sample.bytes >= kLargePass) rates.push_back(sample.rate.si());
  set_rate(out, "hbm.bandwidth_Bps", rates, Factor::hbm, origin_from(file));
}

/// A kernel's rate as a share of the profile's memory bandwidth.
struct KernelPoint {
  double bytes;
  double share;
};

/// [M206] A curve through the medians of groups of about the same traffic (within half): densities
/// and masks of one size. The range is the spread of all points around it.
cost::Curve kernel_curve(std::vector<KernelPoint> points, const cost::Origin& origin) {
  std::ranges::sort(points, {}, &KernelPoint::bytes);
  cost::Curve curve{.x = "traffic_B",
                    .y = "share_of_hbm_bandwidth",
                    .points = {},
                    .factor = Factor::hbm,
                    .origin = origin};
  std::vector<double> ratios;
  for (std::size_t begin = 0, end = 0; begin < points.size(); begin = end) {
    std::vector<double> bytes;
    std::vector<double> shares;
    for (; end < points.size() && points[end].bytes <= 1.5 * points[begin].bytes; ++end) {
      bytes.push_back(points[end].bytes);
      shares.push_back(points[end].share);
    }
    const double middle = quantile(shares, 0.5);
    curve.points.push_back({quantile(bytes, 0.5), middle});
    for (const double share : shares) ratios.push_back(share / middle);
  }
  curve.low_factor = std::min(1.0, quantile(ratios, 0.05));
  curve.high_factor = std::max(1.0, quantile(ratios, 0.95));
  return curve;
}

/// Kernels by the name of a curve that profiles may hold.
void use_kernel_curves(Calibration& out, const Observations& file) {
  const double bandwidth = out.profile.number("hbm.bandwidth_Bps");
  for (const cost::ProfileKey& key : cost::curve_keys()) {
    if (!key.name.starts_with("kernel.")) continue;
    std::vector<KernelPoint> points;
    for (const KernelSample& sample : file.kernels)
      if (sample.bytes && key.name == "kernel." + sample.name)
        points.push_back({sample.bytes->si(), (*sample.bytes / sample.median).si() / bandwidth});
    if (points.empty()) continue;
    const std::size_t count = points.size();
    const auto [curve, inserted] = out.profile.curves.insert_or_assign(
        std::string(key.name), kernel_curve(std::move(points), origin_from(file)));
    out.report += fmt::format("{}: {} samples, {} of hbm.bandwidth_Bps at the largest\n", key.name,
                              count, fmt::format("{:.3f}", curve->second.points.back()[1]));
  }
}

void add_residuals(Calibration& out, std::vector<ResidualSet> sets) {
  std::ranges::move(sets, std::back_inserter(out.residuals));
}

void use_kernels(Calibration& out, const CalibrationInput& input) {
  cost::Origin origin{Provenance::measured, {}};
  for (const Observations& file : input.observations) {
    if (file.gemms.empty() && file.kernels.empty() && file.latencies.empty() && file.copies.empty())
      continue;
    const cost::Origin one = origin_from(file);
    origin.kind = std::max(origin.kind, one.kind);  // the weakest of them
    origin.source += (origin.source.empty() ? "" : "; ") + one.source;
  }
  const auto gpu = input.cluster ? std::optional(input.cluster->gpu) : std::nullopt;
  fit_kernels(out.profile, input.observations, gpu, origin, out.report, out.gaps);
  if (!gpu) return;
  int skipped = 0;
  add_residuals(out, residuals_of(out.profile, gemm_rows_in(input.observations, skipped),
                                  attention_rows_in(input.observations), *gpu));
}

void use_collectives(Calibration& out, const CalibrationInput& input) {
  std::vector<CollectiveSample> samples;
  std::string source;
  for (const Observations& file : input.observations) {
    if (file.collectives.empty()) continue;
    samples.insert(samples.end(), file.collectives.begin(), file.collectives.end());
    source += (source.empty() ? "" : "; ") + origin_of(file);
  }
  if (samples.empty())
    out.gaps.push_back("network.*: no timed collectives");
  else if (!input.cluster)
    out.gaps.push_back("network.*: collectives need the links they ran on: give --cluster");
  else {
    fit_collectives(out.profile, samples, *input.cluster, source, out.report, out.gaps);
    int unusable = 0;
    add_residuals(out, residuals_of(out.profile, timed_calls(samples, *input.cluster, unusable),
                                    *input.cluster));
  }
}

void use_logs(Calibration& out, const CalibrationInput& input) {
  std::vector<TrainingRun> runs;
  std::string source;
  for (const TrainingLog& log : input.logs) {
    const auto step = steady_step_time(log.observations);
    const auto communication = communication_time(log.observations);
    if (!step || !communication) {
      out.gaps.push_back(
          fmt::format("{}: {}", log.observations.file,
                      step ? "no communication timers (--timing-log-level 2)" : "no step times"));
      continue;
    }
    if (*communication >= *step) {
      out.gaps.push_back(log.observations.file +
                         ": its communication timers add up to more than the step (overlapped?)");
      continue;
    }
    runs.push_back({.scenario = log.scenario,
                    .computation = *step - *communication,
                    .communication = *communication});
    source += (source.empty() ? "" : "; ") +
              fmt::format("{} ({} GPUs)", origin_of(log.observations), log.scenario.cluster.gpus);
  }
  if (runs.size() < 3) {
    if (!runs.empty())
      out.gaps.push_back("training logs: fewer than 3 with timers; two numbers need three rows");
    return;
  }
  const cost::Origin origin = {Provenance::imported, source};
  fit_transport(out.profile, runs, origin, out.report);
  fit_computation(out.profile, runs, origin, out.report);
  add_residuals(out, residuals_of(out.profile, runs));
}

}  // namespace

std::optional<Seconds> steady_step_time(const Observations& log) {
  std::vector<double> times;
  for (const StepSample& step : log.steps)
    if (step.step_time) times.push_back(step.step_time->si());
  if (times.empty()) return std::nullopt;
  const std::size_t warmup = times.size() >= 10 ? std::max<std::size_t>(2, times.size() / 10) : 0;
  return Seconds(quantile({times.begin() + static_cast<std::ptrdiff_t>(warmup), times.end()}, 0.5));
}

std::optional<Seconds> communication_time(const Observations& log) {
  std::vector<double> sums;
  for (const StepSample& step : log.steps) {
    double sum = 0;
    for (const auto& [name, time] : step.timers)
      for (const char* word : {"all-reduce", "reduce-scatter", "all-gather", "all-grads-sync"})
        if (name.find(word) != name.npos) {
          sum += time.si();
          break;
        }
    if (sum > 0) sums.push_back(sum);
  }
  if (sums.empty()) return std::nullopt;
  return Seconds(quantile(sums, 0.5));
}

Calibration calibrate(const CalibrationInput& input) {
  Calibration out{.profile = input.base, .report = {}, .residuals = {}, .gaps = {}};
  out.profile.id = input.id;
  out.profile.note =
      "Based on " + input.base.id + "; numbers of provenance imported come from logs.";
  for (const Observations& file : input.observations) {
    use_copies(out, file);
    use_memory(out, file);
    use_kernel_curves(out, file);
  }
  use_kernels(out, input);
  use_collectives(out, input);
  use_logs(out, input);
  if (out.report.empty()) {
    Problems problems;
    std::string why;
    for (const std::string& gap : out.gaps) why += (why.empty() ? "" : "; ") + gap;
    problems.add({}, "INPUT", "nothing in the input could be used", why);
    problems.raise();
  }
  // What is written must be readable: ranges of all keys hold for fitted numbers too.
  cost::parse_profile(cost::profile_json(out.profile), input.id + ".json");
  return out;
}

}  // namespace scapesim::calib
