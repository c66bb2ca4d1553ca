// SPDX-License-Identifier: Apache-2.0
// A decoder-only transformer as layers of operations: shapes, FLOPs, bytes, parameters, and what
// the forward pass must keep. One GPU, one micro-batch; no time in here.
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

/// A collective that a layer's computation waits for: every rank of the axis calls it.
struct Exchange {
  graph::CollectiveKind kind = graph::CollectiveKind::all_reduce;
  graph::Axis axis = graph::Axis::tensor;
  Bytes bytes;  ///< the nccl-tests size of the call
};

struct Operation {
  std::string name;
  std::variant<Gemm, Attention, Pass, Exchange> shape;
};

/// FLOPs an operation executes; 0 for passes and exchanges.
Flops flops_of(const Operation& operation);
/// Time of an operation's kernels; 0 for exchanges, which are timed on the fabric.
Seconds time_of(const Operation& operation, const cost::KernelCosts& costs);

/// A parameter tensor in the order of the optimizer's flat buffer.
struct Tensor {
  std::string name;
  std::int64_t numel = 0;
  bool always_selected = false;  ///< norm weights and biases: sparse methods send them whole
};

struct Layer {
  std::string name;
  std::vector<Operation> forward;
  std::vector<Operation> backward;  ///< recomputation included
  std::vector<Tensor> tensors;
  Bytes kept;            ///< activations that live from forward to backward, per micro-batch
  Bytes transient;       ///< extra live memory while the layer itself runs
  std::size_t like = 0;  ///< first layer with the same operations (itself when it is the first)
};

struct Workload {
  std::vector<Layer> layers;  ///< embedding, transformer layers, head with loss
  std::int64_t parameters = 0;
  std::int64_t largest_tensor = 0;
  Flops model_flops;  ///< per micro-batch: forward + backward without recomputation [M3]
};

/// [M1] parameters, [M2] FLOPs per operation, [M4] bytes of passes, [M60] kept activations.
Workload workload_of(const spec::Model& model, const spec::Training& training);

/// All tensors in optimizer order.
std::vector<Tensor> tensors_of(const Workload& workload);

}  // namespace scapesim::workload
