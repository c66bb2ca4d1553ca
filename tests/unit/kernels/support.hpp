// SPDX-License-Identifier: Apache-2.0
// Random tensors, parameters and gradients for the optimizers of the reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/scape.hpp"
#include "sim/base/random.hpp"

namespace scapesim::test {

using namespace scapesim::reference;

/// Matrices and a norm or bias after each: sizes around a word of mask bits, and primes.
inline std::vector<Tensor> odd_tensors() {
  return {{1, false},  {31, true},   {33, false}, {32, false}, {7, true},
          {97, false}, {500, false}, {13, true},  {251, false}};
}

/// Uniform in [-1, 1).
template <class T>
std::vector<T> random_values(std::size_t count, Random& random) {
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(random.uniform(-1, 1));
  return values;
}

template <class T>
PerRank<T> random_gradients(int ranks, std::size_t count, Random& random) {
  PerRank<T> gradients;
  for (int rank = 0; rank < ranks; ++rank) gradients.push_back(random_values<T>(count, random));
  return gradients;
}

template <class T>
double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  double largest = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest = difference <= largest ? largest : difference;  // NaN counts
  }
  return largest;
}

/// A SCAPE optimizer with its communicator, fed with random gradients from a seed.
template <class T>
class Trial {
 public:
  Trial(std::vector<Tensor> tensors, int ranks, const ScapeOptions& options)
      : random_(11),
        communicator_(ranks),
        parameters_(random_values<T>(total_of(tensors), random_)),
        scape_(std::move(tensors), parameters_, options, communicator_) {}
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  /// A rank's parameters after so many more steps.
  const std::vector<T>& after(int steps) {
    for (int i = 0; i < steps; ++i) step();
    return scape_.parameters(0);
  }
  StepReport step() {
    return scape_.step(random_gradients<T>(communicator_.ranks(), parameters_.size(), random_),
                       1e-2);
  }
  const Scape<T>& scape() const { return scape_; }
  Communicator& communicator() { return communicator_; }
  std::size_t ranks() const { return static_cast<std::size_t>(communicator_.ranks()); }

 private:
  Random random_;
  Communicator communicator_;
  std::vector<T> parameters_;
  Scape<T> scape_;
};

}  // namespace scapesim::test
