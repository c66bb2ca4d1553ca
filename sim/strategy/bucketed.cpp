// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/bucketed.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "sim/strategy/optimizer.hpp"
#include "sim/strategy/share.hpp"

namespace scapesim::strategy {

using graph::OpId;
using graph::Stream;

namespace {

template <class Keep>
Bucket filtered(const Bucket& bucket, Keep keep) {
  Bucket list;
  std::ranges::copy_if(bucket, std::back_inserter(list), keep);
  return list;
}

/// [M35] Megatron-LM's default where gradients overlap, else one bucket.
Bytes bucket_size(const Context& context) {
  const spec::Training& training = context.scenario.training;
  if (training.bucket) return *training.bucket;
  if (!training.overlap_gradients) return Bytes(1e300);
  const double elements = std::max(40e6, 1e6 * context.ranks);
  return Bytes(elements * gradient_bytes(training.gradient_dtype));
}

}  // namespace

double elements_of(const Bucket& bucket) {
  double sum = 0;
  for (const workload::Tensor& tensor : bucket) sum += static_cast<double>(tensor.numel);
  return sum;
}

Bucket always_selected(const Bucket& bucket) {
  return filtered(bucket, [](const workload::Tensor& tensor) { return tensor.always_selected; });
}

Bucket compressible(const Bucket& bucket) {
  return filtered(bucket, [](const workload::Tensor& tensor) { return !tensor.always_selected; });
}

graph::Stream stream_behind(const Context& context) {
  return context.scenario.training.overlap_gradients ? Stream::communication : Stream::compute;
}

bool Bucketed::watches(const LayerPass& pass) const {
  return overlaps() && pass.direction == Direction::backward && pass.last;
}

void Bucketed::layer_done(Program& program, const LayerPass& pass, OpId op) {
  const auto& layer = context_.workload.layers[static_cast<std::size_t>(pass.layer)];
  waiting_.insert(waiting_.end(), layer.tensors.begin(), layer.tensors.end());
  send_full_buckets(program, {{op}});
}

void Bucketed::step_end(Program& program, OpId last) {
  const OpId upkeep =
      add_upkeep(program, context_, static_cast<double>(context_.workload.parameters), last);
  if (!overlaps()) {
    const Bucket all = context_.tensors;
    for (const workload::Tensor& tensor : all) {
      waiting_.push_back(tensor);
      send_full_buckets(program, {{upkeep}});
    }
  }
  if (!waiting_.empty()) send(program, {{upkeep}});
  Waits ready = exchanged_.empty() ? Waits{{upkeep}} : exchanged_;
  also_wait(ready, add_embedding_sum(program, context_, ready));
  update(program, ready);
}

void Bucketed::update(Program& program, const Waits& exchanged) {
  Waits ready = exchanged;
  also_wait(ready, add_norm(program, context_, exchanged));
  add_update(program, context_, static_cast<double>(context_.workload.parameters), ready);
}

OpId Bucketed::pass(Program& program, std::string name, std::string formula, double bytes,
                    const Waits& waits, int launches) const {
  return add_pass(program, context_,
                  {.name = std::move(name),
                   .traffic = Bytes(bytes),
                   .launches = launches,
                   .formula = std::move(formula)},
                  waits);
}

OpId Bucketed::pass_behind(Program& program, std::string name, std::string formula, double bytes,
                           const Waits& waits, int launches) const {
  return add_pass(program, context_,
                  {.name = std::move(name),
                   .traffic = Bytes(bytes),
                   .launches = launches,
                   .formula = std::move(formula),
                   .stream = stream_behind(context_)},
                  waits);
}

Waits Bucketed::all_reduce_whole(Program& program, double elements, const std::string& formula,
                                 const Waits& ready) const {
  if (elements == 0) return {};
  const double element = gradient_bytes(context_.scenario.training.gradient_dtype);
  Waits done;
  also_wait(done, add_call(program, context_,
                           {.name = "uncompressed gradient all-reduce",
                            .kind = graph::CollectiveKind::all_reduce,
                            .bytes = Bytes(elements * element)},
                           Stream::communication, formula, ready));
  return done;
}

void Bucketed::send_full_buckets(Program& program, const Waits& ready) {
  const double element = gradient_bytes(context_.scenario.training.gradient_dtype);
  if (Bytes(elements_of(waiting_) * element) >= bucket_size(context_)) send(program, ready);
}

void Bucketed::send(Program& program, const Waits& ready) {
  const Bucket bucket = std::exchange(waiting_, {});
  for (const graph::Dependency& done : exchange(program, bucket, ready)) exchanged_.push_back(done);
}

}  // namespace scapesim::strategy
