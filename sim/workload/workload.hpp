// SPDX-License-Identifier: Apache-2.0
// A transformer as layers of operations: shapes, FLOPs, bytes, parameters, exchanges, and what the
// forward pass must keep. One rank after tensor, context and expert parallelism, one micro-batch;
// no time in here.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/cost/kernels.hpp"
#include "sim/graph/graph.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::workload {

using cost::Attention;
using cost::Gemm;
using cost::Pass;

/// A collective that a layer's computation waits for: every rank of the axis calls it. It starts
/// after the operation before it; the next one waits for it, unless `overlaps` names the next one:
/// then both run together and the operation after that waits for both.
struct Exchange {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  graph::Axis axis = graph::Axis::tensor;
  Bytes bytes;                ///< the nccl-tests size of the call; of a send_recv what a rank sends
  std::string overlaps = {};  ///< name of the operation that follows, or empty
};

struct Operation {
  std::string name;
  std::variant<Gemm, Attention, Pass, Exchange> shape;
};

/// FLOPs an operation executes; 0 for passes and exchanges.
Flops flops_of(const Operation& operation);
/// Time of an operation's kernels; 0 for exchanges, which are timed on the fabric.
Seconds time_of(const Operation& operation, const cost::KernelCosts& costs);
/// Weight gradients are the products that the workload names so: "... wgrad".
bool is_weight_gradient(const Operation& operation);
/// Kernels that the host launches for it; 0 for exchanges.
int launches_of(const Operation& operation);

/// What tensor-parallel ranks that each hold all of a tensor see of its input: a share of the
/// sequence with sequence parallelism, all of it without, or always a share of the heads. never:
/// the tensor is split.
enum class Whole { never, sequence, heads };

/// A parameter tensor in the order of the optimizer's flat buffer; numel is what the rank holds.
struct Tensor {
  std::string name;
  std::int64_t numel = 0;
  bool always_selected = false;  ///< norm weights and biases: sparse methods send them whole
  bool expert = false;           ///< reduced over expert-data-parallel ranks, not over all data
  std::int64_t rows = 0;         ///< of a matrix, or of all matrices stacked; 0: a vector
  double stored = 0;             ///< of a frozen tensor: bytes of an element
  Whole whole = Whole::never;
};

enum class Role { embedding, block, prediction, head };

struct Layer {
  std::string name;
  Role role = Role::block;
  std::vector<Operation> forward;
  std::vector<Operation> backward;  ///< recomputation included
  std::vector<Tensor> tensors;      ///< that are trained: they alone have gradients
  std::vector<Tensor> frozen;       ///< that are only read
  bool rests = false;               ///< nothing of it runs backward
  Bytes kept;            ///< activations that live from forward to backward, per micro-batch
  Bytes transient;       ///< extra live memory while the layer itself runs
  std::size_t like = 0;  ///< first layer with the same operations (itself when it is the first)
};

/// All layers of the model in order, as one rank of their pipeline stage computes them; a pipeline
/// stage is a range of them. Role::prediction layers (multi-token prediction) look up the embedding
/// and compute logits and loss on their own, with the weights of embedding and head.
struct Workload {
  std::vector<Layer> layers;    ///< embedding, transformer layers, [prediction,] head with loss
  std::int64_t parameters = 0;  ///< of the whole model, each once; of a stage those it trains
  std::int64_t trainable_parameters = 0;  ///< of these, what is trained
  std::int64_t active_parameters = 0;     ///< of these, what one token uses
  std::int64_t largest_tensor = 0;        ///< on a rank
  Flops model_flops;  ///< whole model, per micro-batch: forward + backward, no recomputation [M3]
};

/// [M1] parameters, [M2] FLOPs per operation, [M4] bytes of passes, [M60] kept activations, split
/// as [M211] to [M215] say. The scenario has no violations.
Workload workload_of(const spec::Model& model, const spec::Training& training,
                     const spec::Parallelism& parallelism = {});

/// The same without the counts of the whole model, which are 0, and without operations of layers
/// that are like another: several times as fast.
Workload rank_workload(const spec::Model& model, const spec::Training& training,
                       const spec::Parallelism& parallelism);

/// All tensors in optimizer order.
std::vector<Tensor> tensors_of(const Workload& workload);

/// Elements of a layer's trained tensors on a rank: of all, or of its experts alone.
std::int64_t parameters_of(const Layer& layer);
std::int64_t expert_parameters_of(const Layer& layer);
/// [M430] Bytes of a layer's frozen tensors on a rank: of its experts, or of all else.
enum class Part { experts, dense };
Bytes frozen_bytes(const Layer& layer, Part part);

}  // namespace scapesim::workload
