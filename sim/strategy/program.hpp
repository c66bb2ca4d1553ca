// SPDX-License-Identifier: Apache-2.0
// What a strategy may use and how it adds to a rank's program. The schedule of forward and backward
// passes belongs to sim/plan; links and algorithms of collectives too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/cost/kernels.hpp"
#include "sim/cost/profile.hpp"
#include "sim/graph/graph.hpp"
#include "sim/graph/mesh.hpp"
#include "sim/spec/spec.hpp"
#include "sim/workload/workload.hpp"

namespace scapesim::strategy {

/// bulk: ring with the profile's latency per hop; scalar: a few bytes, by tree.
enum class Regime { bulk, scalar };

/// A collective call by the ranks of an axis; bytes are the nccl-tests size. On the axes that join
/// stages (pipeline, embedding, world) the calls of one name are one collective.
struct Call {
  std::string name;
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  Bytes bytes = {};
  Regime regime = Regime::bulk;
  graph::Axis axis = graph::Axis::data;
  int from_stage = 0;  ///< pipeline: who sends
  int to_stage = 0;    ///< pipeline: who receives
};

/// One rank's step: operations in issue order; collective operations index `calls`.
struct Program {
  std::vector<graph::Operation> operations;
  std::vector<Call> calls;
};

/// Everything a strategy may look at. References outlive the program's construction only.
struct Context {
  const spec::Scenario& scenario;
  const workload::Workload& workload;  ///< what a rank of the stage holds
  const cost::Profile& profile;
  const cost::KernelCosts& costs;
  std::vector<workload::Tensor> tensors;  ///< optimizer order
  int ranks = 1;                          ///< that hold the same dense parameters, P
  graph::Mesh mesh = {};
  std::int64_t tied_embedding = 0;  ///< elements of an embedding that another stage holds, too
};

/// The context of a pipeline stage's ranks; the arguments outlive it.
Context context_of(const spec::Scenario& scenario, const workload::Workload& workload,
                   const cost::Profile& profile, const cost::KernelCosts& costs);

using Waits = std::vector<graph::Dependency>;

/// A memory-bound pass [M13], on the compute stream if not told otherwise.
struct PassSpec {
  std::string name;
  graph::Kind kind = graph::Kind::optimizer;
  Bytes traffic;
  int launches = 1;
  std::string formula;
  std::string_view kernel = {};  ///< [M205] its own curve, kernel.<name>, where the profile has it
  graph::Stream stream = graph::Stream::compute;
};
graph::OpId add_pass(Program& program, const Context& context, PassSpec spec, Waits waits = {});

/// A collective on a communicator's stream. Nothing is added for a group of one: returns nullopt.
std::optional<graph::OpId> add_call(Program& program, const Context& context, Call call,
                                    graph::Stream stream, std::string formula, Waits waits);

/// A copy between host and device, shared with what else uses the host link and host memory.
struct CopySpec {
  std::string name;
  graph::Stream stream = graph::Stream::copy_in;  ///< copy_in: host to device
  Bytes bytes;
  std::string_view rate_key;  ///< number of the profile that bounds the rate
  std::string formula;
};
graph::OpId add_copy(Program& program, const Context& context, CopySpec spec, Waits waits = {});

/// Lets a local operation stand for so many of its kind.
void repeat(graph::Operation& operation, int times);

/// Resources that copies load, in the order plan::kCopyResources gives them ids.
enum class CopyResource { host_to_device, device_to_host, host_memory };

/// Pieces of one transfer in a step: beyond this a simulation tells nothing more and takes minutes.
inline constexpr std::int64_t kMostPieces = 16'384;
/// Throws InputError about `key` when a step would be cut into more pieces than kMostPieces.
void refuse_too_many(const std::string& key, std::int64_t pieces, const std::string& name);

/// Appends to a list of waits what may be absent.
void also_wait(Waits& waits, std::optional<graph::OpId> op, int steps_back = 0);

}  // namespace scapesim::strategy
