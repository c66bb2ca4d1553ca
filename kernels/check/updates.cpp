// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "kernels/check/check.hpp"

namespace scapesim::kernels {

namespace {

using reference::Mask;

template <class T>
std::vector<double> norm_of(const std::vector<T>& gradient) {
  double squares = 0;
  for (const T value : gradient) {
    const auto g = static_cast<double>(reference::to_float(value));
    squares += g * g;
  }
  return {std::sqrt(squares)};
}

/// Clips of three kinds: none given, one that did not fire, one that did.
std::vector<Clip> some_clip(Random& random) {
  const std::uint64_t kind = random.below(3);
  if (kind == 0) return {};
  return {kind == 1 ? Clip{.norm = 1, .factor = 1, .fired = 0}
                    : Clip{.norm = 2, .factor = 0.37F, .fired = 1}};
}

/// State before an update, and what the reference makes of it.
struct State {
  std::vector<float> moment;
  std::vector<float> weights;
};

/// As the reference optimizer does it, element by element.
template <class Sent>
State updated(const State& before, const Mask& mask, const std::vector<Sent>& payload,
              const std::vector<Clip>& clip, const Coefficients<float>& c, Decay decay) {
  State after = before;
  std::size_t next = 0;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    float now = 0;
    float gradient = 0;
    if (mask[i]) {
      now = reference::to_float(payload[next++]);
      gradient = reference::gradient_behind(c, before.moment[i], now);
      if (!clip.empty() && clip[0].fired != 0) {
        gradient *= clip[0].factor;
        now = reference::moment(c, before.moment[i], gradient);
      }
    }
    after.moment[i] = now;
    if (mask[i] || decay == Decay::all)
      after.weights[i] = reference::weight(c, before.weights[i], now,
                                           reference::adams_second(c, before.moment[i], gradient));
  }
  return after;
}

/// Moments are 0 off the mask of the step before.
State state_before(const Setup& setup, const Mask& previous, Random& random) {
  State state{values_of(setup, setup.elements, random), values_of(setup, setup.elements, random)};
  for (std::size_t i = 0; i < previous.size(); ++i)
    if (!previous[i]) state.moment[i] = 0;
  return state;
}

template <class Sent>
void check_scatter(const Setup& setup, Decay decay, MomentUpdate moment_update,
                   const std::vector<Range>& ranges, Random& random, Comparisons& results) {
  const auto previous = random_mask(setup, random);
  const auto mask = random_mask(setup, random);
  const State before = state_before(setup, previous, random);
  const auto c = some_coefficients(random);
  const auto clip = some_clip(random);
  const auto payload = stored<Sent>(values_of(setup, reference::count(mask), random));
  const State after = updated(before, mask, payload, clip, c, decay);

  const DeviceMask device_mask(mask);
  const DeviceMask device_previous(previous);
  const Array<Sent> device_payload(payload, setup.shift);
  const Array<Clip> device_clip(clip);
  Array<float> moment(before.moment, setup.shift);
  Array<float> weights(before.weights, setup.shift);
  Array<Bf16> copy(stored<Bf16>(before.weights), setup.shift);
  Array<float> sent(payload.size(), setup.shift);
  for (const Range range : ranges)
    scatter_adams<Sent>({.range = range,
                         .mask = device_mask.view(),
                         .previous_mask = device_previous.words.data(),
                         .payload = device_payload.data(),
                         .moment = moment.data(),
                         .weights = weights.data() + range.first,
                         .copy = copy.data() + range.first,
                         .sent_weights = sent.data(),
                         .clip = clip.empty() ? nullptr : device_clip.data(),
                         .coefficients = c,
                         .decay = decay,
                         .moment_update = moment_update},
                        nullptr);
  results.close("weights", after.weights, weights.values());
  const bool kept = moment_update == MomentUpdate::keep;
  results.close("moment", kept ? before.moment : after.moment, moment.values());
  results.exact("bf16 copy", stored<Bf16>(weights.values()), copy.values());
  results.exact("sent weights", selected_of(weights.values(), mask), sent.values());
}

template <class Value>
void check_dense(const Setup& setup, DenseMethod method, Random& random, Comparisons& results) {
  const std::size_t n = setup.elements;
  const auto c = some_coefficients(random);
  const auto clip = some_clip(random);
  const auto gradient = stored<Value>(values_of(setup, n, random));
  std::vector<float> moment = values_of(setup, n, random);
  std::vector<float> weights = values_of(setup, n, random);
  std::vector<float> second = values_of(setup, n, random);
  for (float& value : second) value = std::abs(value);
  Array<float> device_moment(moment, setup.shift);
  Array<float> device_second(second, setup.shift);
  Array<float> device_weights(weights, setup.shift);
  const Array<Value> device_gradient(gradient, setup.shift);
  const Array<Clip> device_clip(clip);
  Array<Bf16> copy(n, setup.shift);
  dense_update<Value>({.method = method,
                       .elements = n,
                       .gradient = device_gradient.data(),
                       .moment = device_moment.data(),
                       .second = method == DenseMethod::adamw ? device_second.data() : nullptr,
                       .weights = device_weights.data(),
                       .copy = copy.data(),
                       .clip = clip.empty() ? nullptr : device_clip.data(),
                       .coefficients = c},
                      nullptr);
  const float factor = clip.empty() ? 1.0F : clip[0].factor;
  for (std::size_t i = 0; i < n; ++i) {
    const float g = factor * reference::to_float(gradient[i]);
    const float before = moment[i];
    moment[i] = reference::moment(c, before, g);
    const float v = method == DenseMethod::adams
                        ? reference::adams_second(c, before, g)
                        : (second[i] = reference::adamw_second(c, second[i], g));
    weights[i] = reference::weight(c, weights[i], moment[i], v);
  }
  results.close("moment", moment, device_moment.values());
  results.close("second moment", second, device_second.values());
  results.close("weights", weights, device_weights.values());
  results.exact("bf16 copy", stored<Bf16>(device_weights.values()), copy.values());
}

/// Norm, factor and whether it fired, for a limit.
void compare_clip(const std::vector<double>& norm, double limit, const Array<Clip>& clip,
                  Comparisons& results) {
  const Clip got = clip.values()[0];
  const double factor = reference::clip_factor(limit, norm[0]);
  results.close("norm", norm, std::vector{got.norm});
  results.close("factor", std::vector{static_cast<float>(factor)}, std::vector{got.factor});
  results.exact("fired", std::vector{factor != 1 ? 1U : 0U}, std::vector{got.fired});
}

template <class Value>
void check_norm(const Setup& setup, double limit, Random& random, Comparisons& results) {
  const auto c = some_coefficients(random);
  const auto mask = random_mask(setup, random);
  const auto moment = values_of(setup, setup.elements, random);
  const auto payload = stored<Value>(values_of(setup, reference::count(mask), random));
  const auto before = selected_of(moment, mask);
  std::vector<float> behind;
  for (std::size_t i = 0; i < payload.size(); ++i)
    behind.push_back(reference::gradient_behind(c, before[i], reference::to_float(payload[i])));

  const DeviceMask device_mask(mask);
  const Array<Value> device_payload(payload, setup.shift);
  const Array<float> device_moment(moment, setup.shift);
  Array<double> partial(kNormBlocks);
  Array<Clip> clip(1);
  selected_norm<Value>({.mask = device_mask.view(),
                        .payload = device_payload.data(),
                        .moment = device_moment.data(),
                        .coefficients = c,
                        .limit = limit,
                        .partial = partial.data(),
                        .clip = clip.data()},
                       nullptr);
  compare_clip(norm_of(behind), limit, clip, results);

  const auto gradient = stored<Value>(moment);
  const Array<Value> device_gradient(gradient, setup.shift);
  dense_norm<Value>({.gradient = device_gradient.data(),
                     .elements = setup.elements,
                     .limit = limit,
                     .partial = partial.data(),
                     .clip = clip.data()},
                    nullptr);
  compare_clip(norm_of(gradient), limit, clip, results);
}

}  // namespace

void check_scatter_adams(const Setup& setup, Comparisons& results) {
  Random random(setup.seed);
  const auto all = whole(setup.elements);
  check_scatter<float>(setup, Decay::all, MomentUpdate::replace, all, random, results);
  check_scatter<Bf16>(setup, Decay::selected, MomentUpdate::replace, all, random, results);
  check_scatter<float>(setup, Decay::selected, MomentUpdate::replace,
                       pieces_of(setup.elements, random), random, results);
  check_scatter<float>(setup, Decay::all, MomentUpdate::keep, pieces_of(setup.elements, random),
                       random, results);
}

void check_write_back(const Setup& setup, Comparisons& results) {
  Random random(setup.seed);
  for (const auto& ranges : {whole(setup.elements), pieces_of(setup.elements, random)}) {
    const auto mask = random_mask(setup, random);
    const State before = state_before(setup, random_mask(setup, random), random);
    const auto c = some_coefficients(random);
    const auto clip = some_clip(random);
    const auto payload = values_of(setup, reference::count(mask), random);
    const auto sent = values_of(setup, payload.size(), random);
    State after = updated(before, mask, payload, clip, c, Decay::all);
    std::size_t next = 0;
    for (std::size_t i = 0; i < mask.size(); ++i)
      after.weights[i] = mask[i] ? sent[next++] : c.kept * before.weights[i];

    const DeviceMask device_mask(mask);
    const Array<float> device_payload(payload, setup.shift);
    const Array<float> device_sent(sent, setup.shift);
    const Array<Clip> device_clip(clip);
    Array<float> moment(before.moment, setup.shift);
    Array<float> replica(before.weights, setup.shift);
    Array<Bf16> copy(setup.elements, setup.shift);
    for (const Range range : ranges)
      write_back<float>({.range = range,
                         .mask = device_mask.view(),
                         .updated = device_sent.data(),
                         .payload = device_payload.data(),
                         .moment = moment.data(),
                         .replica = replica.data() + range.first,
                         .copy = copy.data() + range.first,
                         .clip = clip.empty() ? nullptr : device_clip.data(),
                         .coefficients = c},
                        nullptr);
    results.close("replica", after.weights, replica.values());
    results.close("moment", after.moment, moment.values());
    results.exact("bf16 copy", stored<Bf16>(replica.values()), copy.values());
  }
}

void check_norms(const Setup& setup, Comparisons& results) {
  Random random(setup.seed);
  check_norm<float>(setup, 1e-3, random, results);
  check_norm<Bf16>(setup, kNoLimit, random, results);
}

void check_dense_update(const Setup& setup, Comparisons& results) {
  Random random(setup.seed);
  check_dense<float>(setup, DenseMethod::adams, random, results);
  check_dense<Bf16>(setup, DenseMethod::adams, random, results);
  check_dense<float>(setup, DenseMethod::adamw, random, results);
  check_dense<Bf16>(setup, DenseMethod::adamw, random, results);
}

}  // namespace scapesim::kernels
