// SPDX-License-Identifier: Apache-2.0
// One rank's program of a method, without a schedule around it: a backward pass per layer, then the
// step's end. What it sends is counted as bytes on a ring.
#pragma once

#include <algorithm>
#include <numeric>

#include "sim/strategy/strategy.hpp"
#include "tests/support/models.hpp"
#include "tests/support/profile.hpp"

namespace scapesim::test {

using strategy::Program;

/// A scenario of one micro-batch per rank on `ranks` one-GPU nodes; host memory is not the limit.
inline spec::Scenario scenario_of(const spec::Model& model, int ranks) {
  spec::Scenario scenario;
  scenario.name = "test";
  scenario.model = model;
  scenario.training = training_of(1, 1024);
  scenario.training.global_batch = ranks;
  scenario.cluster.name = "test";
  scenario.cluster.nodes = ranks;
  scenario.cluster.gpus = ranks;
  scenario.cluster.nic_bandwidth = BytesPerSecond(50e9);
  scenario.cluster.fabric.latency = Seconds(5e-6);
  scenario.cluster.gpu = round_gpu();
  scenario.cluster.host_link.bandwidth = BytesPerSecond(1e12);
  scenario.cluster.host_memory = Bytes(1e13);
  scenario.cluster.host_memory_bandwidth = BytesPerSecond(1e13);
  return scenario;
}

inline spec::Scenario scape_scenario(const spec::Model& model, int ranks, double density) {
  spec::Scenario scenario = scenario_of(model, ranks);
  scenario.strategy.method = spec::Method::scape;
  scenario.strategy.density = density;
  return scenario;
}

/// What a strategy looks at, kept alive together.
class Rig {
 public:
  explicit Rig(spec::Scenario scenario)
      : scenario_(std::move(scenario)),
        workload_(workload::workload_of(scenario_.model, scenario_.training)),
        profile_(round_profile()),
        costs_(profile_, scenario_.cluster.gpu, scenario_.training.precision),
        context_{.scenario = scenario_,
                 .workload = workload_,
                 .profile = profile_,
                 .costs = costs_,
                 .tensors = workload::tensors_of(workload_),
                 .ranks = spec::data_parallel_size(scenario_) * scenario_.parallelism.cp,
                 .mesh = graph::mesh_of(scenario_)} {}
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  const strategy::Context& context() const { return context_; }
  const workload::Workload& workload() const { return workload_; }
  double parameters() const { return static_cast<double>(workload_.parameters); }
  double ranks() const { return context_.ranks; }
  /// Share of the data that a ring moves away from a rank, (P-1)/P.
  double sent_share() const { return (ranks() - 1) / ranks(); }

  /// Operation i is the backward pass of the i-th layer from the end.
  Program program() const {
    const auto method = strategy::method_of(scenario_.strategy.method).make(context_);
    Program program;
    graph::OpId last{};
    for (std::size_t layer = workload_.layers.size(); layer-- > 0;) {
      const strategy::LayerPass pass{.direction = strategy::Direction::backward,
                                     .layer = static_cast<int>(layer),
                                     .first = true,
                                     .last = true};
      graph::Operation backward;
      backward.name = "backward";
      program.operations.push_back(backward);
      last = {static_cast<std::uint32_t>(program.operations.size() - 1)};
      if (method->watches(pass)) method->layer_done(program, pass, last);
    }
    method->step_end(program, last);
    return program;
  }
  strategy::StateMemory memory() const {
    return strategy::method_of(scenario_.strategy.method).memory(context_);
  }

 private:
  spec::Scenario scenario_;
  workload::Workload workload_;
  cost::Profile profile_;
  cost::KernelCosts costs_;
  strategy::Context context_;
};

/// Bytes that a rank sends for a call of this nccl-tests size on a ring.
inline double ring_bytes(const strategy::Call& call, double ranks) {
  const double around = (ranks - 1) / ranks;
  return call.bytes.si() * around * (call.kind == graph::CollectiveKind::all_reduce ? 2 : 1);
}

/// Bytes that a rank sends per step in bulk calls.
inline double bytes_sent(const Program& program, double ranks) {
  double sum = 0;
  for (const strategy::Call& call : program.calls)
    if (call.regime == strategy::Regime::bulk) sum += ring_bytes(call, ranks);
  return sum;
}

inline std::vector<strategy::Call> calls_named(const Program& program, std::string_view name) {
  std::vector<strategy::Call> list;
  for (const strategy::Call& call : program.calls)
    if (call.name == name) list.push_back(call);
  return list;
}

inline std::vector<graph::Operation> operations_named(const Program& program,
                                                      std::string_view name) {
  std::vector<graph::Operation> list;
  for (const graph::Operation& operation : program.operations)
    if (operation.name == name) list.push_back(operation);
  return list;
}

/// Memory traffic of all passes of one name, or of all passes of the optimizer.
inline double traffic_of(const Program& program, std::string_view name) {
  double sum = 0;
  for (const graph::Operation& operation : operations_named(program, name))
    sum += operation.bytes.si();
  return sum;
}
inline double optimizer_traffic(const Program& program) {
  double sum = 0;
  for (const graph::Operation& operation : program.operations)
    if (operation.kind == graph::Kind::optimizer) sum += operation.bytes.si();
  return sum;
}

}  // namespace scapesim::test
