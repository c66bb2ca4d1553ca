// SPDX-License-Identifier: Apache-2.0
// Predictions as tests need them: steady step without interval, and sums over the step graph.
#pragma once

#include "sim/cost/collective_forms.hpp"
#include "sim/predict/predict.hpp"
#include "tests/support/strategy.hpp"

namespace scapesim::test {

inline Prediction prediction_of(const spec::Scenario& scenario, const cost::Profile& profile) {
  return predict(scenario, profile, {.driver = engine::Driver::standalone, .interval_draws = 0});
}

inline const result::Run& run_of(const Prediction& prediction) {
  return std::get<result::Run>(prediction.outcome);
}

inline double step_of(const spec::Scenario& scenario, const cost::Profile& profile) {
  return run_of(prediction_of(scenario, profile)).step_time.si();
}

/// Local work of the one rank class; `name` empty: all of it.
inline double local_work(const Prediction& prediction, std::string_view name = {}) {
  double sum = 0;
  for (const graph::Operation& operation : prediction.graph.classes.at(0).operations)
    if (operation.work == graph::Work::local && (name.empty() || operation.name == name))
      sum += operation.duration.si();
  return sum;
}

/// Bytes of the one collective of that name.
inline Bytes collective_bytes(const Prediction& prediction, std::string_view name) {
  for (const graph::Collective& collective : prediction.graph.collectives)
    if (collective.name == name) return collective.bytes;
  throw InternalError("no collective " + std::string(name));
}

/// The ring on the test cluster: one NIC per rank.
inline cost::RingTerms ring_of(const spec::Scenario& scenario, const cost::Profile& profile) {
  return {.ranks = scenario.cluster.gpus,
          .hop_latency = Seconds(profile.number("network.hop_latency_s")),
          .link = scenario.cluster.nic_bandwidth * profile.number("network.efficiency")};
}

}  // namespace scapesim::test
