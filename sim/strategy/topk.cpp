// SPDX-License-Identifier: Apache-2.0
// Top-k with error feedback (Stich et al. 2018): what is not sent stays in a residual. Either every
// rank's indices and values are gathered by all, or all ranks' masks are OR-ed and the values of
// the filled-in mask are summed.
#include "sim/strategy/methods.hpp"
#include "sim/strategy/optimizer.hpp"
#include "sim/strategy/sparse.hpp"

namespace scapesim::strategy {

namespace {

using graph::CollectiveKind;
using graph::OpId;
using graph::Stream;

class TopK final : public Bucketed {
 public:
  using Bucketed::Bucketed;

 protected:
  // [M301] Gradient and residual in, residual out; then the threshold of every tensor by radix
  // select, as [M43].
  Waits exchange(Program& program, const Bucket& bucket, const Waits& ready) override {
    const spec::Scenario& s = context().scenario;
    const double n = elements_of(bucket);
    const double gradient = gradient_bytes(s.training.gradient_dtype);
    const OpId summed = pass(program, "residual and gradient", "M301", n * (gradient + 8), ready);
    const OpId threshold = pass(program, "top-k threshold", "M301", n * 12, {{summed}}, 3);
    return s.strategy.exchange == spec::Exchange::indices ? send_indices(program, bucket, threshold)
                                                          : send_mask(program, bucket, threshold);
  }

 private:
  Waits send_indices(Program& program, const Bucket& bucket, OpId threshold) const {
    const Sparse sent = sparse_of(bucket, density_at(context().scenario.strategy));
    const OpId packed = pass(program, "top-k compaction", "M301",
                             4 * sent.elements + sent.bytes() + sent.touched(4), {{threshold}});
    return gather_sparse(program, context(), sent, packed);
  }

  // [M303] The masks of all ranks are OR-ed; the values of the union are summed, so that none of
  // what anybody selected is left out.
  Waits send_mask(Program& program, const Bucket& bucket, OpId threshold) const {
    const spec::Strategy& strategy = context().scenario.strategy;
    const double n = elements_of(bucket);
    const double mask =
        static_cast<double>(mask_bytes(static_cast<std::int64_t>(n), strategy.mask_format));
    const double density =
        union_density(density_at(strategy), context().ranks, strategy.mask_overlap);
    const Sparse sent = sparse_of(bucket, density);
    const double payload = sent.count * payload_bytes(strategy.payload_dtype);
    const OpId made = pass(program, "top-k mask", "M303", 4 * n + mask, {{threshold}});
    Waits united{{made}};
    also_wait(united, add_call(program, context(),
                               {.name = "mask all-reduce",
                                .kind = CollectiveKind::all_reduce,
                                .bytes = Bytes(mask)},
                               Stream::communication, "M303", united));
    Waits summed{{pass_behind(program, "mask offsets and gather", "M303",
                              2 * mask + 4 * n + payload + sent.touched(4), united, 3)}};
    also_wait(summed, add_call(program, context(),
                               {.name = "payload all-reduce",
                                .kind = CollectiveKind::all_reduce,
                                .bytes = Bytes(payload)},
                               Stream::communication, "M303", summed));
    return {{pass_behind(program, "scatter", "M303", mask + payload + 4 * n, summed)}};
  }
};

}  // namespace

std::unique_ptr<Communication> make_topk(const Context& context) {
  return std::make_unique<TopK>(context);
}

// [M304] The residual; while the step ends, what all ranks sent (of one bucket).
StateMemory topk_memory(const Context& context) {
  const spec::Strategy& strategy = context.scenario.strategy;
  StateMemory memory = dense_memory(context);
  memory.strategy = Bytes(4.0 * static_cast<double>(context.workload.parameters));
  const bool indices = strategy.exchange == spec::Exchange::indices;
  const double density =
      indices ? density_at(strategy)
              : union_density(density_at(strategy), context.ranks, strategy.mask_overlap);
  const Sparse sent = sparse_of(context.tensors, density);
  const double mask =
      static_cast<double>(mask_bytes(context.workload.parameters, strategy.mask_format));
  memory.step_end = Bytes(indices ? sent.bytes() * (context.ranks + 1)
                                  : sent.count * payload_bytes(strategy.payload_dtype) + mask);
  return memory;
}

}  // namespace scapesim::strategy
