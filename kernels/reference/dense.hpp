// SPDX-License-Identifier: Apache-2.0
// Dense data parallelism: one all-reduce of the gradients, then AdamS or AdamW on every rank.
#pragma once

#include "kernels/reference/arithmetic.hpp"
#include "kernels/reference/communicator.hpp"

namespace scapesim::reference {

enum class Method { adams, adamw };

/// What a step did, the same on all ranks.
struct StepReport {
  bool skipped = false;  ///< some rank's gradient was not finite, nothing changed
  double norm = 0;       ///< of the gradient that was clipped
  double clip_factor = 1;
  std::size_t selected = 0;  ///< elements sent
};

template <class T>
class Dense {
 public:
  Dense(Method method, Adam adam, std::vector<T> parameters, Communicator& communicator);

  StepReport step(PerRank<T> gradients, double learning_rate);

  /// Of every rank: all compute the same.
  const std::vector<T>& parameters() const { return parameters_; }
  const std::vector<T>& moment() const { return moment_; }

 private:
  Method method_;
  Adam adam_;
  Communicator& communicator_;
  std::vector<T> parameters_;
  std::vector<T> moment_;
  std::vector<T> second_;  ///< AdamW only
  int steps_ = 0;
};

}  // namespace scapesim::reference
