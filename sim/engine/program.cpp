// SPDX-License-Identifier: Apache-2.0
#include "sim/engine/program.hpp"

#include <algorithm>
#include <array>

#include "sim/base/check.hpp"

namespace scapesim::engine {

namespace {

using graph::Operation;
using graph::RankClass;
using graph::StepGraph;
using graph::Work;

void check_phase(const StepGraph& graph, const graph::Phase& phase, const std::string& name) {
  SCAPESIM_CHECK(phase.latency.si() >= 0 && phase.bytes.si() >= 0, "{}: latency {}, bytes {}", name,
                 phase.latency.si(), phase.bytes.si());
  for (const graph::Load& load : phase.loads)
    SCAPESIM_CHECK(index(load.resource) < graph.resources.size() && load.flows > 0,
                   "{}: resource {}, flows {}", name, load.resource.value, load.flows);
}

Program::Op op_of(const StepGraph& graph, const Operation& operation) {
  Program::Op op;
  switch (operation.work) {
    case Work::local:
      SCAPESIM_CHECK(operation.duration.si() >= 0, "{}: {} s", operation.name,
                     operation.duration.si());
      op.duration = operation.duration;
      break;
    case Work::transfer:
      check_phase(graph, operation.transfer, operation.name);
      op.transfer = &operation.transfer;
      break;
    case Work::collective:
      SCAPESIM_CHECK(index(operation.collective) < graph.collectives.size(), "{}: collective {}",
                     operation.name, operation.collective.value);
      op.collective_id = operation.collective.value;
      op.collective = &graph.collectives[op.collective_id];
      break;
  }
  return op;
}

/// Numbers the streams that a class uses and lists their operations; marks what ends its step.
void add_streams(const RankClass& rank_class, GlobalOp first, Program& program) {
  std::array<std::vector<GlobalOp>, graph::kStreams> issue;
  for (std::size_t i = 0; i < rank_class.operations.size(); ++i)
    issue[static_cast<std::size_t>(rank_class.operations[i].stream)].push_back(
        first + static_cast<GlobalOp>(i));
  const bool computes = !issue[static_cast<std::size_t>(graph::Stream::compute)].empty();
  for (std::size_t stream = 0; stream < issue.size(); ++stream) {
    if (issue[stream].empty()) continue;
    const auto begin = static_cast<std::uint32_t>(program.issue.size());
    for (const GlobalOp op : issue[stream]) {
      program.ops[op].stream = static_cast<StreamId>(program.streams.size());
      program.issue.push_back(op);
    }
    program.streams.push_back({begin, static_cast<std::uint32_t>(program.issue.size())});
    program.ops[program.issue.back()].ends_step =
        !computes || stream == static_cast<std::size_t>(graph::Stream::compute);
  }
}

void add_class(const StepGraph& graph, const RankClass& rank_class, Program& program) {
  SCAPESIM_CHECK(!rank_class.operations.empty(), "{}: no operations", rank_class.name);
  const auto first = static_cast<GlobalOp>(program.ops.size());
  program.first_op.push_back(first);
  for (const Operation& operation : rank_class.operations) {
    Program::Op op = op_of(graph, operation);
    op.waits.begin = static_cast<std::uint32_t>(program.waits.size());
    for (const graph::Dependency& wait : operation.waits_for) {
      SCAPESIM_CHECK(index(wait.op) < rank_class.operations.size() && wait.steps_back >= 0,
                     "{}: waits for operation {}, {} steps back", operation.name, wait.op.value,
                     wait.steps_back);
      program.waits.push_back({first + wait.op.value, wait.steps_back});
    }
    op.waits.end = static_cast<std::uint32_t>(program.waits.size());
    program.ops.push_back(op);
  }
  add_streams(rank_class, first, program);
}

/// Who enters which collective, once each; the same as the collectives' own lists of members.
void add_members(const StepGraph& graph, Program& program) {
  program.members.assign(graph.collectives.size(), 0);
  std::vector<std::vector<graph::RankClassId>> entered(graph.collectives.size());
  for (std::uint32_t c = 0; c < graph.classes.size(); ++c)
    for (const Operation& operation : graph.classes[c].operations)
      if (operation.work == Work::collective) entered[index(operation.collective)].push_back({c});
  for (std::size_t i = 0; i < entered.size(); ++i) {
    const graph::Collective& collective = graph.collectives[i];
    for (const graph::Phase& phase : collective.phases) check_phase(graph, phase, collective.name);
    std::vector<graph::RankClassId> members = collective.members;
    std::sort(members.begin(), members.end());
    SCAPESIM_CHECK(entered[i] == members, "{}: {} members, entered {} times", collective.name,
                   members.size(), entered[i].size());
    program.members[i] = static_cast<int>(members.size());
  }
}

}  // namespace

Program program_of(const StepGraph& graph) {
  SCAPESIM_CHECK(!graph.classes.empty(), "no rank classes");
  SCAPESIM_CHECK(graph.period > 0, "period {}", graph.period);
  Program program;
  for (const RankClass& rank_class : graph.classes) add_class(graph, rank_class, program);
  add_members(graph, program);
  return program;
}

}  // namespace scapesim::engine
