// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/dense.hpp"

#include <cmath>
#include <utility>

#include "sim/base/check.hpp"

namespace scapesim::reference {

template <class T>
Dense<T>::Dense(Method method, Adam adam, std::vector<T> parameters, Communicator& communicator)
    : method_(method),
      adam_(adam),
      communicator_(communicator),
      parameters_(std::move(parameters)),
      moment_(parameters_.size()),
      second_(method == Method::adamw ? parameters_.size() : 0) {
  SCAPESIM_CHECK(adam.epsilon > 0, "epsilon {}", adam.epsilon);
}

template <class T>
StepReport Dense<T>::step(PerRank<T> gradients, double learning_rate) {
  communicator_.all_reduce_mean("gradient all-reduce", gradients);
  const std::vector<T>& mean = gradients[0];
  double squares = 0;
  for (const T g : mean) squares += static_cast<double>(g) * static_cast<double>(g);
  const double norm = std::sqrt(squares);
  const double factor = clip_factor(adam_, norm);

  const Coefficients<T> c = coefficients<T>(adam_, ++steps_, learning_rate);
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const T gradient = static_cast<T>(factor) * mean[i];
    const T before = moment_[i];
    moment_[i] = reference::moment(c, before, gradient);
    const T second = method_ == Method::adams
                         ? adams_second(c, before, gradient)
                         : (second_[i] = adamw_second(c, second_[i], gradient));
    parameters_[i] = weight(c, parameters_[i], moment_[i], second);
  }
  return {.norm = norm, .clip_factor = factor, .selected = mean.size()};
}

template class Dense<float>;
template class Dense<double>;

}  // namespace scapesim::reference
