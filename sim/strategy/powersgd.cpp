// SPDX-License-Identifier: Apache-2.0
// PowerSGD (Vogels et al. 2019, arXiv 1905.13727; PyTorch's DDP hook): a matrix of gradients is
// sent as two factors of r columns, by two all-reduces with error feedback and a warm start. What
// the factors would not halve is sent whole.
#include <algorithm>

#include "sim/strategy/bucketed.hpp"
#include "sim/strategy/methods.hpp"
#include "sim/strategy/optimizer.hpp"

namespace scapesim::strategy {

namespace {

using graph::CollectiveKind;
using graph::OpId;
using graph::Stream;

constexpr double kLeastCompression = 2;  // min_compression_rate of the hook

/// [M335] Rows and columns of the factors' matrices of a bucket, summed.
struct Factors {
  double compressed = 0;  ///< elements of the matrices that are factored
  double left = 0;        ///< elements of all P, rows x r
  double right = 0;       ///< elements of all Q, columns x r
  double whole = 0;       ///< elements sent as they are
  int matrices = 0;
};

Factors factors_of(const Bucket& bucket, int rank) {
  Factors factors;
  for (const workload::Tensor& tensor : bucket) {
    const auto n = static_cast<double>(tensor.numel);
    const auto rows = static_cast<double>(tensor.rows);
    const double columns = rows > 0 ? n / rows : 0;
    const double r = std::min({static_cast<double>(rank), rows, columns});
    if (r == 0 || (rows + columns) * r * kLeastCompression >= n) {
      factors.whole += n;
      continue;
    }
    factors.compressed += n;
    factors.left += rows * r;
    factors.right += columns * r;
    ++factors.matrices;
  }
  return factors;
}

class PowerSgd final : public Bucketed {
 public:
  using Bucketed::Bucketed;

 protected:
  Waits exchange(Program& program, const Bucket& bucket, const Waits& ready) override {
    const spec::Strategy& strategy = context().scenario.strategy;
    if (sends_dense(strategy))
      return or_ready(all_reduce_whole(program, elements_of(bucket), "M335", ready), ready);
    const Factors factors = factors_of(bucket, strategy.low_rank);
    Waits done = all_reduce_whole(program, factors.whole, "M335", ready);
    if (factors.matrices > 0) also_wait(done, send_factors(program, factors, ready));
    return or_ready(done, ready);
  }

 private:
  static Waits or_ready(Waits done, const Waits& ready) { return done.empty() ? ready : done; }

  // [M336] M = g + e; P = M Q, summed and made orthogonal; Q = M^T P, summed; M' = P Q^T;
  // e = M - M'.
  OpId send_factors(Program& program, const Factors& factors, const Waits& ready) const {
    const double n = factors.compressed;
    const double gradient = gradient_bytes(context().scenario.training.gradient_dtype);
    const int r = context().scenario.strategy.low_rank;
    const OpId added = pass(program, "gradient and error", "M336", n * (gradient + 8), ready);
    const OpId left =
        pass(program, "left factors", "M336", 4 * (n + factors.left), {{added}}, factors.matrices);
    Waits summed = reduce(program, "left factor all-reduce", factors.left, left);
    // Gram-Schmidt: column by column, every column once more against each.
    const OpId orthogonal = pass_behind(program, "orthogonal left factors", "M336",
                                        4 * factors.left * (r + 1), summed, 2 * r);
    const OpId right =
        pass_behind(program, "right factors", "M336", 4 * (n + factors.left + factors.right),
                    {{orthogonal}}, factors.matrices);
    summed = reduce(program, "right factor all-reduce", factors.right, right);
    return pass_behind(program, "gradients from factors, error", "M336",
                       4 * (factors.left + factors.right) + n * (4 + gradient + 4), summed,
                       factors.matrices);
  }

  Waits reduce(Program& program, std::string name, double elements, OpId made) const {
    Waits done{{made}};
    also_wait(done, add_call(program, context(),
                             {.name = std::move(name),
                              .kind = CollectiveKind::all_reduce,
                              .bytes = Bytes(4 * elements)},
                             Stream::communication, "M335", done));
    return done;
  }
};

}  // namespace

std::unique_ptr<Communication> make_powersgd(const Context& context) {
  return std::make_unique<PowerSgd>(context);
}

// [M337] The error of every factored matrix, and the factors.
StateMemory powersgd_memory(const Context& context) {
  StateMemory memory = dense_memory(context);
  const Factors factors = factors_of(context.tensors, context.scenario.strategy.low_rank);
  memory.strategy = Bytes(4 * (factors.compressed + factors.left + factors.right));
  return memory;
}

}  // namespace scapesim::strategy
