// SPDX-License-Identifier: Apache-2.0
#include "kernels/check/check.hpp"

namespace scapesim::kernels {

namespace {

/// The local pass in all ranges, with or without a mask; what it leaves behind.
template <class Gradient, class Sent>
void check_local_pass(const Setup& setup, const std::vector<Range>& ranges,
                      const reference::Mask& mask, Random& random, Comparisons& results) {
  const std::size_t n = setup.elements;
  const auto c = some_coefficients(random);
  const auto moment = values_of(setup, n, random);
  const auto gradient = stored<Gradient>(values_of(setup, n, random));
  const auto residual = values_of(setup, n, random);
  const Range owned{n / 3, n - n / 3 - n / 5};

  std::vector<float> local(n);
  for (std::size_t i = 0; i < n; ++i)
    local[i] = reference::moment(c, moment[i], reference::to_float(gradient[i])) + residual[i];
  auto left = local;
  if (!mask.empty())
    for (std::size_t i = 0; i < n; ++i)
      if (mask[i]) left[i] = 0;
  const std::vector<float> scores(
      local.begin() + static_cast<std::ptrdiff_t>(owned.first),
      local.begin() + static_cast<std::ptrdiff_t>(owned.first + owned.count));
  const auto sent = mask.empty() ? std::vector<Sent>{} : stored<Sent>(selected_of(local, mask));

  const Array<float> device_moment(moment, setup.shift);
  const Array<Gradient> device_gradient(gradient, setup.shift);
  Array<float> device_residual(residual, setup.shift);
  const DeviceMask device_mask(mask);
  Array<Sent> payload(sent.size(), setup.shift);
  Array<float> device_scores(owned.count, setup.shift);
  Array<Bf16> rounded(owned.count, setup.shift);
  for (const Range range : ranges)
    accumulate<Gradient, Sent>({.range = range,
                                .moment = device_moment.data(),
                                .gradient = device_gradient.data(),
                                .residual = device_residual.data() + range.first,
                                .mask = mask.empty() ? MaskView{} : device_mask.view(),
                                .payload = payload.data(),
                                .owned = owned,
                                .scores = device_scores.data(),
                                .rounded_scores = rounded.data(),
                                .coefficients = c},
                               nullptr);
  results.exact("residual", left, device_residual.values());
  results.exact("payload", sent, payload.values());
  results.exact("scores", scores, device_scores.values());
  results.exact("rounded scores", stored<Bf16>(scores), rounded.values());
}

}  // namespace

void check_accumulate(const Setup& setup, Comparisons& results) {
  Random random(setup.seed);
  const auto all = whole(setup.elements);
  check_local_pass<float, float>(setup, all, random_mask(setup, random), random, results);
  check_local_pass<Bf16, Bf16>(setup, all, random_mask(setup, random), random, results);
  check_local_pass<float, Bf16>(setup, pieces_of(setup.elements, random),
                                random_mask(setup, random), random, results);
  check_local_pass<Bf16, float>(setup, pieces_of(setup.elements, random), {}, random, results);
}

void check_gather(const Setup& setup, Comparisons& results) {
  Random random(setup.seed);
  const auto mask = random_mask(setup, random);
  const auto values = values_of(setup, setup.elements, random);
  const auto sent = selected_of(values, mask);
  std::vector<std::uint32_t> indices;
  auto left = values;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (!mask[i]) continue;
    indices.push_back(static_cast<std::uint32_t>(i));
    left[i] = 0;
  }
  const DeviceMask device_mask(mask);
  Array<float> device_values(values, setup.shift);
  Array<float> payload(sent.size(), setup.shift);
  Array<Bf16> rounded(sent.size(), setup.shift);
  Array<std::uint32_t> device_indices(indices.size(), setup.shift);
  for (const Range range : pieces_of(setup.elements, random))
    gather<Bf16>({.range = range,
                  .values = device_values.data() + range.first,
                  .mask = device_mask.view(),
                  .payload = rounded.data()},
                 nullptr);
  results.exact("values kept", values, device_values.values());
  gather<float>({.range = {0, setup.elements},
                 .values = device_values.data(),
                 .gathered = Gathered::cleared,
                 .mask = device_mask.view(),
                 .payload = payload.data(),
                 .indices = device_indices.data()},
                nullptr);
  results.exact("values cleared", left, device_values.values());
  results.exact("rounded payload", stored<Bf16>(sent), rounded.values());
  results.exact("payload", sent, payload.values());
  results.exact("indices", indices, device_indices.values());

  // Back in their places, twice; the last element is beyond the end.
  std::vector<float> sum(setup.elements - 1);
  for (std::size_t i = 0; i < sum.size(); ++i)
    if (mask[i]) sum[i] = values[i] + values[i];
  Array<float> dense(std::vector<float>(setup.elements - 1), setup.shift);
  for (int rank = 0; rank < 2; ++rank)
    scatter_add({.indices = device_indices.data(),
                 .values = payload.data(),
                 .count = indices.size(),
                 .dense = dense.data(),
                 .elements = dense.size()},
                nullptr);
  for (float& value : sum) value += 0.0F;  // -0 + -0 added to 0 is 0
  results.exact("sum of pairs", sum, dense.values());
}

}  // namespace scapesim::kernels
