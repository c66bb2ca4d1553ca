// SPDX-License-Identifier: Apache-2.0
#include "kernels/step/program.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "sim/base/random.hpp"

namespace scapesim::step {

namespace {

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
  return values;
}

/// Steps whose times are not counted: the first has no mask yet.
constexpr std::size_t kWarmup = 2;

std::size_t off(const std::vector<float>& values, const std::vector<float>& expected) {
  float largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  std::size_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!(std::abs(values[i] - expected[i]) <= 1e-5F * largest)) ++count;
  return count;
}

}  // namespace

std::vector<reference::Tensor> tensors_of(std::size_t elements) {
  const std::size_t large = elements / 5 * 2;
  const std::size_t norm = elements / 1000;
  return {{large, false}, {norm, true}, {large, false}, {elements - norm - 2 * large, false}};
}

std::vector<float> initial_parameters(std::size_t elements) { return random_values(elements, 1); }

std::vector<float> gradient_of(std::size_t elements, int step, int rank) {
  return random_values(elements, 2 + static_cast<std::uint64_t>(step % 2 + 2 * rank));
}

RankProgram::RankProgram(Backend& backend, const ProgramOptions& options, BeforeStep before_step)
    : backend_(backend),
      options_(options),
      before_step_(std::move(before_step)),
      step_(backend, tensors_of(options.elements), initial_parameters(options.elements),
            options.step) {
  for (int i = 0; i < 2; ++i) {
    const std::vector<float> values = gradient_of(options.elements, i, backend.rank());
    float* const host = backend.array<float>(values.size(), Where::host);
    std::ranges::copy(values, host);
    float*& device = gradients_[static_cast<std::size_t>(i)];
    device = backend.array<float>(values.size());
    backend.copy(Lane::compute, device, host, values.size() * sizeof(float));
  }
}

void RankProgram::enqueue_step(int step) {
  begins_.push_back(backend_.record(Lane::compute));
  if (before_step_) before_step_(backend_);
  step_.enqueue(gradients_[static_cast<std::size_t>(step % 2)], options_.learning_rate);
  ends_.push_back(backend_.record(Lane::compute));
}

std::string RankProgram::report() {
  std::string text;
  const std::size_t first = std::min(kWarmup, ends_.size() - 1);
  const double all = backend_.seconds_between(begins_[first], ends_.back());
  const auto counted = static_cast<double>(ends_.size() - first);
  text += fmt::format("{:<32} {:>12.3f} ms, mean of {} steps\n", "step", 1e3 * all / counted,
                      ends_.size() - first);
  for (const Phase& phase : step_.phases())
    text += fmt::format("{:<32} {:>12.3f} ms\n", phase.name,
                        1e3 * backend_.seconds_between(phase.begin, phase.end));
  for (const Call& call : step_.calls())
    text += fmt::format("{:<32} {:>12} bytes, {:.0f} sent on a ring\n", call.name, call.bytes,
                        ring_bytes(call, options_.ranks));
  return text;
}

bool Difference::acceptable(int ranks) const {
  const std::size_t allowed = ranks <= 2 ? 0 : elements / 10'000;
  return mask <= allowed && weights <= allowed && moment <= allowed && residual <= allowed;
}

Difference difference(const RankState& state, const RankState& expected) {
  Difference result{.mask = 0,
                    .weights = off(state.weights, expected.weights),
                    .moment = off(state.moment, expected.moment),
                    .residual = off(state.residual, expected.residual),
                    .elements = expected.weights.size()};
  for (std::size_t i = 0; i < expected.next_mask.size(); ++i)
    result.mask += state.next_mask[i] != expected.next_mask[i] ? 1 : 0;
  return result;
}

std::vector<RankState> reference_states(const ProgramOptions& options) {
  reference::Communicator communicator(options.ranks);
  reference::Scape<float> scape(tensors_of(options.elements), initial_parameters(options.elements),
                                reference_options(options.step), communicator);
  for (int step = 0; step < options.steps; ++step) {
    reference::PerRank<float> gradients;
    for (int rank = 0; rank < options.ranks; ++rank)
      gradients.push_back(gradient_of(options.elements, step, rank));
    scape.step(gradients, options.learning_rate);
  }
  std::vector<RankState> states;
  for (int i = 0; i < options.ranks; ++i) {
    const auto rank = static_cast<std::size_t>(i);
    states.push_back({scape.parameters(rank), scape.moment(rank), scape.residual(rank),
                      options.step.mask_delay == 1 ? scape.next_mask(rank) : scape.mask(rank)});
  }
  return states;
}

}  // namespace scapesim::step
