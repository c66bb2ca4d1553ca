// SPDX-License-Identifier: Apache-2.0
// A user's kernel timings become numbers of a profile: [M171] GEMM, [M173] attention, [M176]
// latencies, [M87] rates under noise; what is missing is named.
#include "calib/kernel_samples.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "calib/calibrate.hpp"
#include "sim/base/random.hpp"
#include "sim/scenario/load.hpp"
#include "tests/support/profile.hpp"

using namespace scapesim;
using namespace scapesim::literals;
using namespace scapesim::test;

namespace {

spec::Cluster superpod() {
  spec::Cluster cluster = scenario::load_cluster("dgx-h100");
  cluster.gpus = 8;
  return cluster;
}

/// GEMMs and attention as the profile would have them timed on H100.
calib::Observations timed_by(const cost::Profile& truth) {
  calib::Observations file{.file = "run.jsonl", .format = "scapesim.bench"};
  const cost::KernelCosts costs(truth, superpod().gpu, spec::Precision::bf16);
  for (const double m : {4096.0, 8192.0, 16'384.0})
    for (const double n : {1024.0, 4096.0, 14'336.0})
      for (const double k : {1024.0, 4096.0})
        file.gemms.push_back({m,
                              n,
                              k,
                              "bfloat16",
                              costs.time({.m = static_cast<std::int64_t>(m),
                                          .n = static_cast<std::int64_t>(n),
                                          .k = static_cast<std::int64_t>(k)}),
                              {}});
  for (const char* shape :
       {"b16 h32 s1024 d128 causal", "b8 h32 s2048 d128 causal", "b4 h32 s4096 d128 causal",
        "b2 h32 s8192 d128 causal", "b4 h32 s4096 d128", "b1 h4 s4096 d128 causal"}) {
    for (const bool backward : {false, true}) {
      cost::Attention attention = *calib::attention_in(shape);
      attention.backward = backward;
      file.kernels.push_back({.kind = calib::KernelClass::attention,
                              .name = backward ? "backward" : "forward",
                              .shape = shape,
                              .count = 1,
                              .median = costs.time(attention)});
    }
  }
  return file;
}

calib::Calibration calibrated(const calib::Observations& file,
                              const std::optional<spec::Cluster>& cluster) {
  return calib::calibrate({.base = cost::load_profile("gh200-datasheet", {}),
                           .id = "mine",
                           .observations = {file},
                           .logs = {},
                           .cluster = cluster});
}

}  // namespace

TEST_CASE("[M171] [M173] a user's GEMM and attention timings bring back the rates that made them") {
  cost::Profile truth = cost::load_profile("h100-sxm", {});
  set(truth, "gemm.efficiency", 0.7);
  set(truth, "gemm.k_half_B", 400);
  set(truth, "gemm.scale", 1);
  const calib::Observations file = timed_by(truth);
  const calib::Calibration result = calibrated(file, superpod());
  CHECK(result.profile.number("gemm.efficiency") == Approx(0.7).epsilon(0.03));
  CHECK(result.profile.numbers.at("gemm.efficiency").origin.kind == cost::Provenance::imported);
  CHECK(result.profile.numbers.at("gemm.efficiency").origin.source.starts_with("scapesim.bench"));
  cost::Profile unscaled = result.profile;
  set(unscaled, "gemm.scale", 1);
  const cost::KernelCosts costs(unscaled, superpod().gpu, spec::Precision::bf16);
  for (const calib::AttentionTiming& row : calib::attention_rows_in({file}))
    CHECK(calib::time_of(row, costs) / (calib::flops_of(row) / row.rate) ==
          Approx(1).epsilon(0.05));  // HBM and launches are the base's
  CHECK(result.report.find("gemm on H100-SXM-80GB") != std::string::npos);
  CHECK(result.report.find("attention on H100-SXM-80GB") != std::string::npos);
}

TEST_CASE("timings without a cluster, or too few, or of unknown type are named as gaps") {
  calib::Observations file = timed_by(cost::load_profile("h100-sxm", {}));
  file.memory.push_back({.op = "triad", .bytes = 1_GiB, .rate = 3_TBps});
  file.gemms.push_back({1024, 1024, 1024, "complex", Seconds(1), {}});
  const auto gaps_of = [&](const std::optional<spec::Cluster>& cluster) {
    std::string text;
    for (const std::string& gap : calibrated(file, cluster).gaps) text += gap + "\n";
    return text;
  };
  CHECK(gaps_of({}).find("give --cluster") != std::string::npos);
  CHECK(gaps_of({}).find("1 timings of unknown data type") != std::string::npos);
  file.gemms.resize(3);
  file.kernels.resize(2);
  CHECK(gaps_of(superpod()).find("gemm.*: 3 timings, at least 4") != std::string::npos);
  CHECK(gaps_of(superpod()).find("attention.*: 2 timings, at least") != std::string::npos);
}

TEST_CASE("an attention shape is read word by word, and refused when a part is missing or odd") {
  const auto shape = calib::attention_in("b2 h32 s8192 d192 v128 g4 w1024 causal");
  REQUIRE(shape);
  CHECK(shape->batch == 2);
  CHECK(shape->heads == 32);
  CHECK(shape->sequence == 8192);
  CHECK(shape->head_dim == 192);
  CHECK(shape->value_head_dim == 128);
  CHECK(shape->kv_heads == 4);
  CHECK(shape->window == 1024);
  CHECK(shape->causal);
  CHECK_FALSE(calib::attention_in("b2 h32 s8192 d128")->causal);
  for (const char* odd : {"", "b2 h32 s8192", "b2 h32 s8192 d", "b2 h32 s8192 dx", "b2 h0 s1 d1",
                          "b2 h32 s8192 d128k"})
    CHECK_FALSE(calib::attention_in(odd));
}

TEST_CASE("[M176] launches and small copies give their median latency") {
  calib::Observations file{.file = "run.jsonl", .format = "scapesim.bench"};
  for (const double time : {2e-6, 3e-6, 8e-6})
    file.latencies.push_back({.name = "empty launch", .time = Seconds(time)});
  file.latencies.push_back({.name = "pointer chase", .time = Seconds(1)});
  using enum calib::CopyDirection;
  file.copies.push_back({.direction = host_to_device, .size = 64_MiB, .rate = 50_GBps});
  for (const double start : {4e-6, 5e-6, 9e-6}) {
    const Bytes size = 100_KiB;
    file.copies.push_back({.direction = host_to_device,
                           .size = size,
                           .rate = size / (size / 50_GBps + Seconds(start))});
  }
  const calib::Calibration result = calibrated(file, {});
  CHECK(result.profile.number("hbm.launch_s") == Approx(3e-6));
  CHECK(result.profile.numbers.at("hbm.launch_s").high == Approx(8e-6));
  CHECK(result.profile.number("copy.latency_s") == Approx(5e-6));
}

TEST_CASE("[M87] [M176] noise and outliers: rates and latencies inside their range in 90 seeds") {
  int rate_inside = 0;
  int launch_inside = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const auto disturbed = [&](double value) {
      const double outlier = random.below(20) == 0 ? 0.5 : 1.0;
      return value * outlier * random.uniform(0.95, 1.05);
    };
    calib::Observations file{.file = "run.jsonl", .format = "scapesim.bench"};
    for (int i = 0; i < 20; ++i) {
      file.memory.push_back(
          {.op = "triad", .bytes = 1_GiB, .rate = BytesPerSecond(disturbed(3e12))});
      file.latencies.push_back({.name = "empty launch", .time = Seconds(disturbed(2e-6))});
    }
    const cost::Profile profile = calibrated(file, {}).profile;
    const auto holds = [&](const char* key, double truth) {
      const cost::Number& number = profile.numbers.at(key);
      return number.low <= truth && truth <= number.high;
    };
    rate_inside += holds("hbm.bandwidth_Bps", 3e12);
    launch_inside += holds("hbm.launch_s", 2e-6);
  }
  CHECK(rate_inside >= 90);
  CHECK(launch_inside >= 90);
}
