// SPDX-License-Identifier: Apache-2.0
// Results made by hand, for the tests of the writers.
#pragma once

#include "sim/predict/predict.hpp"
#include "sim/study/point.hpp"

namespace scapesim::test {

/// Step 2 s: compute 1, exposed communication 0.7, optimizer 0.2, host 0.1.
inline result::Run example_run() {
  result::Run run;
  run.scenario = "tiny";
  run.hash = "0123456789abcdef";
  run.calibration = "gh200-test";
  run.weakest_provenance = "datasheet";
  run.version = "0.1.0";
  run.gpus = 4;
  run.step_time = Seconds(2);
  run.step_time_low = Seconds(1.9);
  run.step_time_high = Seconds(2.25);
  run.has_interval = true;
  run.tokens_per_second = TokensPerSecond(1.0 / 3);
  run.mfu = 0.4;
  run.breakdown = {Seconds(1), Seconds(0.2), Seconds(0.7), Seconds(0), Seconds(0.1), Seconds(0)};
  run.communication.push_back({.name = "gradient all-reduce",
                               .collective = "all-reduce",
                               .group_size = 4,
                               .count = 1,
                               .bytes = Bytes(7324805120),
                               .busbw = BytesPerSecond(3.6e9),
                               .time = Seconds(1.4),
                               .exposed = Seconds(0.7)});
  run.overlap_fraction = 0.5;
  run.memory = {Bytes(1), Bytes(2),  Bytes(3), Bytes(4),           Bytes(5),
                Bytes(6), Bytes(21), Bytes(7), Bytes(103079215104)};
  run.warnings.push_back({"assumed", "a number is assumed"});
  run.terms = {{"forward", Seconds(1.3), "M11", "gemm.*, hbm.bandwidth_Bps"},
               {"gradient all-reduce", Seconds(0.7), "M21", "network.hop_latency_s"}};
  return run;
}

inline study::Point point_of(result::Run run) {
  return {run.scenario, run.series, run.gpus, std::move(run)};
}

inline study::Point infeasible_point(std::string series = {}) {
  return {"tiny", std::move(series), 8,
          result::Infeasible{.reason = "does not fit",
                             .need = Bytes(200e9),
                             .have = Bytes(100e9),
                             .hint = "shard it",
                             .memory = {}}};
}

/// Two GPUs: forward 1 s, all-reduce 0.5 s beside and behind it; two steps.
inline Prediction example_prediction() {
  Prediction prediction;
  prediction.outcome = example_run();
  graph::Operation forward;
  forward.name = "forward";
  forward.duration = Seconds(1);
  forward.formula = "M11";
  forward.calibration = "gemm.scale";
  forward.flops = Flops(5e12);
  graph::Operation reduce;
  reduce.name = "reduce";
  reduce.kind = graph::Kind::communication;
  reduce.stream = graph::Stream::communication;
  reduce.work = graph::Work::collective;
  prediction.graph.classes.push_back({"all", 2, {forward, reduce}});
  prediction.graph.collectives.push_back({.name = "reduce",
                                          .kind = graph::CollectiveKind::all_reduce,
                                          .group_size = 2,
                                          .bytes = Bytes(1e9),
                                          .algorithm = "ring",
                                          .phases = {},
                                          .members = {}});
  for (int step = 0; step < 2; ++step) {
    const Seconds begin(1.0 * step);
    const graph::RankClassId all{0};
    prediction.timeline.spans.push_back(
        {all, graph::OpId{0}, step, begin, begin, begin + Seconds(1)});
    prediction.timeline.spans.push_back(
        {all, graph::OpId{1}, step, begin, begin + Seconds(1.0 / 3), begin + Seconds(5.0 / 6)});
    prediction.timeline.step_begin.push_back(begin);
    prediction.timeline.step_end.push_back(begin + Seconds(1));
  }
  return prediction;
}

}  // namespace scapesim::test
