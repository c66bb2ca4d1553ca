// SPDX-License-Identifier: Apache-2.0
// Cross-field rules of a scenario: what cannot be right whatever the machine.
#include <algorithm>
#include <fmt/format.h>

#include "sim/spec/method_rules.hpp"
#include "sim/spec/model_rules.hpp"
#include "sim/spec/spec.hpp"
#include "sim/spec/training_rules.hpp"

namespace scapesim::spec {
namespace {

void not_simulated(Violations& list, std::string key, std::string_view value, std::string hint) {
  list.push_back(
      {std::move(key), fmt::format("{} is not simulated in this version", value), std::move(hint)});
}

/// GPUs of one copy of the model against those of the job.
void check_degrees(const Scenario& scenario, Violations& list) {
  const Parallelism& p = scenario.parallelism;
  const std::int64_t model_parallel = std::int64_t{p.tp} * p.pp * p.cp;
  const int gpus = scenario.cluster.gpus;
  if (gpus < 1 || gpus % model_parallel == 0) return;
  list.push_back({"parallelism.tp",
                  fmt::format("{} GPUs do not divide into copies of {} = tp {} x pp {} x cp {}",
                              gpus, model_parallel, p.tp, p.pp, p.cp),
                  gpus < model_parallel ? fmt::format("at least {} GPUs are needed", model_parallel)
                                        : "set cluster.gpus to a multiple"});
}

void check_stage_layers(const Scenario& scenario, Violations& list) {
  const Parallelism& p = scenario.parallelism;
  const std::int64_t parts = std::int64_t{p.pp} * p.virtual_stages;
  std::int64_t sum = 0;
  for (const int layers : p.stage_layers) sum += layers;
  if (std::ssize(p.stage_layers) != parts)
    list.push_back({"parallelism.stage_layers",
                    fmt::format("{} numbers for {} = pp {} x virtual_stages {} parts",
                                p.stage_layers.size(), parts, p.pp, p.virtual_stages),
                    "one per part of the model is needed"});
  else if (sum != scenario.model.layers)
    list.push_back(
        {"parallelism.stage_layers",
         fmt::format("they sum to {}, the model has {} layers", sum, scenario.model.layers),
         "every layer belongs to one stage"});
}

void check_stages(const Scenario& scenario, Violations& list) {
  const Parallelism& p = scenario.parallelism;
  const int layers = scenario.model.layers;
  const std::int64_t parts = std::int64_t{p.pp} * p.virtual_stages;
  if (!p.stage_layers.empty()) return check_stage_layers(scenario, list);
  if (layers < 1 || layers % parts == 0) return;
  const std::string key = p.virtual_stages > 1 ? "parallelism.virtual_stages" : "parallelism.pp";
  if (parts > layers)
    list.push_back({key,
                    fmt::format("{} stages are more than the model's {} layers", parts, layers),
                    fmt::format("at most {} are possible", layers)});
  else
    list.push_back({key, fmt::format("{} layers do not divide into {} stages", layers, parts),
                    "say how with parallelism.stage_layers"});
}

/// The V form alone: its two chunks are said, so that nobody takes it for the bidirectional one.
void check_dualpipe(const Scenario& scenario, Violations& list) {
  const Parallelism& p = scenario.parallelism;
  if (p.pp == 1)
    list.push_back({"parallelism.schedule", "dualpipe needs a pipeline", "set pp = 2 or more"});
  if (p.virtual_stages != 2)
    list.push_back({"parallelism.schedule",
                    fmt::format("dualpipe is simulated in its V form, of two chunks per stage, "
                                "not {}",
                                p.virtual_stages),
                    "set virtual_stages = 2"});
  if (p.stage_overlap == StageOverlap::blocking)
    list.push_back({"parallelism.stage_overlap", "dualpipe does not block on its messages",
                    "set stage_overlap = \"overlapped\" or leave it out"});
}

void check_schedule(const Scenario& scenario, Violations& list) {
  const Parallelism& p = scenario.parallelism;
  if (p.expert_overlap == ExpertOverlap::paired && p.schedule != Schedule::dualpipe)
    list.push_back(
        {"parallelism.expert_overlap",
         fmt::format("{} has no forward and backward passes that run as one", name_of(p.schedule)),
         "set schedule = \"dualpipe\" or leave expert_overlap out"});
  if (p.schedule == Schedule::dualpipe) return;  // has rules of its own
  const bool interleaved = p.schedule == Schedule::interleaved;
  if (interleaved && p.pp > 1 && p.virtual_stages == 1)
    list.push_back({"parallelism.virtual_stages", "interleaved stages have 2 chunks or more",
                    "set virtual_stages = 2 or schedule = \"1f1b\""});
  if (!interleaved && p.virtual_stages > 1)
    list.push_back(
        {"parallelism.virtual_stages",
         fmt::format("{} has one chunk per stage, not {}", name_of(p.schedule), p.virtual_stages),
         "set schedule = \"interleaved\" or virtual_stages = 1"});
  if (p.virtual_stages > 1 && p.pp == 1)
    list.push_back({"parallelism.virtual_stages", "without a pipeline there are no chunks",
                    "set pp = 2 or more, or virtual_stages = 1"});
}

void check_experts(const Scenario& scenario, Violations& list) {
  const Parallelism& p = scenario.parallelism;
  if (p.ep == 1) return;
  const std::int64_t ranks = std::int64_t{data_parallel_size(scenario)} * p.cp * p.tp;
  const std::int64_t of_expert = expert_tensor_parallel(p);
  if (ranks % (of_expert * p.ep) != 0)
    list.push_back({"parallelism.ep",
                    fmt::format("{} ranks of a stage do not divide into {} expert-parallel ones of "
                                "{} each",
                                ranks, p.ep, of_expert),
                    "they lie inside the data, context and tensor parallel ranks"});
  if (p.order.back() != MeshAxis::pp && p.pp > 1)
    list.push_back({"parallelism.order", "with experts split the pipeline comes last",
                    "such as \"tp-cp-ep-dp-pp\""});
}

bool valid_degrees(const Scenario& scenario) {
  const Parallelism& p = scenario.parallelism;
  return p.tp >= 1 && p.pp >= 1 && p.cp >= 1 && scenario.training.micro_batch >= 1 &&
         data_parallel_size(scenario) >= 1;
}

/// Whether GPUs make whole copies of the model; the rest of a division is told once, of the GPUs.
bool divides_into_copies(const Scenario& scenario) {
  const Parallelism& p = scenario.parallelism;
  return scenario.cluster.gpus % (std::int64_t{p.tp} * p.pp * p.cp) == 0;
}

void check_batch(const Scenario& scenario, Violations& list) {
  constexpr std::int64_t kMostMicroBatches = 16'384;  // far above any job, bounds the step graph
  constexpr std::int64_t kMostPasses = 131'072;
  if (!valid_degrees(scenario) || !divides_into_copies(scenario)) return;
  const std::int64_t dp = data_parallel_size(scenario);
  const std::int64_t micro_batch = scenario.training.micro_batch;
  const std::int64_t global_batch = scenario.training.global_batch;
  const std::int64_t unit = dp * micro_batch;
  const Parallelism& p = scenario.parallelism;
  if (global_batch % unit != 0)
    list.push_back({"training.global_batch",
                    fmt::format("{} is no multiple of {} = {} data-parallel ranks x micro-batch {}",
                                global_batch, unit, dp, micro_batch),
                    global_batch < unit ? fmt::format("the smallest is {}", unit)
                                        : fmt::format("{} or {} are", global_batch / unit * unit,
                                                      (global_batch / unit + 1) * unit)});
  else if (global_batch / unit > kMostMicroBatches)
    list.push_back({"training.global_batch",
                    fmt::format("{} micro-batches per step", global_batch / unit),
                    fmt::format("at most {} are simulated", kMostMicroBatches)});
  else if (global_batch / unit * p.pp * p.virtual_stages > kMostPasses)
    list.push_back({"training.global_batch",
                    fmt::format("{} micro-batches through {} stages", global_batch / unit,
                                std::int64_t{p.pp} * p.virtual_stages),
                    fmt::format("at most {} passes are simulated", kMostPasses)});
  else if (p.schedule == Schedule::interleaved && p.pp > 1 && global_batch / unit % p.pp != 0)
    list.push_back(
        {"training.global_batch",
         fmt::format("{} micro-batches are no multiple of pp = {}", global_batch / unit, p.pp),
         fmt::format("interleaved needs a multiple of {} sequences", unit * p.pp)});
  else if (p.schedule == Schedule::dualpipe && global_batch / unit < 2 * std::int64_t{p.pp})
    list.push_back({"training.global_batch",
                    fmt::format("{} micro-batches are fewer than 2 pp = {}", global_batch / unit,
                                2 * std::int64_t{p.pp}),
                    fmt::format("dualpipe needs {} sequences or more", 2 * unit * p.pp)});
}

void check_precision(const Scenario& scenario, Violations& list) {
  const Gpu& gpu = scenario.cluster.gpu;
  const Precision precision = scenario.training.precision;
  const bool fp8 = precision == Precision::fp8;
  if (precision == Precision::mxfp8 || precision == Precision::nvfp4)
    not_simulated(list, "training.precision", name_of(precision), "fp32, fp16, bf16 or fp8");
  else if ((fp8 && gpu.peak_fp8.si() <= 0) ||
           (precision == Precision::fp32 && gpu.peak_tf32.si() <= 0))
    list.push_back({"training.precision",
                    fmt::format("the cluster's GPU has no {} peak", fp8 ? "fp8" : "tf32"),
                    fmt::format("set cluster.gpu_peak_{}", fp8 ? "fp8" : "tf32")});
}

/// Whether a GPU multiplies in a precision.
bool has_peak(const Gpu& gpu, Precision precision) {
  if (precision == Precision::fp8) return gpu.peak_fp8.si() > 0;
  return precision != Precision::fp32 || gpu.peak_tf32.si() > 0;
}

void check_other_gpus(const Scenario& scenario, Violations& list) {
  for (const OtherGpus& other : scenario.cluster.other_gpus)
    if (!has_peak(other.gpu, scenario.training.precision))
      list.push_back({"cluster.other_gpus",
                      fmt::format("the GPU of {} has no {} peak", other.cluster,
                                  name_of(scenario.training.precision)),
                      "another training.precision, or another GPU"});
}

void check_training(const Scenario& scenario, Violations& list) {
  const Training& training = scenario.training;
  check_precision(scenario, list);
  check_other_gpus(scenario, list);
  if (training.optimizer == Optimizer::lamb)
    not_simulated(list, "training.optimizer", "lamb", "adams, adamw or sgd");
}

void check_hosts(const Cluster& cluster, const std::string& key, Violations& list) {
  if (cluster.host_link.bandwidth.si() <= 0)
    list.push_back(
        {key, "the cluster has no link to host memory", "set cluster.host_link_bandwidth"});
  if (cluster.host_memory.si() <= 0)
    list.push_back({key, "the cluster has no host memory", "set cluster.host_memory"});
  if (cluster.host_memory_bandwidth.si() <= 0)
    list.push_back(
        {key, "the cluster has no host memory bandwidth", "set cluster.host_memory_bandwidth"});
}

/// Most transformer layers of a part of the model.
int most_layers(const Scenario& scenario) {
  const Parallelism& p = scenario.parallelism;
  if (!p.stage_layers.empty()) return std::ranges::max(p.stage_layers);
  const std::int64_t parts = std::int64_t{p.pp} * p.virtual_stages;
  return static_cast<int>((scenario.model.layers + parts - 1) / parts);
}

void check_activation_offload(const Scenario& scenario, Violations& list) {
  const Training& training = scenario.training;
  const Schedule schedule = scenario.parallelism.schedule;
  if (!training.activation_offload) {
    if (training.offload_layers)
      list.push_back({"training.offload_layers", "nothing is offloaded",
                      "set training.activation_offload or leave offload_layers out"});
    return;
  }
  check_hosts(scenario.cluster, "training.activation_offload", list);
  if (training.offload_layers && *training.offload_layers > most_layers(scenario))
    list.push_back({"training.offload_layers",
                    fmt::format("a part of the model has {} layers, not {}", most_layers(scenario),
                                *training.offload_layers),
                    "fewer, or leave it out: all"});
  if (halves(schedule))
    list.push_back({"training.activation_offload",
                    fmt::format("{} needs a layer's activations twice in its backward pass, they "
                                "are copied in once",
                                name_of(schedule)),
                    "schedule = \"1f1b\" or \"interleaved\""});
  if (scenario.strategy.method == Method::local_sgd)
    list.push_back({"training.activation_offload", "copies of local steps are not simulated",
                    "another strategy.method"});
}

void check_gradient_sync(const Scenario& scenario, Violations& list) {
  if (scenario.training.gradient_sync == GradientSync::step) return;
  const Strategy& strategy = scenario.strategy;
  if (strategy.method != Method::dense || strategy.sharding != Sharding::none)
    list.push_back({"training.gradient_sync",
                    fmt::format("{} with sharding {} has a rule of its own",
                                name_of(strategy.method), name_of(strategy.sharding)),
                    "leave it out: it is for dense gradients without sharding"});
  if (scenario.parallelism.pp > 1)
    list.push_back({"training.gradient_sync",
                    "gradients of every micro-batch of a pipeline are not summed apart",
                    "leave it out, or set pp = 1"});
}

void check_offload(const Scenario& scenario, Violations& list) {
  const Strategy& strategy = scenario.strategy;
  if (!strategy.offload.residual && !strategy.offload.replica) return;
  if (strategy.offload.replica && strategy.sharding != Sharding::zero1)
    list.push_back({"strategy.offload", "there is no replica without the distributed optimizer",
                    "set strategy.sharding = \"zero1\" or leave \"replica\" out"});
  check_hosts(scenario.cluster, "strategy.offload", list);
}

void check_scape(const Scenario& scenario, Violations& list) {
  const Strategy& strategy = scenario.strategy;
  if (scenario.training.optimizer != Optimizer::adams)
    list.push_back({"training.optimizer",
                    fmt::format("scape is an optimizer on adams, not on {}",
                                name_of(scenario.training.optimizer)),
                    "set training.optimizer = \"adams\""});
  if (strategy.mask_delay == 0 && strategy.mask_wait == MaskWait::overlapped)
    list.push_back({"strategy.mask_delay", "a mask used in the step that makes it cannot overlap",
                    "set mask_wait = \"blocking\" or mask_delay = 1"});
  check_offload(scenario, list);
}

void check_sharding(const Scenario& scenario, Violations& list) {
  const Strategy& strategy = scenario.strategy;
  const Parallelism& p = scenario.parallelism;
  const Sharding sharding = strategy.sharding;
  if (sharding == Sharding::none || sharding == Sharding::zero1) return;
  if (p.pp > 1 && sharding == Sharding::zero2 && p.virtual_stages > 1)
    list.push_back({"strategy.sharding", "zero2 of several chunks per stage is not simulated",
                    p.schedule == Schedule::dualpipe ? "zero1" : "fsdp, or virtual_stages = 1"});
  if (p.pp > 1 && sharding != Sharding::zero2 && halves(p.schedule))
    list.push_back({"strategy.sharding",
                    fmt::format("{} needs a layer's parameters twice in its backward pass, {} "
                                "gathers them once",
                                name_of(p.schedule), name_of(sharding)),
                    p.schedule == Schedule::zb_h1 ? "zero2, or schedule = \"1f1b\""
                                                  : "zero1, or schedule = \"1f1b\""});
  if (sharding != Sharding::hsdp && strategy.method != Method::zeropp) return;
  if (p.ep > 1 && sharding == Sharding::hsdp)
    list.push_back(
        {"strategy.sharding", "hsdp of split experts is not simulated", "fsdp or ep = 1"});
  const std::int64_t copies = std::int64_t{data_parallel_size(scenario)} * p.cp;
  if (copies < 1 || copies % shard_group(scenario) == 0) return;
  list.push_back({"strategy.shard_group",
                  fmt::format("{} data-parallel ranks do not divide into groups of {}", copies,
                              shard_group(scenario)),
                  "set strategy.shard_group to a divisor"});
}

void check_strategy(const Scenario& scenario, Violations& list) {
  const Strategy& strategy = scenario.strategy;
  check_method(scenario, list);
  if (strategy.method == Method::scape) check_scape(scenario, list);
  check_sharding(scenario, list);
}

void check_nic_path(const Cluster& cluster, Violations& list) {
  if (cluster.nic_path == NicPath::gpudirect) return;
  if (cluster.host_link.bandwidth.si() <= 0)
    list.push_back({"cluster.nic_path", "the cluster has no link to host memory",
                    "set cluster.host_link_bandwidth"});
  if (cluster.host_memory_bandwidth.si() <= 0)
    list.push_back({"cluster.nic_path", "the cluster has no host memory bandwidth",
                    "set cluster.host_memory_bandwidth"});
}

}  // namespace

const ForcedCollective* of_kind(const Collectives& collectives, std::string_view kind) {
  const std::pair<std::string_view, const ForcedCollective*> rows[] = {
      {"all-reduce", &collectives.all_reduce},
      {"reduce-scatter", &collectives.reduce_scatter},
      {"all-gather", &collectives.all_gather},
      {"broadcast", &collectives.broadcast},
      {"all-to-all", &collectives.all_to_all}};
  for (const auto& [name, forced] : rows)
    if (name == kind && (forced->algorithm || forced->protocol)) return forced;
  return nullptr;
}

int data_parallel_size(const Scenario& scenario) {
  const Parallelism& p = scenario.parallelism;
  // 64 bits: each degree alone may be a million.
  const std::int64_t model_parallel = std::int64_t{p.tp} * p.pp * p.cp;
  return static_cast<int>(scenario.cluster.gpus / model_parallel);
}

int shard_group(const Scenario& scenario) {
  const int copies = data_parallel_size(scenario) * scenario.parallelism.cp;
  const int in_node = scenario.cluster.gpus_per_node / scenario.parallelism.tp;
  const int chosen = scenario.strategy.shard_group;
  return std::clamp(chosen > 0 ? chosen : in_node, 1, std::max(copies, 1));
}

std::int64_t micro_batches(const Scenario& scenario) {
  return scenario.training.global_batch /
         (std::int64_t{data_parallel_size(scenario)} * scenario.training.micro_batch);
}

std::vector<Violation> violations(const Scenario& scenario) {
  Violations list = violations(scenario.cluster);
  check_model(scenario.model, scenario.training, list);
  check_split(scenario, list);
  if (scenario.parallelism.schedule == Schedule::dualpipe) check_dualpipe(scenario, list);
  if (valid_degrees(scenario)) {
    check_degrees(scenario, list);
    check_stages(scenario, list);
    check_schedule(scenario, list);
    check_experts(scenario, list);
  } else {
    check_degrees(scenario, list);
  }
  check_batch(scenario, list);
  check_training(scenario, list);
  check_tuning(scenario, list);
  check_data(scenario, list);
  check_activation_offload(scenario, list);
  check_gradient_sync(scenario, list);
  check_strategy(scenario, list);
  check_nic_path(scenario.cluster, list);
  return list;
}

}  // namespace scapesim::spec
