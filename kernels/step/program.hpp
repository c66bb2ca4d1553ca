// SPDX-License-Identifier: Apache-2.0
// The run of one rank and what is reported of it: times per phase, bytes sent, difference to the
// reference. Gradients are random, of two kinds in turn, the same wherever they are made.
#pragma once

#include "kernels/step/options.hpp"

namespace scapesim::step {

/// Two large tensors, one of norm weights, and what is left.
std::vector<reference::Tensor> tensors_of(std::size_t elements);
std::vector<float> initial_parameters(std::size_t elements);
/// What a rank contributes in a step.
std::vector<float> gradient_of(std::size_t elements, int step, int rank);

/// A rank that has its state and its gradients on a device.
class RankProgram {
 public:
  using BeforeStep = std::function<void(Backend&)>;
  RankProgram(Backend& backend, const ProgramOptions& options, BeforeStep before_step);
  void enqueue_step(int step);
  /// After all lanes have been waited for.
  std::string report();
  RankState state() { return step_.state(); }

 private:
  Backend& backend_;
  const ProgramOptions& options_;
  BeforeStep before_step_;
  ScapeStep step_;
  std::array<float*, 2> gradients_{};
  std::vector<Event> begins_;
  std::vector<Event> ends_;
};

/// How a state differs from the expected one.
struct Difference {
  std::size_t mask = 0;     ///< bits
  std::size_t weights = 0;  ///< elements that are off by over 1e-5 of the largest magnitude
  std::size_t moment = 0;
  std::size_t residual = 0;
  std::size_t elements = 0;
  /// Sums of three ranks and more are added in another order than the reference's: near-ties of a
  /// mask may then fall the other way, and one element in ten thousand may.
  bool acceptable(int ranks) const;
};
Difference difference(const RankState& state, const RankState& expected);

/// The reference's states of all ranks after all steps.
std::vector<RankState> reference_states(const ProgramOptions& options);

}  // namespace scapesim::step
