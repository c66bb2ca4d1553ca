// SPDX-License-Identifier: Apache-2.0
// One training step as values: per rank class, operations on streams with dependencies; collectives
// as phases on resources. No logic.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/id.hpp"
#include "sim/base/named.hpp"
#include "sim/base/units.hpp"
#include "sim/spec/enums.hpp"

namespace scapesim::graph {

using OpId = Id<struct OpTag>;  ///< within a rank class
using RankClassId = Id<struct RankClassTag>;
using CollectiveId = Id<struct CollectiveTag>;
using ResourceId = Id<struct ResourceTag>;

/// One FIFO each. Every communicator has its own, so does every copy direction.
enum class Stream {
  compute,
  communication,  ///< gradients and parameters, over data-parallel ranks
  mask_communication,
  tensor_communication,
  context_communication,
  expert_communication,
  send_forward,  ///< activations to the next pipeline stage
  receive_forward,
  send_backward,  ///< their gradients to the stage before
  receive_backward,
  copy_in,
  copy_out,
  host
};
inline std::span<const Named<Stream>> names_of(Stream*) {
  using enum Stream;
  static constexpr Named<Stream> kRows[] = {{compute, "compute"},
                                            {communication, "communication"},
                                            {mask_communication, "mask communication"},
                                            {tensor_communication, "tensor communication"},
                                            {context_communication, "context communication"},
                                            {expert_communication, "expert communication"},
                                            {send_forward, "send forward"},
                                            {receive_forward, "receive forward"},
                                            {send_backward, "send backward"},
                                            {receive_backward, "receive backward"},
                                            {copy_in, "copy in"},
                                            {copy_out, "copy out"},
                                            {host, "host"}};
  return kRows;
}
inline constexpr int kStreams = 13;

/// What an operation counts as in the breakdown of a step.
enum class Kind { compute, optimizer, communication, copy, host };

enum class CollectiveKind {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  send_recv
};
inline std::span<const Named<CollectiveKind>> names_of(CollectiveKind*) {
  using enum CollectiveKind;
  static constexpr Named<CollectiveKind> kRows[] = {
      {all_reduce, "all-reduce"}, {reduce_scatter, "reduce-scatter"}, {all_gather, "all-gather"},
      {broadcast, "broadcast"},   {all_to_all, "all-to-all"},         {send_recv, "send-recv"}};
  return kRows;
}

/// Ranks of the mesh that differ in this coordinate only form the groups of a collective.
enum class Axis {
  data,         ///< copies of the dense parameters: data times context ranks
  expert_data,  ///< copies of the same experts
  tensor,
  context,
  expert,
  pipeline,   ///< a stage and the next
  embedding,  ///< first and last stage, which share tied embeddings
  shard,      ///< data ranks that share one copy of the parameters
  replica,    ///< data ranks that hold the same share
  world
};
inline std::span<const Named<Axis>> names_of(Axis*) {
  using enum Axis;
  static constexpr Named<Axis> kRows[] = {
      {data, "data parallel"},     {expert_data, "expert data parallel"},
      {tensor, "tensor parallel"}, {context, "context parallel"},
      {expert, "expert parallel"}, {pipeline, "pipeline"},
      {embedding, "embedding"},    {shard, "shard group"},
      {replica, "replica group"},  {world, "all ranks"}};
  return kRows;
}

using spec::Algorithm;
using spec::Protocol;

/// A capacity that concurrent transfers share max-min fairly: a class of equal links, a NIC's
/// transport, a copy engine, a memory.
struct Resource {
  std::string name;
  BytesPerSecond capacity;
};

/// How many flows of a transfer cross one resource.
struct Load {
  ResourceId resource;
  double flows = 1;
};

/// Bytes that move at one common rate per flow after a latency: a ring's steady state, a copy.
struct Phase {
  Seconds latency;          ///< before the first byte of the flow counts
  Bytes bytes;              ///< per flow
  BytesPerSecond rate_cap;  ///< per flow; 0: none
  std::vector<Load> loads;
};

/// A collective call that some rank classes enter together; it starts when the last one is ready.
struct Collective {
  std::string name;
  CollectiveKind kind = CollectiveKind::all_reduce;
  int group_size = 1;
  Bytes bytes;  ///< the nccl-tests size of the call
  std::string algorithm = "ring";
  std::string protocol = "Simple";
  std::vector<Phase> phases;  ///< one after the other; none for a group of one
  std::vector<RankClassId> members;
  Seconds lower_bound = {};  ///< no run of it may be shorter
  Axis axis = Axis::world;   ///< whose groups enter it
};

/// Waits for `op` of the step `steps_back` steps earlier (0: of the same step).
struct Dependency {
  OpId op;
  int steps_back = 0;
};

/// Calls of a collective within local work, timed as if they had their links for themselves.
struct Inside {
  std::string name;
  CollectiveKind kind = CollectiveKind::all_reduce;
  int group_size = 1;
  int count = 0;
  Bytes bytes;      ///< the nccl-tests size of one call
  Seconds time;     ///< all calls
  Seconds exposed;  ///< what they add to the duration
  std::string algorithm = "ring";
  std::string protocol = "Simple";
};

/// What runs: for `duration`, or as a phase, or as a collective (exactly one of the three).
enum class Work { local, transfer, collective };

struct Operation {
  std::string name;
  Kind kind = Kind::compute;
  Stream stream = Stream::compute;
  Work work = Work::local;
  Seconds duration;         ///< local
  Phase transfer;           ///< transfer: a copy
  CollectiveId collective;  ///< collective
  std::vector<Dependency> waits_for;
  std::string formula;              ///< id in MODEL.md, "M4"
  std::string calibration;          ///< profile keys it rests on, comma separated
  Flops flops;                      ///< arithmetic done, 0 for passes
  Bytes bytes;                      ///< memory traffic or bytes copied
  std::vector<Inside> inside = {};  ///< local: communication that its duration holds
};

/// Ranks that run the same program and meet the same bottlenecks. Operations of one stream run in
/// the order they are listed.
struct RankClass {
  std::string name;
  int ranks = 1;
  std::vector<Operation> operations;
};

/// One step for everybody, ready to be timed.
struct StepGraph {
  std::vector<RankClass> classes;
  std::vector<Collective> collectives;
  std::vector<Resource> resources;
  int period = 1;  ///< steps after which the pattern repeats (2 with double buffers across steps)
  int training_steps = 1;  ///< that one step here stands for: those of a round of local steps
};

}  // namespace scapesim::graph
