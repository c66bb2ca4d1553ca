// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/tasks.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

#include "sim/base/random.hpp"

namespace scapesim::reference {

namespace {

constexpr std::size_t kBatch = 16;
constexpr double kClip = 1;

/// Standard normal deviate (Box and Muller 1958).
float normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return static_cast<float>(radius * std::cos(2 * std::numbers::pi * random.uniform()));
}

std::vector<float> normals(std::size_t n, float scale, Random& random) {
  std::vector<float> values(n);
  for (float& value : values) value = scale * normal(random);
  return values;
}

/// Adds the gradient of one example's loss, times weight, and returns that loss.
using Example = std::function<double(const std::vector<float>& parameters, std::size_t example,
                                     float weight, std::vector<float>& gradient)>;

/// Mini-batches from the first examples, loss over those after them.
struct Split {
  std::size_t seen;
  std::size_t held_out;
};

void add_examples(Task& task, Split split, const Example& example) {
  task.gradient = [=](const std::vector<float>& parameters, std::uint64_t seed) {
    std::vector<float> gradient(parameters.size());
    Random random(seed);
    for (std::size_t i = 0; i < kBatch; ++i)
      example(parameters, random.below(split.seen), 1.0F / kBatch, gradient);
    return gradient;
  };
  task.loss = [=](const std::vector<float>& parameters) {
    std::vector<float> unused(parameters.size());
    double sum = 0;
    for (std::size_t i = 0; i < split.held_out; ++i)
      sum += example(parameters, split.seen + i, 0, unused);
    return sum / static_cast<double>(split.held_out);
  };
}

}  // namespace

Task least_squares() {
  constexpr Split kSplit{.seen = 16'384, .held_out = 2048};
  constexpr std::size_t kRows = kSplit.seen + kSplit.held_out;
  constexpr std::size_t kUnknowns = 600;
  Random random(101);
  struct Data {
    std::vector<float> matrix, truth, noise;
  };
  const auto data = std::make_shared<const Data>(Data{normals(kRows * kUnknowns, 1, random),
                                                      normals(kUnknowns, 0.1F, random),
                                                      normals(kRows, 1, random)});
  Task task{.name = "least squares",
            .tensors = {{kUnknowns / 2, false}, {kUnknowns / 2, false}, {1, true}},
            .initial = std::vector<float>(kUnknowns + 1),
            .learning_rate = 1e-2,
            .gradient = {},
            .loss = {}};
  add_examples(task, kSplit,
               [data](const std::vector<float>& parameters, std::size_t row, float weight,
                      std::vector<float>& gradient) {
                 const float* a = &data->matrix[row * kUnknowns];
                 float error = parameters[kUnknowns] - data->noise[row];
                 for (std::size_t i = 0; i < kUnknowns; ++i)
                   error += a[i] * (parameters[i] - data->truth[i]);
                 for (std::size_t i = 0; i < kUnknowns; ++i) gradient[i] += weight * error * a[i];
                 gradient[kUnknowns] += weight * error;
                 return 0.5 * static_cast<double>(error) * static_cast<double>(error);
               });
  return task;
}

namespace {

constexpr std::size_t kInputs = 16;
constexpr std::size_t kHidden = 48;
constexpr std::size_t kClasses = 8;
constexpr std::size_t kHiddenBias = kInputs * kHidden;
constexpr std::size_t kOutput = kHiddenBias + kHidden;
constexpr std::size_t kOutputBias = kOutput + kHidden * kClasses;

struct Points {
  std::vector<float> inputs;
  std::vector<std::size_t> labels;
};

Points clustered_points(std::size_t count, Random& random) {
  const std::vector<float> centres = normals(3 * kClasses * kInputs, 0.7F, random);
  Points points;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t centre = random.below(3 * kClasses);
    for (std::size_t j = 0; j < kInputs; ++j)
      points.inputs.push_back(centres[centre * kInputs + j] + 0.5F * normal(random));
    const bool wrong = random.below(5) == 0;
    points.labels.push_back(wrong ? random.below(kClasses) : centre % kClasses);
  }
  return points;
}

/// Softmax of the outputs in place; the cross-entropy with the label.
double softmax_loss(std::vector<float>& outputs, std::size_t label) {
  const float largest = *std::ranges::max_element(outputs);
  float sum = 0;
  for (float& value : outputs) sum += value = std::exp(value - largest);
  for (float& value : outputs) value /= sum;
  return -std::log(std::max(static_cast<double>(outputs[label]), 1e-30));
}

double perceptron(const Points& points, const std::vector<float>& w, std::size_t example,
                  float weight, std::vector<float>& gradient) {
  const float* x = &points.inputs[example * kInputs];
  std::vector<float> hidden(kHidden);
  std::vector<float> delta(w.begin() + kOutputBias, w.end());  // outputs, then their errors
  for (std::size_t h = 0; h < kHidden; ++h) {
    float sum = w[kHiddenBias + h];
    for (std::size_t i = 0; i < kInputs; ++i) sum += w[h * kInputs + i] * x[i];
    hidden[h] = std::tanh(sum);
    for (std::size_t c = 0; c < kClasses; ++c)
      delta[c] += w[kOutput + h * kClasses + c] * hidden[h];
  }
  const double loss = softmax_loss(delta, points.labels[example]);
  if (weight == 0) return loss;
  delta[points.labels[example]] -= 1;
  for (std::size_t h = 0; h < kHidden; ++h) {
    float back = 0;
    for (std::size_t c = 0; c < kClasses; ++c) {
      back += w[kOutput + h * kClasses + c] * delta[c];
      gradient[kOutput + h * kClasses + c] += weight * delta[c] * hidden[h];
    }
    back *= weight * (1 - hidden[h] * hidden[h]);
    gradient[kHiddenBias + h] += back;
    for (std::size_t i = 0; i < kInputs; ++i) gradient[h * kInputs + i] += back * x[i];
  }
  for (std::size_t c = 0; c < kClasses; ++c) gradient[kOutputBias + c] += weight * delta[c];
  return loss;
}

}  // namespace

Task classifier() {
  constexpr Split kSplit{.seen = 65'536, .held_out = 4096};
  Random random(202);
  const auto points =
      std::make_shared<const Points>(clustered_points(kSplit.seen + kSplit.held_out, random));
  std::vector<float> initial = normals(kHiddenBias, 0.25F, random);
  initial.resize(kOutput);
  const std::vector<float> output = normals(kHidden * kClasses, 0.15F, random);
  initial.insert(initial.end(), output.begin(), output.end());
  initial.resize(kOutputBias + kClasses);
  Task task{.name = "classifier",
            .tensors = {{kHiddenBias, false},
                        {kHidden, true},
                        {kHidden * kClasses, false},
                        {kClasses, true}},
            .initial = std::move(initial),
            .learning_rate = 1e-2,
            .gradient = {},
            .loss = {}};
  add_examples(task, kSplit,
               [points](const std::vector<float>& parameters, std::size_t example, float weight,
                        std::vector<float>& gradient) {
                 return perceptron(*points, parameters, example, weight, gradient);
               });
  return task;
}

namespace {

double scheduled(double rate, int step, int steps) {
  const double wave = 0.5 * (1 + std::cos(std::numbers::pi * step / steps));
  return rate * wave;
}

PerRank<float> gradients_of(const Task& task, const std::vector<float>& parameters, int ranks,
                            int step) {
  PerRank<float> gradients;
  for (int rank = 0; rank < ranks; ++rank)
    gradients.push_back(task.gradient(
        parameters, static_cast<std::uint64_t>(step) * 1000 + static_cast<std::uint64_t>(rank)));
  return gradients;
}

/// Elements selected in both masks, leaving out tensors that always are.
std::size_t in_both(const std::vector<Tensor>& tensors, const Mask& a, const Mask& b) {
  std::size_t both = 0;
  std::size_t begin = 0;
  for (const Tensor& tensor : tensors) {
    for (std::size_t i = begin; i < begin + tensor.numel; ++i)
      both += !tensor.always_selected && a[i] && b[i] ? 1 : 0;
    begin += tensor.numel;
  }
  return both;
}

}  // namespace

Training train_dense(const Task& task, int ranks, int steps) {
  Communicator communicator(ranks);
  Dense<float> dense(Method::adams, Adam{.clip = kClip}, task.initial, communicator);
  for (int step = 0; step < steps; ++step)
    dense.step(gradients_of(task, dense.parameters(), ranks, step),
               scheduled(task.learning_rate, step, steps));
  return {.loss = task.loss(dense.parameters()), .first_loss = task.loss(task.initial)};
}

Training train_scape(const Task& task, int ranks, int steps, ScapeOptions options) {
  options.adam.clip = kClip;
  Communicator communicator(ranks);
  Scape<float> scape(task.tensors, task.initial, options, communicator);
  const Mask all(task.initial.size(), 1);
  const auto choosable = static_cast<double>(in_both(task.tensors, all, all));
  Training training{.first_loss = task.loss(task.initial)};
  Mask before;
  for (int step = 0; step < steps; ++step) {
    scape.step(gradients_of(task, scape.parameters(0), ranks, step),
               scheduled(task.learning_rate, step, steps));
    const Mask& mask = scape.mask(0);
    const auto selected = static_cast<double>(in_both(task.tensors, mask, mask));
    training.selected_share += selected / choosable / steps;
    if (step > 0)
      training.mask_overlap +=
          static_cast<double>(in_both(task.tensors, before, mask)) / selected / (steps - 1);
    before = mask;
  }
  training.loss = task.loss(scape.parameters(0));
  return training;
}

}  // namespace scapesim::reference
