// SPDX-License-Identifier: Apache-2.0
// Fully sharded training, and where its variants differ: how a layer is gathered and reduced.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "sim/strategy/share.hpp"

namespace scapesim::strategy {

/// The axis over which parameters of an axis are sharded.
graph::Axis sharded_over(const Context& context, graph::Axis axis);

class FullySharded : public Communication {
 public:
  explicit FullySharded(const Context& context);

  bool watches(const LayerPass&) const override { return true; }
  Waits layer_needed(Program& program, const LayerPass& pass) override;
  void layer_done(Program& program, const LayerPass& pass, graph::OpId op) override;
  void step_end(Program& program, graph::OpId last) override;

 protected:
  const Context& context() const { return context_; }
  const workload::Layer& layer_of(const LayerPass& pass) const;
  /// Makes the layer whole; returns what its pass waits for. Whatever reads the shard says so by
  /// when_room().
  virtual Waits gather_layer(Program& program, const LayerPass& pass);
  /// Sums the layer's gradients into the shards; returns what the update waits for.
  virtual Waits reduce_layer(Program& program, const LayerPass& pass, graph::OpId backward);

  /// The operation begins when a buffer for its layer is free, and not before the last update.
  void when_room(Program& program, graph::OpId op);
  /// Gradients as they are.
  std::optional<graph::OpId> scatter(Program& program, graph::Axis axis, double elements,
                                     graph::OpId backward);

 private:
  struct Pending {
    LayerPass pass;
    graph::OpId backward;
  };
  bool kept(const LayerPass& pass) const;
  bool still_held(const LayerPass& pass) const;
  /// Into the tensor that is reduced.
  graph::OpId copy_gradients(Program& program, const LayerPass& pass, graph::OpId ready) const;
  void send_gradients(Program& program, std::size_t left);

  const Context& context_;
  std::vector<Share> shares_;
  const spec::Strategy& strategy_;
  std::vector<graph::OpId> passes_;         ///< in order
  std::optional<int> held_layer_;           ///< gathered by the pass before
  std::deque<Pending> pending_;             ///< gradients computed and not yet queued
  std::vector<graph::OpId> first_gathers_;  ///< that only the step before can hold up
  Waits reduced_;
};

}  // namespace scapesim::strategy
