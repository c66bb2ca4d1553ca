// SPDX-License-Identifier: Apache-2.0
// From observations to a profile: regimes of collectives, rates of copies, training logs.
#include "calib/calibrate.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "calib/collectives.hpp"
#include "sim/base/error.hpp"
#include "sim/base/random.hpp"
#include "sim/predict/predict.hpp"
#include "sim/scenario/load.hpp"

using namespace scapesim;
using namespace scapesim::literals;

namespace {

/// t = wire / efficiency + steps alpha on a ring of two, with relative noise.
calib::CollectiveRow row(double size, double efficiency, double alpha, double noise) {
  const double wire = size / 50e9;
  return {.size = Bytes(size),
          .wire = Seconds(wire),
          .steps = 2,
          .time = Seconds((wire / efficiency + 2 * alpha) * (1 + noise))};
}

/// Small messages at efficiency 0.3 and 5 us, large ones at 0.9 and 20 us; the break at 1 MB.
std::vector<calib::CollectiveRow> two_regimes(double noise, std::uint64_t seed) {
  Random random(seed);
  std::vector<calib::CollectiveRow> rows;
  for (double size = 1024; size < 4e9; size *= 2) {
    const double error = random.uniform(-noise, noise);
    rows.push_back(size < 1e6 ? row(size, 0.3, 5e-6, error) : row(size, 0.9, 20e-6, error));
  }
  return rows;
}

calib::Observations collectives_of(const std::vector<CollectiveTime>& times, int ranks) {
  calib::Observations file;
  file.file = "sweep.log";
  file.format = "nccl-tests";
  for (const CollectiveTime& time : times)
    file.collectives.push_back({.kind = graph::CollectiveKind::all_reduce,
                                .size = time.size,
                                .ranks = ranks,
                                .nodes = ranks,
                                .ranks_per_node = 1,
                                .time = time.time});
  return file;
}

}  // namespace

TEST_CASE("[M86] two regimes without noise are recovered with their break") {
  const calib::CollectiveFit fit = calib::fit_regimes(two_regimes(0, 1));
  REQUIRE(fit.regimes.size() == 2);
  CHECK(fit.regimes[1].from == Bytes(1024.0 * 1024));
  CHECK(1 / fit.regimes[1].fit.value[0] == Approx(0.9));
  CHECK(fit.regimes[1].fit.value[1] == Approx(20e-6));
  CHECK(1 / fit.regimes[0].fit.value[0] == Approx(0.3));
  CHECK(fit.regimes[0].fit.value[1] == Approx(5e-6));
  CHECK(fit.outliers.empty());
}

TEST_CASE("[M86] one regime stays one") {
  std::vector<calib::CollectiveRow> rows;
  for (double size = 1024; size < 4e9; size *= 2) rows.push_back(row(size, 0.8, 10e-6, 0));
  const calib::CollectiveFit fit = calib::fit_regimes(rows);
  REQUIRE(fit.regimes.size() == 1);
  CHECK(1 / fit.regimes[0].fit.value[0] == Approx(0.8));
}

TEST_CASE("[M86] an outlier is left out and named; the rest decides") {
  std::vector<calib::CollectiveRow> rows = two_regimes(0.01, 2);
  rows[14].time *= 3;
  const calib::CollectiveFit fit = calib::fit_regimes(rows);
  REQUIRE(fit.outliers.size() >= 1);
  CHECK(fit.outliers[0] == rows[14].size);
  CHECK(std::abs(0.9 * fit.regimes.back().fit.value[0] - 1) < 0.02);  // noise of 1 %
}

TEST_CASE("[M29] [M86] a profile calibrated on a predicted sweep predicts that sweep") {
  spec::Cluster cluster = scenario::load_cluster("vista");
  cluster.gpus = 8;
  cost::Profile truth = cost::load_profile("gh200-vista-ndr", {});
  std::vector<CollectiveTime> sweep;
  for (Bytes size = 1_KiB; size < 8_GiB; size *= 4)
    sweep.push_back(predict_collective(graph::CollectiveKind::all_reduce, size, cluster, &truth));
  const calib::Calibration result =
      calib::calibrate({.base = cost::load_profile("gh200-datasheet", {}),
                        .id = "mine",
                        .observations = {collectives_of(sweep, 8)},
                        .logs = {},
                        .cluster = cluster});
  CHECK(result.profile.id == "mine");
  for (const CollectiveTime& time : sweep) {
    const CollectiveTime again =
        predict_collective(graph::CollectiveKind::all_reduce, time.size, cluster, &result.profile);
    CHECK(again.time / time.time == Approx(1.0).epsilon(1e-6));  // no noise: rounding only
  }
  REQUIRE(result.residuals.size() == 1);
  CHECK(result.residuals[0].name == "all-reduce, 8 ranks on 8 nodes");
  REQUIRE(result.residuals[0].rows.size() == sweep.size());
  for (std::size_t i = 0; i < sweep.size(); ++i) {
    const calib::Residual& row = result.residuals[0].rows[i];
    CHECK(row.x == sweep[i].size.si());
    CHECK(row.fitted / row.measured == Approx(1.0).epsilon(1e-6));
    CHECK(row.measured_busbw->si() == Approx(sweep[i].busbw.si()));
  }
}

TEST_CASE("[M87] large copies and passes give their median rate, small ones do not count") {
  calib::Observations file;
  file.file = "copies.json";
  file.format = "nvbandwidth";
  using enum calib::CopyDirection;
  for (const double rate : {300e9, 310e9, 330e9})
    file.copies.push_back(
        {.direction = host_to_device, .size = 64_MiB, .rate = BytesPerSecond(rate)});
  file.copies.push_back({.direction = host_to_device, .size = 4_KiB, .rate = 1_GBps});
  file.copies.push_back({.direction = device_to_host,
                         .beside = calib::Beside::reverse_copy,
                         .size = 64_MiB,
                         .rate = 150_GBps});
  file.memory.push_back({.op = "triad", .bytes = 1_GiB, .rate = 3.3_TBps});
  const cost::Profile base = cost::load_profile("gh200-datasheet", {});
  const calib::Calibration result = calib::calibrate(
      {.base = base, .id = "mine", .observations = {file}, .logs = {}, .cluster = {}});
  CHECK(result.profile.number("copy.h2d_Bps") == Approx(310e9));
  CHECK(result.profile.numbers.at("copy.h2d_Bps").origin.kind == cost::Provenance::imported);
  CHECK(result.profile.number("copy.d2h_Bps") == base.number("copy.d2h_Bps"));
  CHECK(result.profile.number("hbm.bandwidth_Bps") == Approx(3.3e12));
  CHECK(result.profile.number("gemm.scale") == base.number("gemm.scale"));
}

TEST_CASE(
    "training logs with timers calibrate transport and computation; what is missing is named") {
  const auto vista = scenario::load_scenarios("scenarios/vista-llama-1.8b.toml");
  calib::CalibrationInput input{.base = cost::load_profile("gh200-datasheet", {}),
                                .id = "mine",
                                .observations = {},
                                .logs = {},
                                .cluster = {}};
  const cost::Profile truth = cost::load_profile("gh200-vista-sockets", {});
  for (const int gpus : {4, 8, 16}) {
    calib::TrainingLog log{.observations = {},
                           .scenario = scenario::with_gpus(vista[0], gpus, false)};
    const Prediction prediction =
        predict(log.scenario, truth, {.driver = engine::Driver::standalone, .interval_draws = 0});
    const auto& run = std::get<result::Run>(prediction.outcome);
    log.observations.file = "run.log";
    log.observations.format = "megatron";
    for (int i = 0; i < 12; ++i)
      log.observations.steps.push_back(
          {.gpus = gpus,
           .iteration = i,
           .step_time = i < 2 ? 3 * run.step_time : run.step_time,  // warm-up
           .timers = {{"all-grads-sync", run.breakdown.exposed_communication}}});
    input.logs.push_back(std::move(log));
  }
  const calib::Calibration result = calib::calibrate(input);
  CHECK(result.profile.number("network.transport_cap_Bps") ==
        Approx(truth.number("network.transport_cap_Bps")).epsilon(1e-6));
  CHECK(result.profile.number("network.hop_latency_s") ==
        Approx(truth.number("network.hop_latency_s")).epsilon(1e-4));
  CHECK(result.profile.number("gemm.scale") == Approx(truth.number("gemm.scale")).epsilon(0.01));

  // Numbers from a user's logs are imported, whatever the shipped ones are.
  for (const char* key : {"network.transport_cap_Bps", "network.hop_latency_s", "gemm.scale"})
    CHECK(result.profile.numbers.at(key).origin.kind == cost::Provenance::imported);

  // Timers that add up to more than the step, or are absent, calibrate nothing: named, not a crash.
  for (const double share : {1.5, 0.0}) {
    for (calib::TrainingLog& log : input.logs)
      for (calib::StepSample& step : log.observations.steps) {
        step.timers.clear();
        if (share > 0) step.timers["all-grads-sync"] = share * *step.step_time;
      }
    CHECK_THROWS_AS(calib::calibrate(input), InputError);
  }
}
