// SPDX-License-Identifier: Apache-2.0
// How gradients, masks, parameters and optimizer state move: one file per method, one row per
// method.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "sim/strategy/program.hpp"

namespace scapesim::strategy {

/// Hooks of one method into one rank's step. The plan calls them in issue order: forward and
/// backward of all micro-batches, with gradient_ready() after a layer's last backward, then
/// step_end() once. A method only appends operations; it never reorders or looks ahead.
class Communication {
 public:
  virtual ~Communication() = default;
  /// What the first forward operation of the step must wait for.
  virtual Waits parameters_needed() { return {}; }
  /// Gradients of `layer` are complete: `backward` is its backward pass in the last micro-batch.
  virtual void gradient_ready(Program&, int /*layer*/, graph::OpId /*backward*/) {}
  /// All gradients are complete with `last`: communicate, update, and leave the next step's inputs.
  virtual void step_end(Program& program, graph::OpId last) = 0;
};

/// Memory a method holds all step long on a rank, and what it needs for a moment at the step's end.
struct StateMemory {
  Bytes parameters;  ///< in compute precision
  Bytes gradients;
  Bytes optimizer;  ///< fp32 master weights and moments
  Bytes strategy;   ///< residual, masks, replica, staging
  Bytes step_end;   ///< temporaries of the update
  Bytes host = {};  ///< in host memory
};

struct Method {
  spec::Method method;
  std::string_view help;
  std::unique_ptr<Communication> (*make)(const Context&);
  StateMemory (*memory)(const Context&);
};

/// The table of methods that can be simulated.
std::span<const Method> methods();
/// The row of a method. The scenario has no violations, so it exists.
const Method& method_of(spec::Method method);

}  // namespace scapesim::strategy
