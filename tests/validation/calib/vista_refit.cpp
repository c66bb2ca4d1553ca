// SPDX-License-Identifier: Apache-2.0
// Two GPU counts calibrate a cluster: fitted to the dense Vista runs on 4 and 8 GPUs only, the
// other counts are predicted, and the stated intervals hold. [M80] [M82] [M85] [M77]
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "calib/shipped.hpp"
#include "sim/base/file.hpp"
#include "sim/predict/predict.hpp"

using namespace scapesim;

namespace {

cost::Profile refitted(const std::vector<calib::TrainingRun>& runs) {
  cost::Profile profile = cost::load_profile("gh200-datasheet", {});
  std::string report;
  calib::fit_transport(profile, runs, {cost::Provenance::published, "dense Vista runs"}, report);
  calib::fit_computation(profile, runs, {cost::Provenance::published, "dense Vista runs"}, report);
  return profile;
}

std::vector<calib::TrainingRun> runs_on(const std::set<int>& gpus) {
  std::vector<calib::TrainingRun> runs = calib::vista_dense_runs(data_folder());
  std::erase_if(runs, [&](const calib::TrainingRun& run) {
    return !gpus.contains(run.scenario.cluster.gpus);
  });
  return runs;
}

}  // namespace

TEST_CASE("dense Vista runs give 3.62 GB/s within 1 % and 1.1 ms per hop within 10 %") {
  const cost::Profile profile = refitted(runs_on({4, 8, 16, 32, 64}));
  CHECK(std::abs(profile.number("network.transport_cap_Bps") / 3.62e9 - 1) < 0.01);
  CHECK(std::abs(profile.number("network.hop_latency_s") / 1.1e-3 - 1) < 0.10);
}

TEST_CASE("runs on 4 and 8 GPUs predict those on 16 to 64 within 6 %, inside narrow intervals") {
  const cost::Profile profile = refitted(runs_on({4, 8}));
  const std::vector<calib::TrainingRun> others = runs_on({16, 32, 64});
  REQUIRE(others.size() == 12);
  int covered = 0;
  std::vector<double> half_widths;
  for (const calib::TrainingRun& run : others) {
    const Prediction prediction =
        predict(run.scenario, profile, {.driver = engine::Driver::standalone});
    const auto& result = std::get<result::Run>(prediction.outcome);
    const Seconds measured = run.computation + run.communication;
    CAPTURE(run.scenario.name, run.scenario.series, result.gpus, measured.si(),
            result.step_time.si(), result.step_time_low.si(), result.step_time_high.si());
    CHECK(std::abs(result.step_time / measured - 1) < 0.06);
    covered += result.step_time_low <= measured && measured <= result.step_time_high;
    half_widths.push_back((result.step_time_high - result.step_time_low) /
                          (2.0 * result.step_time));
  }
  std::sort(half_widths.begin(), half_widths.end());
  CHECK(covered >= 0.85 * static_cast<double>(others.size()));
  CHECK(half_widths[half_widths.size() / 2] <= 0.08);
}
