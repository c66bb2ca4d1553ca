// SPDX-License-Identifier: Apache-2.0
// Deep gradient compression (Lin et al. 2018, arXiv 1712.01887; code of mit-han-lab): momentum is
// corrected and accumulated on every rank before the largest elements are sent with their indices.
// Momentum SGD by itself; training.optimizer is not asked.
#include "sim/strategy/methods.hpp"
#include "sim/strategy/optimizer.hpp"
#include "sim/strategy/share.hpp"
#include "sim/strategy/sparse.hpp"

namespace scapesim::strategy {

namespace {

using graph::OpId;

constexpr double kSampled = 0.01;  // share of a tensor that the threshold is estimated from

class Dgc final : public Bucketed {
 public:
  using Bucketed::Bucketed;

 protected:
  // [M305] Norm for the local clipping; u = m u + g, v += u; a threshold from a sample, selection
  // and compaction; u and v are cleared where they were sent. Vectors are reduced whole.
  Waits exchange(Program& program, const Bucket& bucket, const Waits& ready) override {
    const double gradient = gradient_bytes(context().scenario.training.gradient_dtype);
    const Bucket matrices = compressible(bucket);
    const double n = elements_of(matrices);
    Waits done = all_reduce_whole(program, elements_of(always_selected(bucket)), "M305", ready);
    if (n == 0) return done.empty() ? ready : done;
    const OpId clipped = pass(program, "local gradient norm", "M305", n * gradient, ready);
    const OpId corrected =
        pass(program, "momentum correction", "M305", n * (gradient + 16), {{clipped}});
    const OpId threshold =
        pass(program, "sampled threshold", "M305", kSampled * n * 12, {{corrected}}, 3);
    const Sparse sent = sparse_of(matrices, density_at(context().scenario.strategy));
    const OpId packed = pass(program, "selection and masking", "M305",
                             4 * n + sent.bytes() + 3 * sent.touched(4), {{threshold}}, 2);
    for (const graph::Dependency& summed : gather_sparse(program, context(), sent, packed))
      done.push_back(summed);
    return done;
  }

  // [M306] w -= lr G: the momentum is in what was sent.
  void update(Program& program, const Waits& exchanged) override {
    const spec::Training& training = context().scenario.training;
    const bool mixed = training.precision != spec::Precision::fp32;
    const double copy = mixed ? parameter_bytes(training.precision) : 0;
    Waits ready = exchanged;
    also_wait(ready, add_norm(program, context(), exchanged));
    pass(program, "sgd update", "M306",
         static_cast<double>(context().workload.parameters) * (12 + copy), ready);
  }
};

}  // namespace

std::unique_ptr<Communication> make_dgc(const Context& context) {
  return std::make_unique<Dgc>(context);
}

// [M307] u and v in fp32 instead of the optimizer's moments; the lists of all ranks.
StateMemory dgc_memory(const Context& context) {
  const spec::Training& training = context.scenario.training;
  const double n = static_cast<double>(context.workload.parameters);
  const bool mixed = training.precision != spec::Precision::fp32;
  StateMemory memory = dense_memory(context);
  memory.optimizer = Bytes(mixed ? 4 * n : 0);
  memory.strategy = Bytes(8 * n);
  const Sparse sent =
      sparse_of(compressible(context.tensors), density_at(context.scenario.strategy));
  memory.step_end = Bytes(sent.bytes() * (context.ranks + 1));
  return memory;
}

}  // namespace scapesim::strategy
