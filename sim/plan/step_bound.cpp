// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/step_bound.hpp"

#include <algorithm>
#include <string_view>

namespace scapesim::plan {

namespace {

constexpr Pass kPasses[] = {Pass::forward, Pass::backward, Pass::input_gradient,
                            Pass::weight_gradient};

/// An exchange is named by its axis and kind.
Seconds& term_of(PassTime& sum, std::string_view name) {
  if (name.starts_with(name_of(graph::Axis::context))) return sum.context;
  if (name.starts_with(name_of(graph::Axis::tensor))) return sum.tensor;
  return sum.expert;
}

PassTime sums_of(const PassCost& cost) {
  PassTime sum{.time = cost.time, .tensor = {}, .context = {}, .expert = {}};
  for (const graph::Inside& inside : cost.inside) term_of(sum, inside.name) += inside.exposed;
  return sum;
}

PassTime times_count(double count, const PassTime& one) {
  return {count * one.time, count * one.tensor, count * one.context, count * one.expert};
}

/// What a stage's passes take, and what of it the first stage waits for.
struct StageTime {
  PassTime work;    ///< of a micro-batch, all chunks
  PassTime late;    ///< the longest of its weight gradients, if they come apart
  Seconds way_in;   ///< of the first chunk alone: forward
  Seconds way_out;  ///< and back
};

/// [M426] What two passes hide of their exchanges at least stays: those of all micro-batches are
/// taken to run in pairs.
void hide_exchanges(PassTime& work, const PassTime& forward, const PassTime& back) {
  const auto lanes = [](const PassTime& pass) {
    return Lanes{.kernels = pass.time - pass.expert, .exchanges = pass.expert};
  };
  const Seconds hidden = hidden_share(lanes(forward), lanes(back)) * (forward.expert + back.expert);
  work.time -= hidden;
  work.expert -= hidden;
}

StageTime stage_time(const spec::Scenario& scenario, const PassTimes& times,
                     const std::vector<Part>& parts, int stage) {
  const Pipeline pipeline = pipeline_of(scenario);
  const spec::Schedule schedule = scenario.parallelism.schedule;
  const auto part = [&](int chunk) {
    return parts[static_cast<std::size_t>(part_of(pipeline, stage, chunk))];
  };
  StageTime sum;
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk) {
    const PassTime forward = times.part(part(chunk), Pass::forward);
    const PassTime back = times.part(part(chunk), Pass::backward);
    const PassTime input = times.part(part(chunk), Pass::input_gradient);
    const PassTime weights = times.part(part(chunk), Pass::weight_gradient);
    sum.work += forward;
    // Halves take no less than the whole, and DualPipe has some of both.
    if (schedule == spec::Schedule::zb_h1) {
      sum.work += input;
      sum.work += weights;
    } else {
      sum.work += back;
    }
    const bool halves = spec::halves(schedule);
    if (chunk == 0) sum.way_in = forward.time, sum.way_out = halves ? input.time : back.time;
    if (halves && weights.time > sum.late.time) sum.late = weights;
  }
  if (spec::pairs_experts(scenario.parallelism))
    for (int chunk = 0; chunk < 2; ++chunk)
      hide_exchanges(sum.work, times.part(part(chunk), Pass::forward),
                     times.part(part(1 - chunk), Pass::backward));
  return sum;
}

StepBound bound_of(const PassTime& passes, Seconds host, Seconds ways) {
  return {.time = passes.time + host + ways,
          .kernels = passes.time - passes.tensor - passes.context - passes.expert,
          .tensor = passes.tensor,
          .context = passes.context,
          .expert = passes.expert,
          .host = host,
          .bubble = ways};
}

}  // namespace

PassTime& operator+=(PassTime& sum, const PassTime& more) {
  sum.time += more.time;
  sum.tensor += more.tensor;
  sum.context += more.context;
  sum.expert += more.expert;
  return sum;
}

PassTimes::PassTimes(const workload::Workload& workload, const LayerCosts& costs) {
  for (const Pass pass : kPasses) {
    std::vector<PassTime>& sums = of_pass_[static_cast<std::size_t>(pass)];
    sums.push_back({});
    for (std::size_t i = 0; i < workload.layers.size(); ++i) {
      sums.push_back(sums.back());
      sums.back() += sums_of(costs.layer(i, pass));
    }
  }
}

PassTime PassTimes::part(const Part& part, Pass pass) const {
  const std::vector<PassTime>& sums = of_pass_[static_cast<std::size_t>(pass)];
  PassTime sum = sums[part.end];
  sum += times_count(-1, sums[part.begin]);
  return sum;
}

StepBound step_bound(const spec::Scenario& scenario, const cost::Profile& profile,
                     const PassTimes& times, const std::vector<Part>& parts) {
  const auto count = static_cast<double>(spec::micro_batches(scenario));
  const Seconds step(profile.number("host.step_s"));
  const Seconds each(profile.number("host.micro_batch_s"));
  // Nobody sends gradients to stages whose layers are frozen: they begin their next step early.
  const bool returns = scenario.training.frozen_layers == 0;
  StepBound longest;
  // Behind the first stage the host's work for the first micro-batch is done when it arrives.
  const Seconds host = step + count * each;
  Seconds ways;
  for (int stage = 0; stage < scenario.parallelism.pp; ++stage) {
    const StageTime one = stage_time(scenario, times, parts, stage);
    const PassTime work = times_count(count, one.work);
    // Behind its last input gradient a stage has s + 1 weight gradients left, if they come apart.
    PassTime awaited = work;
    awaited += times_count(-std::min(count, stage + 1.0), one.late);
    std::vector<StepBound> bounds{bound_of(work, host, Seconds(0))};
    if (returns) bounds.push_back(bound_of(awaited, host, ways));
    for (const StepBound& bound : bounds)
      if (bound.time > longest.time) longest = bound;
    ways += one.way_in + one.way_out;
  }
  return longest;
}

}  // namespace scapesim::plan
