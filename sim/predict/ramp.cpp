// SPDX-License-Identifier: Apache-2.0
#include "sim/predict/ramp.hpp"

#include <algorithm>

#include "sim/base/check.hpp"
#include "sim/spec/batch_ramp.hpp"

namespace scapesim {

namespace {

constexpr std::size_t kSimulated = 32;

/// The step at another batch, no longer on a ramp.
Seconds step_at(const spec::Scenario& scenario, const cost::Profile& profile, std::int64_t batch) {
  spec::Scenario stage = scenario;
  stage.training.global_batch = batch;
  stage.training.batch_ramp = {};
  stage.training.stalls.evaluation_interval = 0;
  const Prediction prediction =
      predict(stage, profile, {.driver = engine::Driver::standalone, .interval_draws = 0});
  const auto* run = std::get_if<result::Run>(&prediction.outcome);
  // It holds no more micro-batches than the full batch does.
  SCAPESIM_CHECK(run != nullptr, "a batch of {} does not fit, {} does", batch,
                 scenario.training.global_batch);
  return run->step_time;
}

/// Row `i` between rows `low` and `high`, whose times are known.
Seconds between(const std::vector<result::RampRow>& rows, std::size_t low, std::size_t high,
                std::size_t i) {
  const auto batch = [&](std::size_t k) { return static_cast<double>(rows[k].batch); };
  const double share = (batch(i) - batch(low)) / (batch(high) - batch(low));
  return rows[low].step_time + share * (rows[high].step_time - rows[low].step_time);
}

}  // namespace

std::vector<result::RampRow> ramp_of(const spec::Scenario& scenario, const cost::Profile& profile,
                                     const result::Run& full) {
  std::vector<result::RampRow> rows;
  if (!scenario.training.batch_ramp.given()) return rows;
  for (const spec::RampStage& stage : spec::ramp_stages(scenario.training))
    rows.push_back({stage.batch, stage.steps, full.step_time});
  const std::size_t simulated = std::min(rows.size(), kSimulated);
  std::size_t before = 0;
  for (std::size_t k = 0; k < simulated; ++k) {
    const std::size_t at = simulated == 1 ? 0 : k * (rows.size() - 1) / (simulated - 1);
    if (rows[at].batch != scenario.training.global_batch)
      rows[at].step_time = step_at(scenario, profile, rows[at].batch);
    for (std::size_t i = before + 1; i < at; ++i) rows[i].step_time = between(rows, before, at, i);
    before = at;
  }
  return rows;
}

}  // namespace scapesim
