// SPDX-License-Identifier: Apache-2.0
// Small learning tasks with known data, to see an optimizer converge. Evidence for the algorithm,
// not a claim about large models.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/reference/scape.hpp"

namespace scapesim::reference {

struct Task {
  std::string name;
  std::vector<Tensor> tensors;
  std::vector<float> initial;
  double learning_rate = 0;
  /// Gradient of the mean loss over a mini-batch drawn from a seed.
  std::function<std::vector<float>(const std::vector<float>&, std::uint64_t seed)> gradient;
  /// Mean loss over data that no mini-batch holds.
  std::function<double(const std::vector<float>&)> loss;
};

/// Noisy linear measurements of 600 unknowns in two blocks and a bias; the loss is half the squared
/// error, 0.5 for the truth.
Task least_squares();

/// Perceptron of 16 inputs, 48 tanh units and 8 classes on points around three centres per class,
/// one label in five drawn at random.
Task classifier();

struct Training {
  double loss = 0;            ///< at the end
  double first_loss = 0;      ///< before the first step
  double mask_overlap = 0;    ///< share of a mask that is in the next one too, mean over steps
  double selected_share = 0;  ///< selected share, mean over steps
};

/// So many steps of dense AdamS, or of SCAPE, clipped at norm 1, from the task's start; the
/// learning rate falls to zero by a cosine. Overlap and share leave out tensors that are always
/// selected.
Training train_dense(const Task& task, int ranks, int steps);
Training train_scape(const Task& task, int ranks, int steps, ScapeOptions options);

}  // namespace scapesim::reference
