// SPDX-License-Identifier: Apache-2.0
// DeMo (Peng, Quesnelle, Kingma 2024, arXiv 2411.19870, and its released optimizer): the fastest
// moving components of each rank's momentum, as cosine coefficients of square chunks, are gathered
// by all; the rest stays. An optimizer of its own: training.optimizer is not asked.
#include <algorithm>
#include <cmath>

#include "sim/strategy/methods.hpp"
#include "sim/strategy/optimizer.hpp"
#include "sim/strategy/share.hpp"

namespace scapesim::strategy {

namespace {

using graph::CollectiveKind;
using graph::OpId;
using graph::Stream;

constexpr double kIndex = 8;  // bytes: PyTorch's top-k returns 64-bit indices, sent as they are
constexpr double kValue = 4;  // bytes: the momentum is fp32

/// The side of the chunks that a dimension is cut into: its largest divisor up to the wanted one.
std::int64_t chunk_side(std::int64_t extent, std::int64_t wanted) {
  for (std::int64_t side = std::min(extent, wanted); side > 1; --side)
    if (extent % side == 0) return side;
  return 1;
}

/// [M320] Coefficients that a rank sends of a tensor: k of every chunk, all where it has fewer.
double coefficients(const workload::Tensor& tensor, const spec::Strategy& strategy) {
  const std::int64_t rows = std::max<std::int64_t>(tensor.rows, 1);
  const std::int64_t columns = tensor.numel / rows;
  const std::int64_t side = chunk_side(columns, strategy.dct_chunk);
  const std::int64_t size = tensor.rows == 0 ? side : side * chunk_side(rows, strategy.dct_chunk);
  return static_cast<double>(tensor.numel / size * std::min<std::int64_t>(strategy.dct_topk, size));
}

double coefficients(const Context& context) {
  double sum = 0;
  for (const workload::Tensor& tensor : context.tensors)
    sum += coefficients(tensor, context.scenario.strategy);
  return sum;
}

class Demo final : public Communication {
 public:
  explicit Demo(const Context& context) : context_(context) {}

  // [M321] m = b m + g; transform and top-k of the chunks; what is sent is taken out of m; the
  // coefficients of all ranks are summed, transformed back, and their signs move the weights.
  void step_end(Program& program, OpId last) override {
    const spec::Training& training = context_.scenario.training;
    const double n = static_cast<double>(context_.workload.parameters);
    const double sent = coefficients(context_) * (kIndex + kValue);
    const double copy =
        training.precision == spec::Precision::fp32 ? 0 : parameter_bytes(training.precision);
    const OpId upkeep = add_upkeep(program, context_, n, last);
    const OpId moved =
        pass(program, "momentum", n * (gradient_bytes(training.gradient_dtype) + 8), {{upkeep}});
    const OpId coded = pass(program, "cosine transform and top-k", n * kValue + sent, {{moved}});
    const OpId taken = pass(program, "momentum less what is sent", n * 8 + sent, {{coded}});
    Waits gathered{{taken}};
    gather(program, coded, gathered);
    pass(program, "inverse transform and sign update", context_.ranks * sent + n * (8 + copy),
         gathered);
  }

 private:
  OpId pass(Program& program, std::string name, double bytes, const Waits& waits) const {
    return add_pass(program, context_,
                    {.name = std::move(name), .traffic = Bytes(bytes), .formula = "M321"}, waits);
  }

  // [M320] Per tensor one gather of the indices and one of the values, as released.
  void gather(Program& program, OpId coded, Waits& gathered) const {
    for (const workload::Tensor& tensor : context_.tensors) {
      const double count = coefficients(tensor, context_.scenario.strategy) * context_.ranks;
      for (const bool is_index : {true, false})
        also_wait(gathered,
                  add_call(program, context_,
                           {.name = is_index ? "index all-gather" : "coefficient all-gather",
                            .kind = CollectiveKind::all_gather,
                            .bytes = Bytes(count * (is_index ? kIndex : kValue))},
                           Stream::communication, "M320", {{coded}}));
    }
  }

  const Context& context_;
};

}  // namespace

std::unique_ptr<Communication> make_demo(const Context& context) {
  return std::make_unique<Demo>(context);
}

// [M322] One momentum instead of the optimizer's moments; the lists of all ranks.
StateMemory demo_memory(const Context& context) {
  const double n = static_cast<double>(context.workload.parameters);
  const bool mixed = context.scenario.training.precision != spec::Precision::fp32;
  StateMemory memory = dense_memory(context);
  memory.optimizer = Bytes(mixed ? 4 * n : 0);
  memory.strategy = Bytes(4 * n);
  memory.step_end += Bytes(coefficients(context) * (kIndex + kValue) * (context.ranks + 1));
  return memory;
}

}  // namespace scapesim::strategy
