// SPDX-License-Identifier: Apache-2.0
// How gradients, masks, parameters and optimizer state move: one file per method, one row per
// method.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "sim/strategy/program.hpp"

namespace scapesim::strategy {

enum class Direction { forward, backward };

/// A micro-batch on its way through the stage, or through one layer of it.
struct LayerPass {
  Direction direction = Direction::forward;
  int layer = 0;       ///< of the stage's workload
  bool first = false;  ///< the step's first pass through the layer in this direction
  bool last = false;   ///< its last: behind a last backward pass all gradients are added up
};

/// Hooks of one method into one rank's step. The plan calls them in issue order: for every layer of
/// every pass that a method watches layer_needed() before and layer_done() after it,
/// pass_done() behind every backward pass, step_end() once. A method only appends operations; it
/// never reorders or looks ahead.
class Communication {
 public:
  virtual ~Communication() = default;
  /// Training steps that one step of the program stands for: local operations are repeated so
  /// often.
  virtual int training_steps() const { return 1; }
  /// What the first forward operation of the step must wait for.
  virtual Waits parameters_needed() { return {}; }
  /// Whether a pass through the stage is issued layer by layer with hooks, or as a whole without.
  virtual bool watches(const LayerPass&) const { return false; }
  /// A layer is about to run: what its pass must wait for.
  virtual Waits layer_needed(Program&, const LayerPass&) { return {}; }
  /// A layer has run as `op`; after a backward pass it has added to the layer's gradients.
  virtual void layer_done(Program&, const LayerPass&, graph::OpId /*op*/) {}
  /// A backward pass through a chunk of the stage has run, watched or not: what the next pass must
  /// wait for.
  virtual Waits pass_done(Program&, const LayerPass&, graph::OpId /*op*/) { return {}; }
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
