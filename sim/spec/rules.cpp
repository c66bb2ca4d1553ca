// SPDX-License-Identifier: Apache-2.0
// Cross-field rules of a scenario: what cannot be right whatever the machine.
#include <fmt/format.h>

#include "sim/spec/model_rules.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::spec {
namespace {

using Violations = std::vector<Violation>;

void not_simulated(Violations& list, std::string key, std::string_view value, std::string hint) {
  list.push_back(
      {std::move(key), fmt::format("{} is not simulated in this version", value), std::move(hint)});
}

void check_parallelism(const Parallelism& parallelism, Violations& list) {
  const auto degree = [&](const char* name, int value) {
    if (value != 1)
      not_simulated(list, fmt::format("parallelism.{}", name), fmt::format("{} = {}", name, value),
                    fmt::format("set {} = 1", name));
  };
  degree("tp", parallelism.tp);
  degree("pp", parallelism.pp);
  degree("cp", parallelism.cp);
  degree("ep", parallelism.ep);
  degree("virtual_stages", parallelism.virtual_stages);
  if (parallelism.sequence_parallel)
    not_simulated(list, "parallelism.sequence_parallel", "sequence_parallel = true",
                  "set it to false");
}

bool valid_degrees(const Scenario& scenario) {
  const Parallelism& p = scenario.parallelism;
  return p.tp >= 1 && p.pp >= 1 && p.cp >= 1 && scenario.training.micro_batch >= 1 &&
         data_parallel_size(scenario) >= 1;
}

void check_batch(const Scenario& scenario, Violations& list) {
  constexpr std::int64_t kMostMicroBatches = 16'384;  // far above any job, bounds the step graph
  if (!valid_degrees(scenario)) return;
  const std::int64_t dp = data_parallel_size(scenario);
  const std::int64_t micro_batch = scenario.training.micro_batch;
  const std::int64_t global_batch = scenario.training.global_batch;
  const std::int64_t unit = dp * micro_batch;
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

void check_training(const Scenario& scenario, Violations& list) {
  const Training& training = scenario.training;
  check_precision(scenario, list);
  if (training.optimizer == Optimizer::lamb)
    not_simulated(list, "training.optimizer", "lamb", "adams, adamw or sgd");
}

void check_offload(const Scenario& scenario, Violations& list) {
  const Strategy& strategy = scenario.strategy;
  const Cluster& cluster = scenario.cluster;
  if (!strategy.offload.residual && !strategy.offload.replica) return;
  if (strategy.offload.replica && strategy.sharding != Sharding::zero1)
    list.push_back({"strategy.offload", "there is no replica without the distributed optimizer",
                    "set strategy.sharding = \"zero1\" or leave \"replica\" out"});
  if (cluster.host_link.bandwidth.si() <= 0)
    list.push_back({"strategy.offload", "the cluster has no link to host memory",
                    "set cluster.host_link_bandwidth"});
  if (cluster.host_memory.si() <= 0)
    list.push_back(
        {"strategy.offload", "the cluster has no host memory", "set cluster.host_memory"});
  if (cluster.host_memory_bandwidth.si() <= 0)
    list.push_back({"strategy.offload", "the cluster has no host memory bandwidth",
                    "set cluster.host_memory_bandwidth"});
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

void check_strategy(const Scenario& scenario, Violations& list) {
  const Strategy& strategy = scenario.strategy;
  const bool dense = strategy.method == Method::dense;
  const bool scape = strategy.method == Method::scape;
  if (!dense && !scape)
    not_simulated(list, "strategy.method", name_of(strategy.method), "dense or scape");
  if (strategy.sharding != Sharding::none && strategy.sharding != Sharding::zero1)
    not_simulated(list, "strategy.sharding", name_of(strategy.sharding), "none or zero1");
  if (dense && strategy.density < 1)
    list.push_back({"strategy.density",
                    fmt::format("dense sends everything, not {}", strategy.density),
                    "set strategy.method = \"scape\" or leave density out"});
  if (scape) check_scape(scenario, list);
}

}  // namespace

int data_parallel_size(const Scenario& scenario) {
  const Parallelism& p = scenario.parallelism;
  // 64 bits: each degree alone may be a million.
  const std::int64_t model_parallel = std::int64_t{p.tp} * p.pp * p.cp;
  return static_cast<int>(scenario.cluster.gpus / model_parallel);
}

std::int64_t micro_batches(const Scenario& scenario) {
  return scenario.training.global_batch /
         (std::int64_t{data_parallel_size(scenario)} * scenario.training.micro_batch);
}

std::vector<Violation> violations(const Scenario& scenario) {
  Violations list = violations(scenario.cluster);
  check_model(scenario.model, scenario.training, list);
  check_split(scenario, list);
  check_parallelism(scenario.parallelism, list);
  check_batch(scenario, list);
  check_training(scenario, list);
  check_strategy(scenario, list);
  return list;
}

}  // namespace scapesim::spec
