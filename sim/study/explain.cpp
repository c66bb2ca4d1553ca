// SPDX-License-Identifier: Apache-2.0
#include "sim/study/explain.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <span>

#include "calib/calibrate.hpp"
#include "sim/base/error.hpp"
#include "sim/predict/predict.hpp"
#include "sim/workload/workload.hpp"

namespace scapesim::study {
namespace {

using calib::KernelClass;
using calib::Observations;

/// What usually makes a part slower, or faster, than predicted.
struct Causes {
  std::string_view term;
  std::string_view slower;
  std::string_view faster;
};
constexpr Causes kCauses[] = {
    {"forward and backward",
     "power or clock limits, kernels left unfused, recomputation the scenario does not name, "
     "launch-bound small layers (CUDA graphs off)",
     "better kernels than calibrated, less recomputation than the scenario says"},
    {"gradient communication",
     "a transport that fell back to TCP (plugin missing, NCCL_IB_DISABLE), fewer NICs than stated, "
     "ranks that wait for a slow one, other jobs on the fabric",
     "gradients overlapped with backward, or reduced in a smaller type than the scenario says"},
    {"parameter communication",
     "as for gradients; also an all-gather that is not overlapped with the forward pass",
     "overlapped with the forward pass of the next step"},
    {"optimizer",
     "an unfused optimizer, offloaded state, clipping or logging that synchronises the device",
     "a fused optimizer where the scenario says unfused"},
    {"rest of the step", "data loading, logging, evaluation, garbage collection, checkpoints",
     "host terms of another machine in the profile"},
    {"GEMM kernels", "power or clock limits, shapes outside the calibrated ones, padding",
     "shapes the library has better kernels for than those calibrated"},
    {"attention kernels", "another implementation than flash attention, other head sizes",
     "a newer attention library than calibrated"},
    {"other kernels", "kernels left unfused, casts, layout copies, unfused optimizer",
     "fused kernels where the scenario says unfused"},
    {"communication kernels",
     "waiting for slower ranks, which a collective's kernel counts as its own time; a slow "
     "transport",
     "fewer or smaller collectives than the scenario says"},
};

/// A difference worth a cause: a tenth of the term and a hundredth of the step.
std::string cause_of(const ExplainedTerm& term, Seconds step) {
  if (!term.predicted || !term.measured) return "";
  const double difference = (*term.measured - *term.predicted).si();
  const bool large =
      std::abs(difference) > 0.1 * term.measured->si() && std::abs(difference) > 0.01 * step.si();
  const auto found = std::ranges::find(kCauses, term.name, &Causes::term);
  if (!large || found == std::end(kCauses)) return "";
  return std::string(difference > 0 ? found->slower : found->faster);
}

/// A part of a step as Megatron-LM's timers name it. Timers of a part do not overlap each other.
struct TimedPart {
  std::string_view term;
  std::vector<std::string_view> whole;  ///< the first that is there counts alone
  std::vector<std::string_view> parts;  ///< else these sum
};
const std::vector<TimedPart>& timed_parts() {
  static const std::vector<TimedPart> rows = {
      {"forward and backward", {"forward-backward"}, {"forward-compute", "backward-compute"}},
      {"gradient communication",
       {"all-grads-sync"},
       {"grads-reduce-scatter", "grads-all-reduce", "backward-params-all-reduce",
        "backward-gradient-sync", "embedding-grads-all-reduce", "layernorm-grads-all-reduce"}},
      {"parameter communication", {"params-all-gather"}, {"optimizer-params-all-gather"}},
      {"optimizer", {"optimizer"}, {"optimizer-inner-step", "optimizer-clip-main-grad"}},
  };
  return rows;
}

std::optional<Seconds> median_timer(const Observations& log, std::string_view name) {
  std::vector<Seconds> times;
  for (const calib::StepSample& step : log.steps)
    if (const auto found = step.timers.find(std::string(name)); found != step.timers.end())
      times.push_back(found->second);
  if (times.empty()) return std::nullopt;
  std::ranges::sort(times);
  return times[times.size() / 2];
}

std::optional<Seconds> measured_part(const Observations& log, const TimedPart& part) {
  for (const std::string_view name : part.whole)
    if (const auto time = median_timer(log, name)) return time;
  std::optional<Seconds> sum;
  for (const std::string_view name : part.parts)
    if (const auto time = median_timer(log, name)) sum = sum.value_or(Seconds(0)) + *time;
  return sum;
}

/// Exposed time of the calls whose name begins with a word.
Seconds exposed(const result::Run& run, std::string_view word) {
  Seconds sum(0);
  for (const result::Communication& call : run.communication)
    if (call.name.starts_with(word)) sum += call.exposed;
  return sum;
}

/// Predicted counterparts of timed_parts(), in their order, and the rest of the step. Exposed
/// communication of the layers' own (tensor, pipeline, expert) is inside forward and backward.
std::vector<ExplainedTerm> log_terms(const result::Run& run, const Observations& log,
                                     Seconds measured_step) {
  const Seconds gradients = exposed(run, "gradient");
  const Seconds parameters = exposed(run, "parameter");
  const result::Breakdown& parts = run.breakdown;
  const Seconds inner = parts.exposed_communication - gradients - parameters;
  const Seconds predicted[] = {parts.compute + parts.bubble + inner, gradients, parameters,
                               parts.optimizer};
  std::vector<ExplainedTerm> terms;
  Seconds named_predicted(0), named_measured(0);
  for (std::size_t i = 0; i < timed_parts().size(); ++i) {
    const TimedPart& part = timed_parts()[i];
    const std::optional<Seconds> measured = measured_part(log, part);
    if (!measured) continue;
    terms.push_back({std::string(part.term), predicted[i], measured, ""});
    named_predicted += predicted[i];
    named_measured += *measured;
  }
  terms.push_back(
      {"rest of the step", run.step_time - named_predicted, measured_step - named_measured, ""});
  return terms;
}

/// Busy time per step of a class of kernels as predicted: every rank's layers, over all stages.
Seconds predicted_kernels(const Series& series, KernelClass kind) {
  const spec::Scenario& s = series.scenario;
  const cost::KernelCosts costs(series.profile, s.cluster.gpu, s.training.precision,
                                cost::fleet_of(series.profile, s.cluster));
  Seconds sum(0);
  for (const workload::Layer& layer : workload::workload_of(s.model, s.training).layers)
    for (const auto* list : {&layer.forward, &layer.backward})
      for (const workload::Operation& operation : *list) {
        const bool gemm = std::holds_alternative<workload::Gemm>(operation.shape);
        const bool attention = std::holds_alternative<workload::Attention>(operation.shape);
        const KernelClass its = gemm        ? KernelClass::gemm
                                : attention ? KernelClass::attention
                                            : KernelClass::pass;
        if (its == kind) sum += workload::time_of(operation, costs);
      }
  const double shared = static_cast<double>(s.parallelism.pp);
  return sum * (static_cast<double>(spec::micro_batches(s)) / shared);
}

std::vector<ExplainedTerm> trace_terms(const Series& series, const result::Run& run,
                                       const Observations& trace) {
  const double steps = static_cast<double>(std::max<std::size_t>(1, trace.steps.size()));
  std::map<KernelClass, Seconds> busy;
  for (const calib::KernelSample& kernel : trace.kernels) busy[kernel.kind] += kernel.total;
  Seconds communication(0);
  for (const result::Communication& call : run.communication) communication += call.time;
  const Seconds passes = predicted_kernels(series, KernelClass::pass) + run.breakdown.optimizer;
  return {
      {"GEMM kernels", predicted_kernels(series, KernelClass::gemm),
       busy[KernelClass::gemm] / steps, ""},
      {"attention kernels", predicted_kernels(series, KernelClass::attention),
       busy[KernelClass::attention] / steps, ""},
      {"other kernels", passes, (busy[KernelClass::pass] + busy[KernelClass::other]) / steps, ""},
      {"communication kernels", communication, busy[KernelClass::nccl] / steps, ""}};
}

void add_overlap(const Observations& trace, const result::Run& run, Explained& out) {
  if (trace.overlaps.empty() || !run.overlap_fraction) return;
  const calib::OverlapSample& first = trace.overlaps.front();
  if (first.communication.si() <= 0) return;
  out.notes.push_back(fmt::format(
      "communication hidden behind computation: {:.0f} % measured on device {}, {:.0f} % predicted",
      100.0 * (first.both / first.communication), first.device, 100 * *run.overlap_fraction));
}

[[noreturn]] void refuse(const std::string& file, std::string what, std::string hint) {
  throw InputError(Problem{{.file = file}, "", std::move(what), std::move(hint)});
}

/// A log of another batch than the scenario's, and timers that run inside one another.
void add_doubts(const Observations& observed, const Series& series, Explained& out) {
  const double batch = static_cast<double>(series.scenario.training.global_batch);
  const auto other = std::ranges::find_if(observed.steps, [&](const calib::StepSample& step) {
    return step.sequences && *step.sequences != batch;
  });
  if (other != observed.steps.end())
    out.notes.push_back(fmt::format("measured with a global batch of {:g}, predicted for {:g}",
                                    *other->sequences, batch));
  if (!out.terms.empty() && out.terms.back().measured && *out.terms.back().measured < Seconds(0))
    out.notes.push_back("the timers sum to more than the step: some of them run inside others");
}

}  // namespace

Explained explain(const Series& series, const Observations& observed,
                  const PredictOptions& options) {
  const std::optional<Seconds> measured = calib::steady_step_time(observed);
  if (!measured)
    refuse(
        observed.file, "holds no step time",
        "record ProfilerStep marks (torch.profiler schedule and step()), or give a training log");
  const result::Outcome outcome = predict(series.scenario, series.profile, options).outcome;
  const auto* run = std::get_if<result::Run>(&outcome);
  if (run == nullptr)
    refuse(observed.file, "a run of a scenario that is predicted not to fit",
           std::get<result::Infeasible>(outcome).reason);
  Explained out{.scenario = series.scenario.name,
                .calibration = series.profile.id,
                .file = observed.file,
                .format = observed.format,
                .gpus = series.scenario.cluster.gpus,
                .predicted = run->step_time,
                .low = run->step_time_low,
                .high = run->step_time_high,
                .measured = *measured,
                .terms = {},
                .notes = {}};
  const bool trace = !observed.kernels.empty();
  out.terms = trace ? trace_terms(series, *run, observed) : log_terms(*run, observed, *measured);
  for (ExplainedTerm& term : out.terms) term.cause = cause_of(term, *measured);
  if (trace)
    add_overlap(observed, *run, out);
  else if (out.terms.size() == 1)
    out.notes.push_back("the log has no timers: run with --timing-log-level 2 to see the parts");
  add_doubts(observed, series, out);
  const auto gpus = observed.machine.gpus;
  if (gpus && *gpus != out.gpus)
    out.notes.push_back(fmt::format("measured on {} GPUs, predicted for {}", *gpus, out.gpus));
  return out;
}

}  // namespace scapesim::study
