// SPDX-License-Identifier: Apache-2.0
#include "sim/study/disturbances.hpp"

#include "sim/result/metrics.hpp"
#include "sim/scenario/alter.hpp"

namespace scapesim::study {
namespace {

/// One thing that goes wrong, as a key of the scenario.
struct Fault {
  const char* name;
  const char* key;
  const char* text;  ///< of one entry of the list
};
constexpr Fault kFaults[] = {
    {"one adapter at half its rate", "cluster.degraded", "NIC 0 = 0.5"},
    {"one adapter at a tenth of its rate", "cluster.degraded", "NIC 0 = 0.1"},
    {"one GPU's node link at half its rate", "cluster.degraded", "node link 0 = 0.5"},
};

// [M376] Quantiles of the slow-downs under each draw of the profile, the same on both sides.
void add_interval(Disturbance& row, const result::Run& base, const result::Run& run) {
  if (base.drawn.empty() || base.drawn.size() != run.drawn.size()) return;
  std::vector<Seconds> ratios;  // pure numbers, for the quantiles of times
  for (std::size_t i = 0; i < run.drawn.size(); ++i)
    ratios.emplace_back(run.drawn[i] / base.drawn[i]);
  const result::Interval interval =
      result::interval_of(std::move(ratios), Seconds(row.slowdown), run.interval_level);
  row.low = interval.low.si();
  row.high = interval.high.si();
}

}  // namespace

std::vector<Disturbance> disturbances(const Series& series, const result::Run& base,
                                      const PredictOptions& options) {
  std::vector<Disturbance> rows;
  for (const Fault& fault : kFaults) {
    auto altered = scenario::altered(series.scenario, fault.key,
                                     scenario::Value(std::vector<std::string>{fault.text}));
    const auto* scenario = std::get_if<spec::Scenario>(&altered);
    if (scenario == nullptr) continue;
    const result::Outcome outcome = predict(*scenario, series.profile, options).outcome;
    const auto& run = std::get<result::Run>(outcome);
    Disturbance row{.name = fault.name,
                    .key = fault.key,
                    .value = std::string("[\"") + fault.text + "\"]",
                    .step_time = run.step_time,
                    .slowdown = run.step_time / base.step_time,
                    .low = {},
                    .high = {}};
    add_interval(row, base, run);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace scapesim::study
