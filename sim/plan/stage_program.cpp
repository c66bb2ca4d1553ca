// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/stage_program.hpp"

#include <algorithm>
#include <utility>

#include "sim/plan/activation_offload.hpp"
#include "sim/strategy/optimizer.hpp"

namespace scapesim::plan {

namespace {

using graph::OpId;
using strategy::Direction;
using strategy::LayerPass;

constexpr std::string_view kKernels =
    "gemm.*, attention.*, hbm.bandwidth_Bps, host.launch_s, gpu.*";
constexpr std::string_view kExchanges = ", network.*";

OpId append(strategy::Program& program, graph::Operation operation) {
  program.operations.push_back(std::move(operation));
  return OpId{static_cast<std::uint32_t>(program.operations.size() - 1)};
}

bool adds_gradients(Pass pass) { return pass == Pass::backward || pass == Pass::weight_gradient; }

std::string_view verb(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return "forward";
    case Pass::backward:
      return "backward";
    case Pass::input_gradient:
      return "input gradient";
    case Pass::weight_gradient:
      return "weight gradient";
  }
  throw InternalError("pass");
}

class Builder {
 public:
  Builder(const StepInputs& inputs, const strategy::Context& context, int stage)
      : inputs_(inputs),
        context_(context),
        stage_(stage),
        pipeline_(pipeline_of(inputs.scenario)),
        communication_(strategy::method_of(inputs.scenario.strategy.method).make(context)),
        copies_(context) {
    out_.order = stage_order(inputs.scenario.parallelism.schedule, pipeline_, stage);
    // [M436] In the schedule's order.
    if (inputs.purpose == Purpose::evaluation)
      std::erase_if(out_.order, [](const Slot& slot) { return slot.pass != Pass::forward; });
    whole_.resize(static_cast<std::size_t>(pipeline_.chunks) * 8);
    int held = 0;
    for (int chunk = 0; chunk < pipeline_.chunks; ++chunk) {
      first_layer_.push_back(held);
      held += static_cast<int>(part(chunk).end - part(chunk).begin);
      const auto& layers = inputs_.workload.layers;
      if (std::all_of(layers.begin() + static_cast<std::ptrdiff_t>(part(chunk).begin),
                      layers.begin() + static_cast<std::ptrdiff_t>(part(chunk).end),
                      [](const workload::Layer& layer) { return layer.rests; }))
        out_.resting.push_back(chunk);
    }
    mark_ends();
  }

  StageProgram build() {
    const OpId first = add_host("host work: step", "host.step_s");
    add_stalls();
    for (std::size_t i = 0; i < out_.order.size(); ++i) out_.ops.push_back(add_slot(i));
    if (inputs_.purpose == Purpose::evaluation) return std::move(out_);
    out_.training_steps = communication_->training_steps();
    for (graph::Operation& operation : out_.program.operations)
      if (out_.training_steps > 1) strategy::repeat(operation, out_.training_steps);
    communication_->step_end(out_.program, add_whole_sum(out_.ops.back().last));
    auto& waits = out_.program.operations[index(first)].waits_for;
    for (const graph::Dependency& wait : communication_->parameters_needed()) waits.push_back(wait);
    return std::move(out_);
  }

 private:
  const Part& part(int chunk) const {
    return inputs_.parts[static_cast<std::size_t>(part_of(pipeline_, stage_, chunk))];
  }

  /// First forward pass and last pass that adds to the gradients, per chunk.
  void mark_ends() {
    const auto chunks = static_cast<std::size_t>(pipeline_.chunks);
    first_slot_[0].assign(chunks, out_.order.size());
    first_slot_[1].assign(chunks, out_.order.size());
    last_slot_[0].assign(chunks, 0);
    last_slot_[1].assign(chunks, 0);
    for (std::size_t i = 0; i < out_.order.size(); ++i) {
      const Slot& slot = out_.order[i];
      if (slot.pass == Pass::input_gradient) continue;
      const auto direction = static_cast<std::size_t>(slot.pass != Pass::forward);
      const auto chunk = static_cast<std::size_t>(slot.chunk);
      first_slot_[direction][chunk] = std::min(first_slot_[direction][chunk], i);
      last_slot_[direction][chunk] = i;
    }
  }

  LayerPass pass_at(std::size_t position) const {
    const Slot& slot = out_.order[position];
    const bool forward = slot.pass == Pass::forward;
    const auto direction = static_cast<std::size_t>(!forward);
    const auto chunk = static_cast<std::size_t>(slot.chunk);
    return {.direction = forward ? Direction::forward : Direction::backward,
            .layer = first_layer_[chunk],
            .first = first_slot_[direction][chunk] == position,
            .last = last_slot_[direction][chunk] == position};
  }

  /// [M429] Tensors that every tensor-parallel rank holds, and uses on a share of the sequence or
  /// of the heads, get the sum of all ranks' gradients.
  OpId add_whole_sum(OpId last) {
    const spec::Scenario& scenario = inputs_.scenario;
    // Local steps would each have a sum of their own.
    if (out_.training_steps > 1) return last;
    std::int64_t elements = 0;
    for (const workload::Tensor& tensor : context_.tensors)
      if (tensor.whole == workload::Whole::heads ||
          (tensor.whole == workload::Whole::sequence && scenario.parallelism.sequence_parallel))
        elements += tensor.numel;
    if (elements == 0) return last;
    const double element = strategy::gradient_bytes(scenario.training.gradient_dtype);
    return strategy::add_call(out_.program, context_,
                              {.name = "gradient all-reduce of unsplit tensors",
                               .kind = graph::CollectiveKind::all_reduce,
                               .bytes = Bytes(static_cast<double>(elements) * element),
                               .axis = graph::Axis::tensor},
                              graph::Stream::tensor_communication, "M429", {{last}})
        .value_or(last);
  }

  /// [M34] Host work that the GPU waits for: a constant of the profile.
  OpId add_host(std::string name, std::string key) {
    graph::Operation operation;
    operation.name = std::move(name);
    operation.kind = graph::Kind::host;
    operation.duration = Seconds(context_.profile.number(key));
    operation.formula = "M34";
    operation.calibration = std::move(key);
    return append(out_.program, std::move(operation));
  }

  /// [M435] Stated times that the GPU waits for; a log's in equal parts of its interval's steps.
  void add_stalls() {
    const spec::Stalls& stalls = inputs_.scenario.training.stalls;
    add_stall("data loading", stalls.data_loading);
    if (inputs_.purpose == Purpose::training)
      add_stall("logging", stalls.logging / stalls.logging_interval);
  }
  void add_stall(std::string name, Seconds time) {
    if (time <= Seconds(0)) return;
    graph::Operation operation;
    operation.name = std::move(name);
    operation.kind = graph::Kind::host;
    operation.duration = time;
    operation.formula = "M435";
    append(out_.program, std::move(operation));
  }

  OpId add_pass(std::string name, const PassCost& cost, strategy::Waits waits) {
    graph::Operation operation;
    operation.name = std::move(name);
    operation.duration = cost.time;
    operation.flops = cost.flops;
    operation.inside = cost.inside;
    operation.waits_for = std::move(waits);
    operation.formula = cost.inside.empty() ? "M11" : "M233";
    operation.calibration = kKernels;
    if (!cost.inside.empty()) operation.calibration += kExchanges;
    return append(out_.program, std::move(operation));
  }

  std::string suffix(const Slot& slot) const {
    const std::string batch = "micro-batch " + std::to_string(slot.micro_batch);
    return pipeline_.chunks == 1 ? batch : "chunk " + std::to_string(slot.chunk) + ", " + batch;
  }

  const PassCost& whole(const Slot& slot, const std::optional<Pair>& pair) {
    auto& cost = whole_[static_cast<std::size_t>(slot.chunk) * 8 +
                        static_cast<std::size_t>(slot.pass) * 2 + (pair ? 1 : 0)];
    if (!cost)
      cost = inputs_.layer_costs.part(part(slot.chunk).begin, part(slot.chunk).end, slot.pass,
                                      hidden_share(pair));
    return *cost;
  }

  /// The pair that a pass belongs to, if its exchanges of experts are hidden.
  std::optional<Pair> pair_at(std::size_t position) const {
    if (!spec::pairs_experts(inputs_.scenario.parallelism)) return std::nullopt;
    const bool second = position > 0 && joins_next(pipeline_, out_.order, position - 1);
    if (!second && !joins_next(pipeline_, out_.order, position)) return std::nullopt;
    const std::size_t first = second ? position - 1 : position;
    return Pair{part(out_.order[first].chunk), part(out_.order[first + 1].chunk)};
  }

  double hidden_share(const std::optional<Pair>& pair) const {
    return pair ? inputs_.layer_costs.hidden_share(*pair) : 0;
  }

  /// [M235] A pass is one operation, or one per layer where the strategy has work at layer borders.
  SlotOps add_slot(std::size_t position) {
    const Slot& slot = out_.order[position];
    const LayerPass pass = pass_at(position);
    if (slot.pass == Pass::forward && slot.chunk == 0 &&
        context_.profile.number("host.micro_batch_s") > 0)
      add_host("host work: micro-batch " + std::to_string(slot.micro_batch), "host.micro_batch_s");
    // Halves of a backward pass are watched where the gradients are made.
    const bool watched = slot.pass != Pass::input_gradient && communication_->watches(pass);
    const std::string name(verb(slot.pass));
    const std::optional<Pair> pair = pair_at(position);
    SlotOps ops;
    if (watched || offloads()) {
      ops = add_layers(slot, pass, {.pair = pair, .watched = watched});
    } else {
      ops.first = ops.last = add_pass(name + ": " + suffix(slot), whole(slot, pair), take_waits());
      out_.passes.push_back(
          {ops.last, part(slot.chunk).begin, part(slot.chunk).end, slot.pass, pair});
    }
    if (adds_gradients(slot.pass))
      next_waits_ = communication_->pass_done(out_.program, pass, ops.last);
    return ops;
  }

  /// How a pass is issued layer by layer.
  struct ByLayer {
    std::optional<Pair> pair;
    bool watched = false;  ///< by the strategy
  };

  SlotOps add_layers(const Slot& slot, LayerPass pass, const ByLayer& how) {
    const Part& range = part(slot.chunk);
    const double hidden = hidden_share(how.pair);
    const auto count = static_cast<int>(range.end - range.begin);
    SlotOps ops;
    for (int i = 0; i < count; ++i) {
      const int offset = slot.pass == Pass::forward ? i : count - 1 - i;
      const std::size_t layer = range.begin + static_cast<std::size_t>(offset);
      pass.layer = first_layer_[static_cast<std::size_t>(slot.chunk)] + offset;
      ops.last =
          add_pass(std::string(verb(slot.pass)) + ": " + inputs_.workload.layers[layer].name +
                       ": micro-batch " + std::to_string(slot.micro_batch),
                   with_hidden(inputs_.layer_costs.layer(layer, slot.pass), hidden),
                   waits_before(slot, layer, pass, how));
      out_.passes.push_back({ops.last, layer, layer + 1, slot.pass, how.pair});
      if (i == 0) ops.first = ops.last;
      if (offloaded(slot, layer))
        copies_.behind(out_.program, slot, layer, inputs_.workload.layers[layer].kept, ops.last);
      if (how.watched) communication_->layer_done(out_.program, pass, ops.last);
    }
    return ops;
  }

  strategy::Waits waits_before(const Slot& slot, std::size_t layer, const LayerPass& pass,
                               const ByLayer& how) {
    strategy::Waits waits = take_waits();
    if (how.watched)
      for (const graph::Dependency& wait : communication_->layer_needed(out_.program, pass))
        waits.push_back(wait);
    if (offloaded(slot, layer))
      for (const graph::Dependency& wait :
           copies_.before(out_.program, slot, layer, inputs_.workload.layers[layer].kept))
        waits.push_back(wait);
    return waits;
  }

  /// An evaluation keeps nothing for a backward pass.
  bool offloads() const {
    return inputs_.scenario.training.activation_offload && inputs_.purpose != Purpose::evaluation;
  }
  bool offloaded(const Slot& slot, std::size_t layer) const {
    return offloads() &&
           is_offloaded(inputs_.workload, inputs_.scenario.training, part(slot.chunk), layer);
  }

  strategy::Waits take_waits() { return std::exchange(next_waits_, {}); }

  const StepInputs& inputs_;
  const strategy::Context& context_;
  int stage_;
  Pipeline pipeline_;
  std::unique_ptr<strategy::Communication> communication_;
  ActivationCopies copies_;
  StageProgram out_;
  std::vector<int> first_layer_;                           ///< per chunk, in the stage's workload
  std::vector<std::size_t> first_slot_[2], last_slot_[2];  ///< per direction and chunk
  std::vector<std::optional<PassCost>> whole_;             ///< per chunk, pass, paired or not
  strategy::Waits next_waits_;
};

/// Elements of an embedding that this stage shares with another one.
std::int64_t shared_embedding(const spec::Scenario& scenario, const workload::Workload& held,
                              int stage) {
  const int stages = scenario.parallelism.pp;
  const bool frozen = scenario.training.frozen_layers > 0 || scenario.training.lora.rank > 0;
  // The first stage of a V is its last one, too.
  const bool is_vee = placement_of(scenario.parallelism.schedule) == Placement::vee;
  if (!scenario.model.tied_embeddings || stages == 1 || frozen || is_vee) return 0;
  if (stage == 0) return held.layers.front().tensors.front().numel;
  if (stage == stages - 1) return held.layers.back().tensors.back().numel;
  return 0;
}

}  // namespace

strategy::Context context_of_stage(const spec::Scenario& scenario, const workload::Workload& held,
                                   const cost::Profile& profile, const cost::KernelCosts& costs,
                                   int stage) {
  strategy::Context context = strategy::context_of(scenario, held, profile, costs);
  context.tied_embedding = shared_embedding(scenario, held, stage);
  return context;
}

StageProgram stage_program(const StepInputs& inputs, int stage) {
  const workload::Workload held =
      stage_workload(inputs.workload, inputs.scenario, inputs.parts, stage);
  const strategy::Context context =
      context_of_stage(inputs.scenario, held, inputs.profile, inputs.costs, stage);
  return Builder(inputs, context, stage).build();
}

}  // namespace scapesim::plan
