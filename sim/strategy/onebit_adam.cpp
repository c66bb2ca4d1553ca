// SPDX-License-Identifier: Apache-2.0
// 1-bit Adam (Tang et al. 2021, arXiv 2102.02888; DeepSpeed's NcclBackend.compressed_allreduce):
// Adam with dense gradients for a while, then a frozen second moment and a momentum of which signs
// and one scale per tensor travel, with error feedback on both ends. training.optimizer is not
// asked.
#include <cmath>

#include "sim/strategy/methods.hpp"
#include "sim/strategy/optimizer.hpp"
#include "sim/strategy/share.hpp"

namespace scapesim::strategy {

namespace {

using graph::CollectiveKind;
using graph::OpId;
using graph::Stream;

/// Elements of a tensor, padded so that every rank's part is whole bytes of signs.
double padded(const workload::Tensor& tensor, int ranks) {
  const double unit = 8.0 * ranks;
  return std::ceil(static_cast<double>(tensor.numel) / unit) * unit;
}

double padded_elements(const Context& context) {
  double sum = 0;
  for (const workload::Tensor& tensor : context.tensors) sum += padded(tensor, context.ranks);
  return sum;
}

class OneBitAdam final : public Communication {
 public:
  explicit OneBitAdam(const Context& context) : context_(context) {}

  void step_end(Program& program, OpId last) override {
    const OpId upkeep = add_upkeep(program, context_, parameters(), last);
    if (sends_dense(context_.scenario.strategy))
      dense_step(program, upkeep);
    else
      compressed_step(program, upkeep);
  }

 private:
  double parameters() const { return static_cast<double>(context_.workload.parameters); }
  double gradient() const { return gradient_bytes(context_.scenario.training.gradient_dtype); }
  double copy() const {
    const spec::Precision precision = context_.scenario.training.precision;
    return precision == spec::Precision::fp32 ? 0 : parameter_bytes(precision);
  }
  int launches() const { return static_cast<int>(context_.tensors.size()); }

  OpId pass(Program& program, std::string name, double bytes, const Waits& waits) const {
    return add_pass(program, context_,
                    {.name = std::move(name),
                     .traffic = Bytes(bytes),
                     .launches = launches(),
                     .formula = "M330"},
                    waits);
  }

  void dense_step(Program& program, OpId upkeep) const {
    Waits ready{{upkeep}};
    also_wait(ready, add_call(program, context_,
                              {.name = "gradient all-reduce",
                               .kind = CollectiveKind::all_reduce,
                               .bytes = Bytes(parameters() * gradient())},
                              Stream::communication, "M32", ready));
    also_wait(ready, add_embedding_sum(program, context_, ready));
    pass(program, "adam update", parameters() * (28 + copy()), ready);
  }

  // [M330] m = b m + (1-b) g; signs of m + e, their scale, the new e; each rank sums its part of
  // all signs with its own error and codes it again; the signs of all parts are the new m.
  void compressed_step(Program& program, OpId upkeep) const {
    const double n = parameters();
    const double bits = padded_elements(context_) / 8;
    const double part = n / context_.ranks;
    Waits ready{{upkeep}};
    also_wait(ready, add_embedding_sum(program, context_, ready));
    const OpId moved = pass(program, "momentum", n * (gradient() + 8), ready);
    const OpId coded = pass(program, "scale, signs and error", n * (8 + 8 + 4) + bits, {{moved}});
    ready = exchange(program, "sign all-to-all", CollectiveKind::all_to_all, coded);
    const OpId served =
        pass(program, "sum of signs, coded again", bits + part * (8 + 8 + 4), ready);
    ready = exchange(program, "sign all-gather", CollectiveKind::all_gather, served);
    const OpId decoded = pass(program, "momentum from signs", bits + n * 4, ready);
    pass(program, "adam update", n * (16 + copy()), {{decoded}});
  }

  // [M331] Tensor by tensor, as released: signs, then an fp32 scale of every rank.
  Waits exchange(Program& program, const std::string& name, CollectiveKind kind, OpId coded) const {
    Waits done{{coded}};
    for (const workload::Tensor& tensor : context_.tensors) {
      also_wait(
          done,
          add_call(program, context_,
                   {.name = name, .kind = kind, .bytes = Bytes(padded(tensor, context_.ranks) / 8)},
                   Stream::communication, "M331", {{coded}}));
      also_wait(done, add_call(program, context_,
                               {.name = "scale all-gather",
                                .kind = CollectiveKind::all_gather,
                                .bytes = Bytes(4.0 * context_.ranks)},
                               Stream::communication, "M331", {{coded}}));
    }
    return done;
  }

  const Context& context_;
};

}  // namespace

bool sends_dense(const spec::Strategy& strategy) {
  return strategy.at_step >= 0 && strategy.at_step < strategy.dense_steps;
}

std::unique_ptr<Communication> make_onebit_adam(const Context& context) {
  return std::make_unique<OneBitAdam>(context);
}

// [M332] Two moments, the errors of a rank's own signs and of its part of the sum.
StateMemory onebit_adam_memory(const Context& context) {
  const double n = static_cast<double>(context.workload.parameters);
  const bool mixed = context.scenario.training.precision != spec::Precision::fp32;
  StateMemory memory = dense_memory(context);
  memory.optimizer = Bytes(n * (mixed ? 12 : 8));
  memory.strategy = Bytes(4 * padded_elements(context) * (1 + 1.0 / context.ranks));
  return memory;
}

}  // namespace scapesim::strategy
