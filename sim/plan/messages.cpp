// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/messages.hpp"

#include <algorithm>
#include <map>

#include "sim/base/check.hpp"
#include "sim/strategy/optimizer.hpp"

namespace scapesim::plan {

namespace {

using graph::OpId;
using graph::Stream;

/// Megatron-LM's 1F1B waits for its neighbours after every pass; the later schedules were made to
/// compute meanwhile.
bool blocks(const spec::Parallelism& parallelism) {
  switch (parallelism.stage_overlap) {
    case spec::StageOverlap::overlapped:
      return false;
    case spec::StageOverlap::blocking:
      return true;
    case spec::StageOverlap::automatic:
      return parallelism.schedule == spec::Schedule::gpipe ||
             parallelism.schedule == spec::Schedule::one_f_one_b;
  }
  throw InternalError("overlap of stages");
}

bool rests(const StageProgram& stage, int chunk) {
  return std::ranges::find(stage.resting, chunk) != stage.resting.end();
}

/// [M418] With parallel sequences ranks hold different tokens as it is.
int message_parts(const spec::Parallelism& parallelism) {
  return parallelism.split_messages && !parallelism.sequence_parallel ? parallelism.tp : 1;
}

class Messages {
 public:
  Messages(std::vector<StageProgram>& stages, const spec::Scenario& scenario)
      : stages_(stages),
        pipeline_(pipeline_of(scenario)),
        bytes_(message_bytes(scenario)),
        parts_(message_parts(scenario.parallelism)),
        blocking_(blocks(scenario.parallelism)) {
    for (const StageProgram& stage : stages)
      for (std::size_t i = 0; i < stage.order.size(); ++i)
        position_.emplace(key(static_cast<int>(&stage - stages.data()), stage.order[i]), i);
  }

  void add_all() {
    for (int stage = 0; stage < pipeline_.stages; ++stage)
      for (std::size_t i = 0; i < stages_[static_cast<std::size_t>(stage)].order.size(); ++i)
        add_behind(stage, i);
  }

 private:
  using Key = std::tuple<int, Pass, int, int>;
  static Key key(int stage, const Slot& slot) {
    return {stage, slot.pass, slot.chunk, slot.micro_batch};
  }
  StageProgram& at(int stage) { return stages_[static_cast<std::size_t>(stage)]; }

  void add_behind(int stage, std::size_t position) {
    const Slot slot = at(stage).order[position];
    if (slot.pass == Pass::weight_gradient) return;
    const bool forward = slot.pass == Pass::forward;
    const int part = part_of(pipeline_, stage, slot.chunk) + (forward ? 1 : -1);
    if (part < 0 || part == parts(pipeline_)) return;
    const int to = stage_of(pipeline_, part);
    if (to == stage) return;  // the turn of a V: the stage's own order sees to it
    // [M430] Nobody wants gradients there.
    if (!forward && rests(at(to), chunk_of(pipeline_, part))) return;
    send(stage, position, to,
         partner(to, {slot.pass, chunk_of(pipeline_, part), slot.micro_batch}));
  }

  /// The pass of a stage that takes what is sent: of a backward pass in halves, the first.
  std::size_t partner(int stage, Slot received) const {
    auto found = position_.find(key(stage, received));
    if (found == position_.end() && received.pass != Pass::forward) {
      const bool whole = received.pass == Pass::backward;
      received.pass = whole ? Pass::input_gradient : Pass::backward;
      found = position_.find(key(stage, received));
    }
    SCAPESIM_CHECK(found != position_.end(), "no pass of stage {} takes the message", stage);
    return found->second;
  }

  bool joined(int stage, std::size_t position) {
    return joins_next(pipeline_, at(stage).order, position);
  }

  void send(int from, std::size_t sent, int to, std::size_t received) {
    const Slot slot = at(from).order[sent];
    const bool forward = slot.pass == Pass::forward;
    const strategy::Call call{
        .name = std::string(forward ? "activations" : "activation gradients") + ": stage " +
                std::to_string(from) + " to " + std::to_string(to) + ", chunk " +
                std::to_string(slot.chunk) + ", micro-batch " + std::to_string(slot.micro_batch),
        .kind = graph::CollectiveKind::send_recv,
        .bytes = bytes_ / parts_,
        .axis = graph::Axis::pipeline,
        .from_stage = from,
        .to_stage = to};
    // Along a V both kinds of messages go both ways; a queue holds those of one way.
    const bool onward = pipeline_.placement == Placement::vee ? to > from : forward;
    const std::size_t ended = joined(from, sent) ? sent + 1 : sent;
    const OpId sending = add(from, call, onward ? Stream::send_forward : Stream::send_backward,
                             {{at(from).ops[ended].last}});
    strategy::Waits posted;
    // With several chunks neighbours send to each other at once: Megatron-LM batches the receives
    // with the sends, so that none waits for the other.
    if (blocking_ && pipeline_.chunks == 1 && received > 0)
      posted.push_back({at(to).ops[received - 1].last});
    const Stream inward = onward ? Stream::receive_forward : Stream::receive_backward;
    const OpId receiving = add(to, call, inward, std::move(posted));
    const OpId whole = parts_ == 1 ? receiving : add(to, gather_of(call), inward, {{receiving}});
    const bool second = received > 0 && joined(to, received - 1);
    wait(to, at(to).ops[second ? received - 1 : received].first, whole);
    if (blocking_ && sent + 1 < at(from).ops.size())
      wait(from, at(from).ops[sent + 1].first, sending);
  }

  /// [M418] The parts that the ranks of a tensor-parallel group received, gathered by all of them.
  strategy::Call gather_of(const strategy::Call& received) const {
    return {.name = received.name + ", gathered",
            .kind = graph::CollectiveKind::all_gather,
            .bytes = bytes_,
            .axis = graph::Axis::tensor};
  }

  OpId add(int stage, const strategy::Call& call, Stream stream, strategy::Waits waits) {
    strategy::Program& program = at(stage).program;
    graph::Operation operation;
    operation.name = call.name;
    operation.kind = graph::Kind::communication;
    operation.stream = stream;
    operation.work = graph::Work::collective;
    operation.collective = {static_cast<std::uint32_t>(program.calls.size())};
    operation.waits_for = std::move(waits);
    operation.formula = call.axis == graph::Axis::tensor ? "M418" : "M236";
    operation.calibration = "network.*";
    operation.bytes = call.bytes;
    program.calls.push_back(call);
    program.operations.push_back(std::move(operation));
    return {static_cast<std::uint32_t>(program.operations.size() - 1)};
  }

  void wait(int stage, OpId op, OpId cause) {
    at(stage).program.operations[index(op)].waits_for.push_back({cause});
  }

  std::vector<StageProgram>& stages_;
  Pipeline pipeline_;
  Bytes bytes_;
  int parts_;  ///< of a message, each from one rank of the tensor-parallel group
  bool blocking_;
  std::map<Key, std::size_t> position_;
};

}  // namespace

// [M236] One vector per token of the rank's share of the sequence.
Bytes message_bytes(const spec::Scenario& scenario) {
  const spec::Training& training = scenario.training;
  const spec::Parallelism& parallelism = scenario.parallelism;
  const double split = parallelism.cp * (parallelism.sequence_parallel ? parallelism.tp : 1.0);
  const double tokens = static_cast<double>(training.micro_batch * training.sequence) / split;
  return Bytes(tokens * scenario.model.hidden * strategy::parameter_bytes(training.precision));
}

void add_messages(std::vector<StageProgram>& stages, const spec::Scenario& scenario) {
  if (stages.size() > 1) Messages(stages, scenario).add_all();
}

}  // namespace scapesim::plan
