// SPDX-License-Identifier: Apache-2.0
// Kernel numbers are recovered from timings that they made, with noise and outliers: [M171] GEMM,
// [M172] groups, [M173] attention; siblings pass on what no row tells [M174].
#include "calib/gpu_kernels.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "calib/shipped_gpus.hpp"
#include "sim/base/error.hpp"
#include "sim/base/file.hpp"
#include "sim/base/random.hpp"
#include "tests/support/profile.hpp"

using namespace scapesim;
using namespace scapesim::test;
using calib::AttentionTiming;
using calib::GemmRow;

namespace {

constexpr std::string_view kPart = "A100-PCIe-80GB";
const cost::Origin kMadeUp = {cost::Provenance::published, "made up"};

/// Noise of 3 % and, every twentieth time, a factor of 2 either way.
double disturbance(Random& random) {
  const double noise = 0.03 * (random.uniform() + random.uniform() + random.uniform() - 1.5) * 2;
  if (random.below(20) != 0) return std::exp(noise);
  return random.below(2) == 0 ? 2.0 : 0.5;
}

void set_or_add(cost::Profile& profile, const std::string& key, double value) {
  profile.numbers[key] = exactly(value, cost::Factor::gemm);
}

cost::Profile gemm_truth() {
  cost::Profile truth = cost::load_profile("gh200-datasheet", {});
  set_or_add(truth, "gemm.efficiency", 0.75);
  set_or_add(truth, "gemm.k_half_B", 300);
  set_or_add(truth, "gemm.k_half_accumulate_B", 700);
  set_or_add(truth, "gemm.wave_share", 0.6);
  set_or_add(truth, "gemm.small_tile_efficiency", 0.85);
  set_or_add(truth, "gemm.group_launch_s", 4e-6);
  return truth;
}

std::vector<GemmRow> timed_gemms() {
  std::vector<GemmRow> rows =
      calib::grouped_gemm_rows(data_folder() / "calib/data/gemm_kernels.csv");
  std::erase_if(rows, [](const GemmRow& row) { return row.gpu != kPart; });
  return rows;
}

/// The rows as the profile would have them timed; `disturb` multiplies every rate.
template <typename Disturb>
void time_by(const cost::Profile& truth, std::vector<GemmRow>& rows, Disturb disturb) {
  for (GemmRow& row : rows)
    row.rate = cost::flops_of(row.shape) * disturb() /
               calib::time_of(row, truth, calib::data_sheet(kPart));
}

/// Whether the truth lies in the stated range, by key.
void count_inside(const cost::Profile& fitted, const cost::Profile& truth,
                  std::initializer_list<const char*> keys, std::map<std::string, int>& inside) {
  for (const char* key : keys) {
    const cost::Number& number = fitted.numbers.at(key);
    const double value = truth.number(key);
    inside[key] += number.low <= value && value <= number.high;
  }
}

}  // namespace

TEST_CASE("[M171] [M172] GEMM numbers are recovered from exact rates") {
  const cost::Profile truth = gemm_truth();
  std::vector<GemmRow> rows = timed_gemms();
  time_by(truth, rows, [] { return 1.0; });
  cost::Profile fitted = cost::load_profile("gh200-datasheet", {});
  std::string report;
  calib::fit_gemm(fitted, rows, calib::data_sheet(kPart), kMadeUp, report);
  calib::fit_groups(fitted, rows, calib::data_sheet(kPart), kMadeUp, report);
  for (const char* key : {"gemm.efficiency", "gemm.k_half_B", "gemm.k_half_accumulate_B",
                          "gemm.wave_share", "gemm.small_tile_efficiency", "gemm.group_launch_s"}) {
    INFO(key);
    CHECK(fitted.number(key) == Approx(truth.number(key)).epsilon(1e-2));
  }
  CHECK_FALSE(report.empty());
}

TEST_CASE("[M171] noise and outliers: every GEMM number inside its range in 90 of 100 seeds") {
  const cost::Profile truth = gemm_truth();
  const cost::Profile base = cost::load_profile("gh200-datasheet", {});
  std::vector<GemmRow> rows = timed_gemms();
  std::map<std::string, int> inside;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    time_by(truth, rows, [&] { return disturbance(random); });
    cost::Profile fitted = base;
    std::string report;
    calib::fit_gemm(fitted, rows, calib::data_sheet(kPart), kMadeUp, report);
    calib::fit_groups(fitted, rows, calib::data_sheet(kPart), kMadeUp, report);
    count_inside(fitted, truth,
                 {"gemm.efficiency", "gemm.k_half_B", "gemm.k_half_accumulate_B", "gemm.wave_share",
                  "gemm.small_tile_efficiency", "gemm.group_launch_s"},
                 inside);
  }
  for (const auto& [key, count] : inside) {
    INFO(key);
    CHECK(count >= 90);
  }
}

TEST_CASE("[M171] few rows move the efficiency only; a scale of the machine stays out of it") {
  const cost::Profile truth = gemm_truth();
  std::vector<GemmRow> rows = timed_gemms();
  rows.resize(6);
  time_by(truth, rows, [] { return 1.0; });
  cost::Profile fitted = truth;
  set(fitted, "gemm.efficiency", 0.5);
  set(fitted, "gemm.scale", 0.7);
  std::string report;
  calib::fit_gemm(fitted, rows, calib::data_sheet(kPart), kMadeUp, report);
  CHECK(fitted.number("gemm.efficiency") == Approx(0.75).epsilon(1e-3));
  CHECK(fitted.number("gemm.k_half_B") == truth.number("gemm.k_half_B"));
  CHECK(fitted.number("gemm.scale") == 0.7);
}

namespace {

/// Saturating curves as the fit samples them, and what few blocks and the mask's edge cost.
cost::Profile attention_truth() {
  cost::Profile truth = cost::load_profile("gh200-datasheet", {});
  const auto curve = [&](const char* key, double most) {
    auto& points = truth.curves.at(key).points;
    points.clear();
    for (double keys = 512; keys <= 131'072; keys *= 2)
      points.push_back({keys, most * keys / (keys + 450)});
  };
  curve("attention.forward.d64", 0.6);
  curve("attention.forward.d128", 0.7);
  curve("attention.forward.d256", 0.5);
  for (const auto& [key, value] : {std::pair{"attention.diagonal_tokens", 300.0},
                                   {"attention.half_waves", 1.5},
                                   {"attention.backward_half_waves", 0.8},
                                   {"attention.backward_ratio", 0.8}})
    truth.numbers[key] = exactly(value, cost::Factor::attention);
  return truth;
}

std::vector<AttentionTiming> timed_attention(const cost::Profile& truth, Random* random) {
  std::vector<AttentionTiming> rows =
      calib::attention_timings(data_folder() / "calib/data/attention_kernels.csv");
  std::erase_if(rows, [](const AttentionTiming& row) { return !row.gpu.starts_with("A100"); });
  const cost::KernelCosts costs(truth, calib::data_sheet(kPart), spec::Precision::bf16);
  for (AttentionTiming& row : rows)
    row.rate = calib::flops_of(row) * (random != nullptr ? disturbance(*random) : 1.0) /
               calib::time_of(row, costs);
  return rows;
}

}  // namespace

TEST_CASE("[M173] attention numbers and curves are recovered from exact rates") {
  const cost::Profile truth = attention_truth();
  cost::Profile fitted = cost::load_profile("gh200-datasheet", {});
  std::string report;
  calib::fit_attention(fitted, timed_attention(truth, nullptr), calib::data_sheet(kPart), kMadeUp,
                       report);
  for (const char* key : {"attention.diagonal_tokens", "attention.half_waves",
                          "attention.backward_half_waves", "attention.backward_ratio"}) {
    INFO(key);
    CHECK(fitted.number(key) == Approx(truth.number(key)).epsilon(1e-2));
  }
  for (const auto& [key, curve] : truth.curves) {
    INFO(key);
    CHECK(fitted.curve(key).at(2048) == Approx(curve.at(2048)).epsilon(1e-2));
  }
}

TEST_CASE("[M173] noise and outliers: attention inside its ranges in 90 of 100 seeds") {
  const cost::Profile truth = attention_truth();
  const cost::Profile base = cost::load_profile("gh200-datasheet", {});
  std::map<std::string, int> inside;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    cost::Profile fitted = base;
    std::string report;
    calib::fit_attention(fitted, timed_attention(truth, &random), calib::data_sheet(kPart), kMadeUp,
                         report);
    count_inside(fitted, truth,
                 {"attention.diagonal_tokens", "attention.half_waves",
                  "attention.backward_half_waves", "attention.backward_ratio"},
                 inside);
    const cost::Curve& curve = fitted.curve("attention.forward.d128");
    const double ratio = truth.curve("attention.forward.d128").at(4096) / curve.at(4096);
    inside["curve"] += curve.low_factor <= ratio && ratio <= curve.high_factor;
  }
  for (const auto& [key, count] : inside) {
    INFO(key);
    CHECK(count >= 90);
  }
}

TEST_CASE("[M174] what a sibling passes on is assumed, says from whom, and has a wider range") {
  const cost::Profile own = cost::load_profile("b200-sxm", {});
  const cost::Profile sibling = cost::load_profile("gb200", {});
  const cost::Number& from = own.numbers.at("gemm.k_half_B");
  const cost::Number& to = sibling.numbers.at("gemm.k_half_B");
  CHECK(to.value == from.value);
  CHECK(to.low < from.low);
  CHECK(to.high > from.high);
  CHECK(to.origin.kind == cost::Provenance::assumed);
  CHECK(to.origin.source.starts_with("as on B200"));
  CHECK(own.numbers.at("gemm.k_half_B").origin.kind == cost::Provenance::published);
}

TEST_CASE("kernel rows of every part are read in full, and broken ones are refused") {
  const auto data = calib::kernel_data(data_folder() / "calib" / "data");
  CHECK(data.gemms.size() == 886);
  CHECK(data.attention.size() == 237);
  CHECK(data.memory.size() == 44);
  const auto grouped = std::count_if(data.gemms.begin(), data.gemms.end(),
                                     [](const GemmRow& row) { return row.shape.groups > 1; });
  CHECK(grouped == 128);
  CHECK_THROWS_AS(calib::kernel_data("no-such-folder"), InputError);
}
