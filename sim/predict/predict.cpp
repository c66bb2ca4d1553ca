// SPDX-License-Identifier: Apache-2.0
#include "sim/predict/predict.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/check.hpp"
#include "sim/base/file.hpp"
#include "sim/base/unit_text.hpp"
#include "sim/base/version.hpp"
#include "sim/cost/kernels.hpp"
#include "sim/engine/chunk.hpp"
#include "sim/plan/memory.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/step_plan.hpp"
#include "sim/predict/beside.hpp"
#include "sim/predict/uneven.hpp"
#include "sim/predict/used_keys.hpp"
#include "sim/predict/warnings.hpp"
#include "sim/result/metrics.hpp"
#include "sim/strategy/optimizer.hpp"
#include "sim/workload/documents.hpp"
#include "topologies/placement.hpp"

namespace scapesim {

namespace {

result::Memory memory_of(const spec::Scenario& scenario, const plan::MemoryNeed& need) {
  return {.parameters = need.parameters,
          .gradients = need.gradients,
          .optimizer = need.optimizer,
          .strategy = need.strategy,
          .activations = need.activations,
          .temporary = need.temporary,
          .total = need.total,
          .context = need.context,
          .capacity = scenario.cluster.gpu.memory};
}

result::Fleet fleet_of(const spec::Scenario& scenario, const cost::Profile& profile) {
  const cost::Fleet fleet = cost::fleet_of(profile, scenario.cluster);
  return {.slowest = fleet.slowest, .overlap_slowdown = fleet.overlap_slowdown, .beside = {}};
}

/// How the optimizer state could get smaller: shared where the method can share it.
std::string way_out_of_state(const spec::Scenario& scenario) {
  if (scenario.strategy.sharding != spec::Sharding::none)
    return ": use more GPUs to share the optimizer state, or split the model further";
  spec::Scenario shared = scenario;
  shared.strategy.sharding = spec::Sharding::zero1;
  if (spec::violations(shared).size() > spec::violations(scenario).size())
    return ": split the model over parallelism.tp";
  return ": set strategy.sharding = \"zero1\" to share the optimizer state";
}

/// Whether most of the temporaries is what every other rank sends of its elements, with indices.
bool gathers_most(const spec::Scenario& scenario, const result::Memory& memory) {
  const spec::Strategy& chosen = scenario.strategy;
  const bool gathers =
      chosen.method == spec::Method::dgc ||
      (chosen.method == spec::Method::topk && chosen.exchange == spec::Exchange::indices);
  constexpr double kEntry = 8;  // bytes of a value and its index
  const double parameters =
      memory.parameters.si() / strategy::parameter_bytes(scenario.training.precision);
  const double received = kEntry * parameters * chosen.density * spec::data_parallel_size(scenario);
  return gathers && 2 * received > memory.temporary.si();
}

/// How activations could get smaller, in the words of keys that are not set so already.
std::string way_out_of_activations(const spec::Scenario& scenario) {
  const bool recomputes =
      scenario.training.recompute == spec::Recompute::full && !scenario.training.recompute_layers;
  if (scenario.training.micro_batch > 1)
    return recomputes ? ": lower training.micro_batch"
                      : ": lower training.micro_batch, or set training.recompute = \"full\"";
  return recomputes ? ": shorten training.sequence, or split the model further"
                    : ": set training.recompute = \"full\", or shorten training.sequence";
}

/// What would make the plan fit, judged by its largest terms.
std::string way_out(const spec::Scenario& scenario, const result::Memory& memory) {
  const Bytes replicated = memory.parameters + memory.gradients;
  if (replicated > memory.capacity)
    return "parameters and gradients, which every data-parallel rank holds, need " +
           text_of(replicated) +
           ": the model must be split over GPUs (parallelism.tp, parallelism.pp, or "
           "strategy.sharding = \"fsdp\"), or be smaller";
  const Bytes state = replicated + memory.optimizer + memory.strategy;
  if (state > memory.capacity)
    return "parameters, gradients and optimizer state need " + text_of(state) +
           way_out_of_state(scenario);
  if (memory.temporary > memory.activations && gathers_most(scenario, memory))
    return "temporaries need " + text_of(memory.temporary) + ": every rank receives what all " +
           std::to_string(spec::data_parallel_size(scenario)) +
           " send of their elements: lower strategy.density, or use fewer data-parallel ranks";
  if (memory.temporary > memory.activations && memory.temporary > state)
    return "temporaries need " + text_of(memory.temporary) +
           (scenario.strategy.owners == spec::Owners::tensor
                ? ": set strategy.owners = \"even\", since whole-tensor owners pad the gathered "
                  "masks"
                : ": lower training.micro_batch, or use a smaller vocabulary");
  return "activations need " + text_of(memory.activations) + way_out_of_activations(scenario);
}

result::Infeasible infeasible(const spec::Scenario& scenario, const result::Memory& memory,
                              int stage) {
  const Bytes need = memory.total + memory.context;
  const std::string where =
      scenario.parallelism.pp > 1 ? ", pipeline stage " + std::to_string(stage) + "," : "";
  return {.reason = "does not fit in GPU memory: " + scenario.model.name + " on " +
                    scenario.cluster.gpu.name + where + " needs " + text_of(need) + " of " +
                    text_of(memory.capacity),
          .need = need,
          .have = memory.capacity,
          .hint = way_out(scenario, memory),
          .memory = memory};
}

/// The offloaded state of a node's GPUs against its host memory.
std::optional<result::Infeasible> too_much_for_hosts(const spec::Scenario& scenario,
                                                     const plan::MemoryNeed& memory) {
  const spec::Cluster& cluster = scenario.cluster;
  const int gpus = std::min(cluster.gpus, cluster.gpus_per_node);
  const Bytes need = memory.host * gpus;
  if (need <= cluster.host_memory) return std::nullopt;
  return result::Infeasible{
      .reason = "does not fit in host memory: what a node's " + std::to_string(gpus) +
                " GPUs offload needs " + text_of(need) + " of " + text_of(cluster.host_memory),
      .need = need,
      .have = cluster.host_memory,
      .hint = scenario.training.activation_offload ? "lower training.offload_layers"
                                                   : "leave a part out of strategy.offload",
      .memory = memory_of(scenario, memory)};
}

/// [M77] Step times under the profile's drawn numbers, model discrepancy included.
std::vector<Seconds> drawn_step_times(const spec::Scenario& scenario,
                                      const workload::Workload& workload,
                                      const cost::Profile& profile, const topology::Fabric& fabric,
                                      int count) {
  std::vector<Seconds> times;
  for (const cost::Draw& draw : cost::draws(count)) {
    const cost::Profile drawn = cost::perturbed(profile, draw);
    const graph::StepGraph graph = plan::step_graph(scenario, workload, drawn, fabric);
    const engine::Timeline timeline = engine::replay(graph, {.driver = engine::Driver::standalone});
    times.push_back(result::step_time(graph, timeline) * drawn.number("model.discrepancy"));
  }
  return times;
}

/// Unequal ranks and collectives beside kernels stretch every draw as they stretch the step itself,
/// which takes `alone` without them.
void add_interval(result::Run& run, std::vector<Seconds> drawn, Seconds alone) {
  if (run.step_time != alone)
    for (Seconds& time : drawn) time = run.step_time / alone * time;
  run.step_time_low = run.step_time_high = run.step_time;
  if (drawn.empty()) return;
  const result::Interval interval = result::interval_of(drawn, run.step_time, run.interval_level);
  run.drawn = std::move(drawn);
  run.step_time_low = interval.low;
  run.step_time_high = interval.high;
  run.has_interval = true;
}

void add_identity(result::Run& run, const spec::Scenario& scenario, const cost::Profile& profile,
                  const graph::StepGraph& graph) {
  run.scenario = scenario.name;
  run.series = scenario.series;
  // Names the result's inputs: the scenario and the contents of the profile.
  std::string inputs = scenario.hash + cost::profile_json(profile);
  for (const cost::Profile& other : profile.others) inputs += cost::profile_json(other);
  run.hash = content_hash(inputs);
  run.calibration = profile.id;
  run.weakest_provenance = name_of(weakest(profile, used_keys(profile, graph)));
  run.version = version();
  run.gpus = scenario.cluster.gpus;
  run.batch = scenario.training.global_batch;
}

/// What the job's GPUs have of something together; `of` tells that of other GPU i, or of the
/// cluster's own for none.
template <class Of>
auto sum_over_gpus(const spec::Scenario& scenario, Of of) {
  const auto own = of(std::optional<std::size_t>());
  auto sum = 0.0 * own;
  for (const plan::Pace& pace : plan::paces_of(scenario))
    sum += pace.gpu == 0 ? own : of(std::optional(pace.gpu - 1));
  return sum;
}

FlopsPerSecond mean_peak(const spec::Scenario& scenario) {
  const spec::Cluster& cluster = scenario.cluster;
  if (cluster.other_gpus.empty()) return cost::peak(cluster.gpu, scenario.training.precision);
  const auto peak = [&](std::optional<std::size_t> other) {
    return cost::peak(other ? cluster.other_gpus[*other].gpu : cluster.gpu,
                      scenario.training.precision);
  };
  return sum_over_gpus(scenario, peak) / cluster.gpus;
}

/// Of all GPUs; none when it is not known of one.
template <class Q>
std::optional<Q> total(const spec::Scenario& scenario, std::optional<Q> own,
                       std::optional<Q> spec::OtherGpus::*of_other) {
  const spec::Cluster& cluster = scenario.cluster;
  if (!own) return std::nullopt;
  if (cluster.other_gpus.empty()) return *own * static_cast<double>(cluster.gpus);
  for (const spec::OtherGpus& other : cluster.other_gpus)
    if (!(other.*of_other)) return std::nullopt;
  return sum_over_gpus(scenario, [&](std::optional<std::size_t> other) {
    return other ? *(cluster.other_gpus[*other].*of_other) : *own;
  });
}

/// [M71] tokens/s and MFU, [M78] energy and cost of one step.
void add_rates(result::Run& run, const spec::Scenario& scenario, const workload::Workload& workload,
               const cost::Profile& profile) {
  const spec::Training& training = scenario.training;
  const Tokens tokens(static_cast<double>(training.global_batch * training.sequence));
  run.tokens_per_second = workload::useful_share(training) * tokens / run.step_time;
  const double micro_batches =
      static_cast<double>(spec::micro_batches(scenario)) * spec::data_parallel_size(scenario);
  run.mfu = result::model_flops_utilisation(workload.model_flops * micro_batches, run.step_time,
                                            scenario.cluster.gpus, mean_peak(scenario));
  std::optional<Watts> power = scenario.cluster.gpu_power;
  if (profile.has("power.gpu_W")) power = Watts(profile.number("power.gpu_W"));
  if (const auto all = total(scenario, power, &spec::OtherGpus::power))
    run.energy = *all * run.step_time;
  if (const auto all = total(scenario, scenario.cluster.gpu_price, &spec::OtherGpus::price))
    run.cost = *all * run.step_time;
}

void stretch(Seconds& time, double factor) { time = factor * time; }

/// The drawn step that stands for all of them, stretched to their mean.
void add_typical(result::Run& run, result::StepMetrics metrics) {
  const double factor = run.step_time / metrics.step_time;
  if (factor != 1) {
    result::Breakdown& parts = metrics.breakdown;
    for (Seconds* part : {&parts.compute, &parts.optimizer, &parts.exposed_communication,
                          &parts.copy, &parts.host, &parts.bubble})
      stretch(*part, factor);
    for (result::Communication& row : metrics.communication)
      stretch(row.time, factor), stretch(row.exposed, factor);
    for (result::Term& term : metrics.terms) stretch(term.time, factor);
  }
  run.breakdown = metrics.breakdown;
  run.communication = std::move(metrics.communication);
  run.overlap_fraction = metrics.overlap_fraction;
  run.terms = std::move(metrics.terms);
}

/// A job with the work of one of its ranks.
struct Job {
  spec::Scenario scenario;
  workload::Workload workload;
};
Job job_of(spec::Scenario scenario) {
  workload::Workload workload =
      workload::rank_workload(scenario.model, scenario.training, scenario.parallelism);
  return {std::move(scenario), std::move(workload)};
}

/// [M433] What a step is timed with; none where documents fill sequences, so that ranks are alike.
std::optional<Job> slowest_job(const spec::Scenario& scenario) {
  if (scenario.training.documents == spec::Documents::whole) return std::nullopt;
  return job_of(workload::slowest_rank(scenario));
}

/// [M433] The step if all ranks had the mean's work.
Seconds mean_rank_step(const spec::Scenario& scenario, const cost::Profile& profile,
                       const topology::Fabric& fabric) {
  const Job mean = job_of(workload::mean_rank(scenario));
  const graph::StepGraph graph = plan::step_graph(mean.scenario, mean.workload, profile, fabric);
  return result::step_time(graph, engine::replay(graph, {.driver = engine::Driver::standalone}));
}

/// [M436] Replayed like a step.
result::Evaluation evaluation_of(const spec::Scenario& scenario, const workload::Workload& workload,
                                 const cost::Profile& profile, const topology::Fabric& fabric) {
  const spec::Stalls& stalls = scenario.training.stalls;
  const graph::StepGraph graph =
      plan::step_plan(scenario, workload, profile, fabric, plan::Purpose::evaluation).graph;
  const engine::Timeline timeline = engine::replay(graph, {.driver = engine::Driver::standalone});
  return {.interval = stalls.evaluation_interval,
          .iterations = stalls.evaluation_iterations,
          .iteration = result::step_time(graph, timeline)};
}

/// What is trained on what, where that is not all of the model on whole sequences; the run's step
/// is that of ranks that compute alike.
void add_data(result::Run& run, const spec::Scenario& scenario, const workload::Workload& workload,
              const cost::Profile& profile, const topology::Fabric& fabric) {
  if (workload.trainable_parameters < workload.parameters)
    run.trained = {workload.trainable_parameters, workload.parameters};
  if (const auto reach = workload::counted_document(scenario.training))
    run.documents = {.useful = workload::useful_share(scenario.training),
                     .reach = *reach,
                     .slowest = run.step_time / mean_rank_step(scenario, profile, fabric)};
}

/// The job on the GPU with the least memory.
spec::Scenario tightest(const spec::Scenario& scenario) {
  spec::Scenario tight = scenario;
  for (const spec::OtherGpus& other : scenario.cluster.other_gpus)
    if (other.gpu.memory < tight.cluster.gpu.memory) tight.cluster.gpu = other.gpu;
  return tight;
}

}  // namespace

Prediction predict(const spec::Scenario& scenario, const cost::Profile& profile,
                   const PredictOptions& options) {
  const workload::Workload workload =
      workload::workload_of(scenario.model, scenario.training, scenario.parallelism);
  const plan::MemoryNeed need = plan::memory_need(scenario, workload, profile);
  const spec::Scenario tight = tightest(scenario);
  const result::Memory memory = memory_of(tight, need);
  if (memory.total + memory.context > memory.capacity)
    return {infeasible(tight, memory, need.stage), {}, {}};
  if (auto hosts = too_much_for_hosts(scenario, need)) return {std::move(*hosts), {}, {}};

  const topology::Fabric fabric =
      topology::build_fabric(scenario.cluster, topology::nodes_to_build(scenario.cluster));
  const std::optional<Job> slowest = slowest_job(scenario);
  const spec::Scenario& job = slowest ? slowest->scenario : scenario;
  const workload::Workload& work = slowest ? slowest->workload : workload;
  plan::StepPlan plan = plan::step_plan(job, work, profile, fabric);
  engine::Timeline timeline = engine::replay(plan.graph, {.driver = options.driver});

  result::Run run;
  add_identity(run, scenario, profile, plan.graph);
  run.step_time = result::step_time(plan.graph, timeline);
  add_data(run, scenario, workload, profile, fabric);
  if (scenario.training.stalls.evaluation_interval > 0)
    run.evaluation = evaluation_of(job, work, profile, fabric);
  const Seconds alone = run.step_time;
  run.fleet = fleet_of(scenario, profile);
  if (run.fleet.overlap_slowdown > 0) {
    run.fleet.beside = slow_beside_collectives(plan.graph, timeline, run.fleet.overlap_slowdown);
    if (run.fleet.beside > Seconds(0)) {
      timeline = engine::replay(plan.graph, {.driver = options.driver});
      run.step_time = result::step_time(plan.graph, timeline);
    }
  }
  if (plan::is_uneven(scenario)) {
    UnevenRun uneven = uneven_run(job, work, profile, fabric, plan, timeline, options.driver);
    run.step_time = uneven.spread.mean;
    run.uneven = uneven.spread;
    plan.graph = std::move(uneven.typical.graph);
    timeline = std::move(uneven.typical.timeline);
  }
  const graph::StepGraph& graph = plan.graph;
  add_typical(run, result::metrics_of(graph, timeline));
  run.memory = memory;
  add_rates(run, scenario, workload, profile);
  add_interval(run, drawn_step_times(job, work, profile, fabric, options.interval_draws), alone);
  run.warnings = warnings_of(scenario, profile, graph, timeline);
  return {std::move(run), std::move(plan.graph), std::move(timeline)};
}

namespace {

/// The time of one collective alone by the fluid core.
Seconds fluid_time(const graph::Collective& collective,
                   const std::vector<graph::Resource>& resources) {
  graph::Operation operation;
  operation.name = collective.name;
  operation.kind = graph::Kind::communication;
  operation.stream = graph::Stream::communication;
  operation.work = graph::Work::collective;
  graph::Operation end;
  end.name = "done";
  end.waits_for = {{graph::OpId{0}}};
  graph::StepGraph graph;
  graph.classes = {{.name = "all ranks",
                    .ranks = collective.group_size,
                    .operations = {std::move(operation), std::move(end)}}};
  graph.collectives = {collective};
  graph.resources = resources;
  return result::step_time(engine::replay(graph, {.driver = engine::Driver::standalone}), 1);
}

}  // namespace

std::vector<CollectiveTime> predict_collectives(graph::CollectiveKind kind,
                                                std::span<const Bytes> sizes,
                                                const spec::Cluster& cluster,
                                                const cost::Profile* profile,
                                                const CollectiveOptions& options) {
  const topology::Fabric fabric =
      topology::build_fabric(cluster, topology::nodes_to_build(cluster));
  const std::vector<plan::GroupSet> sets = {
      topology::node_by_node(fabric, topology::placement(cluster))};
  std::vector<plan::CollectiveCall> calls;
  for (const Bytes size : sizes)
    calls.push_back({.name = std::string(name_of(kind)),
                     .kind = kind,
                     .size = size,
                     .members = {graph::RankClassId{0}},
                     .profile = profile,
                     .algorithm = options.algorithm,
                     .protocol = options.protocol});
  const plan::NetworkPlan network = plan::plan_collectives(fabric, sets, calls);
  const auto time_of = [&](std::size_t i) {
    switch (options.fidelity) {
      case Fidelity::fluid:
        return fluid_time(network.collectives[i], network.resources);
      case Fidelity::flow:
        return engine::flow_level_ends(fabric, sets, {calls[i]}).front();
      case Fidelity::chunk:
        return engine::chunk_level_ends(fabric, sets, {calls[i]}).front();
    }
    throw InternalError("unknown fidelity");
  };
  std::vector<CollectiveTime> rows;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Seconds time = time_of(i);
    const BytesPerSecond algbw = time > Seconds(0) ? sizes[i] / time : BytesPerSecond(0);
    rows.push_back(
        {.size = sizes[i],
         .time = time,
         .algbw = algbw,
         .busbw = algbw * result::busbw_factor(kind, cluster.gpus),
         .algorithm = network.collectives[i].algorithm,
         .protocol = profile == nullptr ? "raw links" : network.collectives[i].protocol});
  }
  return rows;
}

CollectiveTime predict_collective(graph::CollectiveKind kind, Bytes size,
                                  const spec::Cluster& cluster, const cost::Profile* profile,
                                  const CollectiveOptions& options) {
  return predict_collectives(kind, {&size, 1}, cluster, profile, options).front();
}

}  // namespace scapesim
