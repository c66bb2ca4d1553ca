// SPDX-License-Identifier: Apache-2.0
#include "calib/gpu_kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "sim/base/check.hpp"
#include "sim/base/named.hpp"

namespace scapesim::calib {

using cost::Factor;
using cost::Number;
using cost::Profile;
using Eigen::VectorXd;

namespace {

constexpr double kRange90 = 1.645;
/// Ranges are so much wider than standard errors say: tiles and waves bend the model inside them.
/// Found by simulation (tests/unit/calib/gpu_kernels.cpp), which wants 1.3 for wave_share.
constexpr double kBends = 1.35;
/// Ranges end here: rows that tell a parameter no better than this do not tell it.
constexpr double kWidest = 2;

/// [M81] Ratio of a fitted value's 90 % range ends to the value.
double range_of(const Fit& fit, Eigen::Index i) {
  return std::min(std::exp(kBends * kRange90 * fit.standard_error[i] / fit.value[i]), kWidest);
}

/// A number of the profile that a fit moves, from a thousandth of `start` to `highest`.
struct Parameter {
  std::string key;
  double highest = 1;
  Factor factor = Factor::gemm;
  double start = 1;        ///< where the profile has none
  double least_ratio = 1;  ///< of the range's ends to the value
};

double bounded(const Parameter& parameter, double value) {
  return std::clamp(value, 1e-3 * parameter.start, parameter.highest);
}

VectorXd start_of(const Profile& profile, const std::vector<Parameter>& parameters) {
  VectorXd start(static_cast<Eigen::Index>(parameters.size()));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    const double value =
        profile.has(parameter.key) ? profile.number(parameter.key) : parameter.start;
    start[static_cast<Eigen::Index>(i)] = bounded(parameter, value);
  }
  return start;
}

void put(Profile& profile, const std::vector<Parameter>& parameters, const VectorXd& at) {
  for (std::size_t i = 0; i < parameters.size(); ++i)
    profile.numbers[parameters[i].key].value =
        bounded(parameters[i], at[static_cast<Eigen::Index>(i)]);
}

/// Values with the 90 % ranges of their standard errors, inside the key's bounds.
void put_fitted(Profile& profile, const std::vector<Parameter>& parameters, const Fit& fit,
                const cost::Origin& origin) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto at = static_cast<Eigen::Index>(i);
    const double highest = parameters[i].highest;
    const double value = bounded(parameters[i], fit.value[at]);
    const double ratio = std::max(range_of(fit, at), parameters[i].least_ratio);
    profile.numbers[parameters[i].key] = {value, value / ratio, std::min(value * ratio, highest),
                                          parameters[i].factor, origin};
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// What the fit leaves: text for the origin and the report.
std::string residuals_of(const VectorXd& predicted, const VectorXd& measured) {
  std::vector<double> errors;
  for (Eigen::Index i = 0; i < predicted.size(); ++i)
    errors.push_back(std::abs(predicted[i] / measured[i] - 1));
  return fmt::format("{} rows, median {:.1f} %, rms {:.1f} %, worst {:.1f} %", errors.size(),
                     100 * median(errors),
                     100 * (predicted.array() / measured.array() - 1).matrix().norm() /
                         std::sqrt(static_cast<double>(errors.size())),
                     100 * *std::max_element(errors.begin(), errors.end()));
}

/// Ratio of a 90 % range's ends to the value, from the median residual; the tails do not count.
double spread_of(const VectorXd& predicted, const VectorXd& measured) {
  constexpr double kDeviation = 1.4826;  // over the median magnitude, for a normal distribution
  std::vector<double> errors;
  for (Eigen::Index i = 0; i < predicted.size(); ++i)
    errors.push_back(std::abs(std::log(predicted[i] / measured[i])));
  return std::exp(kBends * kRange90 * kDeviation * median(errors));
}

cost::Origin with_text(const cost::Origin& source, const std::string& residuals) {
  return {source.kind, fmt::format("{}: {}", source.source, residuals)};
}

std::string values_of(const Profile& profile, const std::vector<Parameter>& parameters) {
  std::string text;
  for (const Parameter& parameter : parameters)
    text += fmt::format("{}{} {:.4g}", text.empty() ? "" : ", ", parameter.key,
                        profile.number(parameter.key));
  return text;
}

Profile unscaled(const Profile& profile) {
  Profile short_benchmark = profile;
  short_benchmark.numbers["gemm.scale"].value = 1;
  return short_benchmark;
}

VectorXd gemm_times(const Profile& profile, const std::vector<GemmRow>& rows,
                    const spec::Gpu& gpu) {
  std::map<spec::Precision, cost::KernelCosts> costs;
  VectorXd times(static_cast<Eigen::Index>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto [found, fresh] =
        costs.try_emplace(rows[i].precision, profile, gpu, rows[i].precision);
    times[static_cast<Eigen::Index>(i)] = found->second.time(rows[i].shape).si();
  }
  return times;
}

VectorXd measured_times(const std::vector<GemmRow>& rows) {
  VectorXd times(static_cast<Eigen::Index>(rows.size()));
  for (std::size_t i = 0; i < rows.size(); ++i)
    times[static_cast<Eigen::Index>(i)] = (cost::flops_of(rows[i].shape) / rows[i].rate).si();
  return times;
}

std::string efficiency_key(spec::Precision precision) {
  switch (precision) {
    case spec::Precision::fp32:
      return "gemm.efficiency_tf32";
    case spec::Precision::fp16:
    case spec::Precision::bf16:
      return "gemm.efficiency";
    case spec::Precision::fp8:
      return "gemm.efficiency_fp8";
    case spec::Precision::mxfp8:
      return "gemm.efficiency_mxfp8";
    case spec::Precision::nvfp4:
      return "gemm.efficiency_nvfp4";
  }
  throw InternalError("precision");
}

std::vector<Parameter> gemm_parameters(const Profile& profile, const std::vector<GemmRow>& rows) {
  constexpr std::size_t kRowsPerParameter = 6;
  std::set<std::string> efficiencies;
  std::size_t added = 0;
  for (const GemmRow& row : rows) {
    efficiencies.insert(efficiency_key(row.precision));
    added += row.shape.accumulate_fp32;
  }
  std::vector<Parameter> list;
  for (const std::string& key : efficiencies)
    list.push_back({key, 1, Factor::gemm, profile.number("gemm.efficiency")});
  const auto add = [&](Parameter parameter) {
    if ((list.size() + 1) * kRowsPerParameter <= rows.size()) list.push_back(std::move(parameter));
  };
  const double k_half = profile.number("gemm.k_half_B");
  add({"gemm.k_half_B", 1e5, Factor::gemm, 300});
  if (added >= kRowsPerParameter)
    add({"gemm.k_half_accumulate_B", 1e5, Factor::gemm, std::max(k_half, 300.0)});
  add({"gemm.wave_share", 1, Factor::gemm, 0.9});
  // Few rows take the small tile, and which ones changes with its rate.
  add({"gemm.small_tile_efficiency", 1, Factor::gemm, 0.9, 1.1});
  return list;
}

std::vector<GemmRow> rows_where(const std::vector<GemmRow>& rows,
                                const std::function<bool(const GemmRow&)>& wanted) {
  std::vector<GemmRow> some;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(some), wanted);
  return some;
}

}  // namespace

spec::Gpu data_sheet(std::string_view part) {
  struct Sheet {
    std::string_view name;
    double bf16, fp8, tf32, hbm;  // FLOP/s dense and B/s
    int multiprocessors;
  };
  // NVIDIA's data sheets and architecture papers; dense rates are half of those with sparsity.
  constexpr Sheet kSheets[] = {
      {"A100-PCIe-80GB", 312e12, 0, 156e12, 1.935e12, 108},
      {"A100-SXM-80GB", 312e12, 0, 156e12, 2.039e12, 108},
      {"A100-SXM-40GB", 312e12, 0, 156e12, 1.555e12, 108},
      {"H100-SXM-80GB", 989.4e12, 1978.9e12, 494.7e12, 3.35e12, 132},
      {"H200-SXM-141GB", 989.4e12, 1978.9e12, 494.7e12, 4.8e12, 132},
      {"H800-SXM", 989.4e12, 1978.9e12, 494.7e12, 3.35e12, 132},
      {"GH200-96GB", 989.4e12, 1978.9e12, 494.7e12, 4.0e12, 132},
      {"B200-SXM", 2250e12, 4500e12, 1125e12, 8e12, 148},
      {"GB200", 2500e12, 5000e12, 1250e12, 8e12, 152},
  };
  for (const Sheet& sheet : kSheets) {
    if (sheet.name != part) continue;
    spec::Gpu gpu;
    gpu.name = part;
    gpu.peak_bf16 = FlopsPerSecond(sheet.bf16);
    gpu.peak_fp8 = FlopsPerSecond(sheet.fp8);
    gpu.peak_tf32 = FlopsPerSecond(sheet.tf32);
    gpu.hbm_bandwidth = BytesPerSecond(sheet.hbm);
    gpu.multiprocessors = sheet.multiprocessors;
    return gpu;
  }
  throw InternalError(fmt::format("no data sheet of {}", part));
}

Seconds time_of(const GemmRow& row, const Profile& profile, const spec::Gpu& gpu) {
  return cost::KernelCosts(unscaled(profile), gpu, row.precision).time(row.shape);
}

void fit_gemm(Profile& profile, const std::vector<GemmRow>& rows, const spec::Gpu& gpu,
              const cost::Origin& source, std::string& report) {
  const auto single = rows_where(rows, [](const GemmRow& row) { return row.shape.groups == 1; });
  const std::vector<Parameter> parameters = gemm_parameters(profile, single);
  SCAPESIM_CHECK(single.size() > parameters.size(), "{} rows", single.size());
  Profile candidate = unscaled(profile);
  const Model model = [&](const VectorXd& at) {
    put(candidate, parameters, at);
    return gemm_times(candidate, single, gpu);
  };
  const VectorXd measured = measured_times(single);
  const Fit fit = fit_positive_robust(model, measured, start_of(profile, parameters));
  const std::string residuals = residuals_of(model(fit.value), measured);
  put_fitted(profile, parameters, fit, with_text(source, residuals));
  report +=
      fmt::format("gemm on {}: {}: {}\n", gpu.name, residuals, values_of(profile, parameters));
}

void fit_groups(Profile& profile, const std::vector<GemmRow>& rows, const spec::Gpu& gpu,
                const cost::Origin& source, std::string& report) {
  const auto grouped = rows_where(rows, [](const GemmRow& row) { return row.shape.groups > 1; });
  const std::vector<Parameter> parameters = {
      {"gemm.group_launch_s", 1e-3, Factor::gemm, profile.number("hbm.launch_s")}};
  if (grouped.size() <= parameters.size()) return;
  Profile candidate = unscaled(profile);
  const Model model = [&](const VectorXd& at) {
    put(candidate, parameters, at);
    return gemm_times(candidate, grouped, gpu);
  };
  const VectorXd measured = measured_times(grouped);
  const Fit fit = fit_positive_robust(model, measured, start_of(profile, parameters));
  const std::string residuals = residuals_of(model(fit.value), measured);
  put_fitted(profile, parameters, fit, with_text(source, residuals));
  report += fmt::format("grouped gemm on {}: {}: {}\n", gpu.name, residuals,
                        values_of(profile, parameters));
}

namespace {

using Passes = AttentionTiming::Passes;

/// Parameters of the attention fit; lengths in tokens.
struct AttentionModel {
  std::vector<std::int64_t> widths;  ///< with a share each, in kSampledHeadDims
  bool lengths = false;              ///< short and long rows: the rise over keys can be told
  bool grids = false;                ///< few and many blocks: so can what few blocks cost
  bool unmasked = false;             ///< without a mask too: so can its edge
  bool backward = false;             ///< rows time it
  double half_keys = 0;              ///< where lengths do not tell it

  Eigen::Index size() const {
    return static_cast<Eigen::Index>(widths.size()) + lengths + grids + unmasked + backward +
           (backward && grids);
  }
};

std::string curve_key(std::int64_t width) { return fmt::format("attention.forward.d{}", width); }

/// Share of peak over the keys of a query: rises to `most` with `half` keys half way.
std::vector<std::array<double, 2>> saturating(double most, double half) {
  std::vector<std::array<double, 2>> points;
  for (double keys = 512; keys <= 131'072; keys *= 2)
    points.push_back({keys, std::min(most * keys / (keys + half), 1.0)});
  return points;
}

/// The widths whose curves the rows' head widths lie between.
std::vector<std::int64_t> widths_of(const std::vector<AttentionTiming>& rows) {
  std::set<std::int64_t> found;
  const auto& sampled = cost::kSampledHeadDims;
  for (const AttentionTiming& row : rows) {
    const std::int64_t width =
        (row.shape.head_dim + row.shape.value_head_dim.value_or(row.shape.head_dim)) / 2;
    const auto* const above = std::lower_bound(sampled.begin(), sampled.end(), width);
    found.insert(above == sampled.end() ? sampled.back() : *above);
    if (above != sampled.begin() && above != sampled.end() && *above != width)
      found.insert(*(above - 1));
  }
  return {found.begin(), found.end()};
}

/// [M173] The profile with the curves and numbers of a point of the parameter space. Order: shares
/// by width, keys to half rate, waves to half rate, tokens over the edge, backward ratio and waves.
void put(Profile& profile, const AttentionModel& model, const VectorXd& at,
         const cost::Origin& origin) {
  const auto number = [&](std::string_view key, double value) {
    profile.numbers[std::string(key)] = {value, value, value, Factor::attention, origin};
  };
  Eigen::Index i = 0;
  std::map<std::int64_t, double> shares;
  for (const std::int64_t width : model.widths) shares[width] = std::min(at[i++], 1.0);
  const double half_keys = model.lengths ? at[i++] : model.half_keys;
  if (model.grids) number("attention.half_waves", at[i++]);
  const double edge = model.unmasked ? at[i++] : 0;
  if (model.unmasked) number("attention.diagonal_tokens", edge);
  if (model.backward) number("attention.backward_ratio", std::min(at[i++], 2.0));
  if (model.backward && model.grids) number("attention.backward_half_waves", at[i++]);
  for (const auto& [width, share] : shares) {
    cost::Curve& curve = profile.curves[curve_key(width)];
    curve.points = saturating(share, half_keys + edge);
  }
}

/// The numbers of put() with the 90 % ranges of their standard errors.
void put_ranges(Profile& profile, const AttentionModel& model, const Fit& fit) {
  Eigen::Index i = static_cast<Eigen::Index>(model.widths.size()) + model.lengths;
  const auto range = [&](std::string_view key) {
    Number& number = profile.numbers.at(std::string(key));
    const double ratio = range_of(fit, i);
    number.low = number.value / ratio;
    number.high = number.value * ratio;
    ++i;
  };
  if (model.grids) range("attention.half_waves");
  if (model.unmasked) range("attention.diagonal_tokens");
  if (model.backward) range("attention.backward_ratio");
  if (model.backward && model.grids) range("attention.backward_half_waves");
}

VectorXd start_of(const Profile& profile, const AttentionModel& model) {
  VectorXd start(model.size());
  Eigen::Index i = 0;
  for (const std::int64_t width : model.widths)
    start[i++] = profile.curve(curve_key(width)).points.back()[1];
  if (model.lengths) start[i++] = 200;
  if (model.grids) start[i++] = 0.5;
  if (model.unmasked) start[i++] = 200;
  if (model.backward) start[i++] = profile.number("attention.backward_ratio");
  if (model.backward && model.grids) start[i++] = 0.5;
  return start;
}

/// What the rows can tell.
AttentionModel model_of(const Profile& profile, const std::vector<AttentionTiming>& rows) {
  AttentionModel model{.widths = widths_of(rows)};
  double shortest = std::numeric_limits<double>::infinity();
  double fewest = shortest, longest = 0, most = 0;
  for (const AttentionTiming& row : rows) {
    const auto keys = static_cast<double>(row.shape.sequence);
    const double blocks = keys * static_cast<double>(row.shape.batch * row.shape.heads);
    shortest = std::min(shortest, keys);
    longest = std::max(longest, keys);
    fewest = std::min(fewest, blocks);
    most = std::max(most, blocks);
    model.backward |= row.passes != Passes::forward;
    model.unmasked |= !row.shape.causal;
  }
  model.lengths = shortest <= 1024 && longest >= 4096;
  model.grids = most >= 8 * fewest;
  const cost::Curve& curve = profile.curve(curve_key(model.widths.back()));
  const auto& [keys, share] = curve.points.front();
  model.half_keys = keys * (curve.points.back()[1] / share - 1);
  return model;
}

/// Widths without rows keep their rate over that of the nearest width with rows.
void follow(Profile& profile, const Profile& before, const std::vector<std::int64_t>& widths,
            const cost::Origin& origin) {
  for (const std::int64_t width : cost::kSampledHeadDims) {
    if (std::find(widths.begin(), widths.end(), width) != widths.end()) continue;
    const std::int64_t near = *std::min_element(
        widths.begin(), widths.end(),
        [&](std::int64_t a, std::int64_t b) { return std::abs(a - width) < std::abs(b - width); });
    cost::Curve& curve = profile.curves[curve_key(width)];
    curve = profile.curve(curve_key(near));
    for (auto& [keys, share] : curve.points)
      share = std::min(
          share * before.curve(curve_key(width)).at(keys) / before.curve(curve_key(near)).at(keys),
          1.0);
    curve.low_factor *= 0.85;
    curve.high_factor *= 1.15;
    curve.origin = {cost::Provenance::assumed,
                    fmt::format("heads of {} scaled as {} to {} on Hopper; {}", near, width, near,
                                origin.source)};
  }
}

}  // namespace

std::size_t attention_rows_needed(const Profile& profile,
                                  const std::vector<AttentionTiming>& rows) {
  return rows.empty() ? 1 : static_cast<std::size_t>(model_of(profile, rows).size()) + 1;
}

Flops flops_of(const AttentionTiming& row) {
  const Flops forward = cost::flops_of(row.shape);
  // Tables count the backward pass as 2.5 times the forward pass, whatever the widths.
  switch (row.passes) {
    case Passes::forward:
      return forward;
    case Passes::backward:
      return 2.5 * forward;
    case Passes::both:
      return 3.5 * forward;
  }
  throw InternalError("passes");
}

Seconds time_of(const AttentionTiming& row, const cost::KernelCosts& costs) {
  cost::Attention backward = row.shape;
  backward.backward = true;
  Seconds time;
  if (row.passes != Passes::backward) time += costs.time(row.shape);
  if (row.passes != Passes::forward) time += costs.time(backward);
  return time;
}

namespace {

/// The median ratio as a number whose range holds all of them.
void put_library(Profile& profile, const std::string& key, std::vector<double> ratios,
                 const cost::Origin& source) {
  if (ratios.empty()) return;
  const auto [low, high] = std::ranges::minmax(ratios);
  const std::string text =
      fmt::format("{}: median of {} rows, range their extremes", source.source, ratios.size());
  profile.numbers[key] = {
      median(std::move(ratios)), low, high, Factor::attention, {source.kind, text}};
}

}  // namespace

void fit_library(Profile& profile, std::string_view name, const std::vector<AttentionTiming>& rows,
                 const spec::Gpu& gpu, const cost::Origin& source) {
  const cost::KernelCosts costs(profile, gpu, spec::Precision::bf16);
  const std::string key = fmt::format("attention.{}", name);
  const auto measured = [](const AttentionTiming& row) { return flops_of(row) / row.rate; };
  std::vector<double> forward, backward;
  for (const AttentionTiming& row : rows)
    if (row.passes == Passes::forward) forward.push_back(costs.time(row.shape) / measured(row));
  put_library(profile, key + "_ratio", forward, source);
  const double ratio = forward.empty() ? 1 : profile.number(key + "_ratio");
  for (const AttentionTiming& row : rows) {
    if (row.passes == Passes::forward) continue;
    cost::Attention other = row.shape;
    other.backward = true;
    Seconds alone = measured(row);
    if (row.passes == Passes::both) alone = alone - costs.time(row.shape) / ratio;
    if (alone > Seconds(0)) backward.push_back(costs.time(other) / alone);
  }
  put_library(profile, key + "_backward_ratio", backward, source);
}

void fit_attention(Profile& profile, const std::vector<AttentionTiming>& rows, const spec::Gpu& gpu,
                   const cost::Origin& source, std::string& report) {
  const AttentionModel shape = model_of(profile, rows);
  const auto count = static_cast<Eigen::Index>(rows.size());
  SCAPESIM_CHECK(count > shape.size(), "{} rows", count);
  const Profile before = profile;
  VectorXd measured(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const AttentionTiming& row = rows[static_cast<std::size_t>(i)];
    measured[i] = (flops_of(row) / row.rate).si();
  }
  const Model model = [&](const VectorXd& at) {
    put(profile, shape, at, source);
    const cost::KernelCosts costs(profile, gpu, spec::Precision::bf16);
    VectorXd times(count);
    for (Eigen::Index i = 0; i < count; ++i)
      times[i] = time_of(rows[static_cast<std::size_t>(i)], costs).si();
    return times;
  };
  const Fit fit = fit_positive_robust(model, measured, start_of(profile, shape));
  const std::string residuals = residuals_of(model(fit.value), measured);
  const cost::Origin origin = with_text(source, residuals);
  const double spread = spread_of(model(fit.value), measured);
  put(profile, shape, fit.value, origin);
  put_ranges(profile, shape, fit);
  for (const std::int64_t width : shape.widths) {
    cost::Curve& curve = profile.curves[curve_key(width)];
    curve.x = "keys_per_query";
    curve.y = "share_of_dense_bf16_peak";
    curve.low_factor = 1 / spread;
    curve.high_factor = spread;
    curve.factor = Factor::attention;
    curve.origin = origin;
  }
  follow(profile, before, shape.widths, source);
  report += fmt::format("attention on {}: {}\n", gpu.name, residuals);
}

}  // namespace scapesim::calib
