// SPDX-License-Identifier: Apache-2.0
// Methods that compress gradients bucket by bucket on ranks that hold all parameters: behind the
// backward pass, or beside it where training.overlap_gradients asks for it.
#pragma once

#include <vector>

#include "sim/strategy/strategy.hpp"

namespace scapesim::strategy {

/// Gradients that travel together, in the order in which the backward pass completes them.
using Bucket = std::vector<workload::Tensor>;

double elements_of(const Bucket& bucket);
/// Norm weights and biases, or all else.
Bucket always_selected(const Bucket& bucket);
Bucket compressible(const Bucket& bucket);

/// Where a pass behind a collective runs: on the communicator's stream while the backward pass may
/// still go on.
graph::Stream stream_behind(const Context& context);

class Bucketed : public Communication {
 public:
  explicit Bucketed(const Context& context) : context_(context) {}

  bool watches(const LayerPass& pass) const override;
  void layer_done(Program& program, const LayerPass& pass, graph::OpId op) override;
  void step_end(Program& program, graph::OpId last) override;

 protected:
  const Context& context() const { return context_; }
  /// Encodes, sends and decodes a bucket whose gradients are complete behind `ready`; returns what
  /// the update waits for.
  virtual Waits exchange(Program& program, const Bucket& bucket, const Waits& ready) = 0;
  /// Norm and optimizer; by default those of the scenario over all parameters.
  virtual void update(Program& program, const Waits& exchanged);

  /// A pass of the method, as one kernel per call of `launches`.
  graph::OpId pass(Program& program, std::string name, std::string formula, double bytes,
                   const Waits& waits, int launches = 1) const;
  /// A pass behind a collective: on the communicator's stream where the backward pass may still
  /// run.
  graph::OpId pass_behind(Program& program, std::string name, std::string formula, double bytes,
                          const Waits& waits, int launches = 1) const;
  /// Gradients that a method leaves as they are.
  Waits all_reduce_whole(Program& program, double elements, const std::string& formula,
                         const Waits& ready) const;

 private:
  bool overlaps() const { return context_.scenario.training.overlap_gradients; }
  void send_full_buckets(Program& program, const Waits& ready);
  void send(Program& program, const Waits& ready);

  const Context& context_;
  Bucket waiting_;
  Waits exchanged_;
};

}  // namespace scapesim::strategy
