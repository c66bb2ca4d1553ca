// SPDX-License-Identifier: Apache-2.0
// Who shares which parameters with whom: dense ones over all data-parallel ranks, experts over the
// ranks that hold the same experts.
#pragma once

#include "sim/strategy/strategy.hpp"

namespace scapesim::strategy {

/// Parameters of the stage that are reduced over one axis.
struct Share {
  graph::Axis axis = graph::Axis::data;
  std::int64_t elements = 0;
  int ranks = 1;  ///< of the axis
  double sharded() const { return static_cast<double>(elements) / ranks; }
};

/// Dense parameters first; experts where there are any.
std::vector<Share> shares_of(const Context& context);

/// A layer's parameters that go with an axis.
std::int64_t elements_of(const workload::Layer& layer, graph::Axis axis);

/// [M430] Frozen parameters that a rank of the stage holds: all, or its shard.
Bytes frozen_memory(const Context& context);
/// [M430] Bytes of a layer's frozen parameters that go with an axis.
Bytes frozen_of(const workload::Layer& layer, graph::Axis axis);

/// Name of a call, with what tells experts' calls apart.
std::string call_name(std::string_view what, graph::Axis axis);

/// Global norm of the gradients: a scalar over all ranks, when no rank has them all.
std::optional<graph::OpId> add_norm(Program& program, const Context& context, const Waits& ready);

/// Tied embeddings that first and last stage both hold get the sum of both gradients.
/// `shares`: that fully sharded ranks cut them into.
std::optional<graph::OpId> add_embedding_sum(Program& program, const Context& context,
                                             const Waits& ready, int shares = 1);

/// [M31] Scaling and zeroing of the gradients a rank keeps.
graph::OpId add_upkeep(Program& program, const Context& context, double elements, graph::OpId last);

/// [M30] The optimizer's update of so many elements.
graph::OpId add_update(Program& program, const Context& context, double elements,
                       const Waits& ready);

}  // namespace scapesim::strategy
