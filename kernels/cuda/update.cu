// SPDX-License-Identifier: Apache-2.0
// [M53] Scatter and AdamS in one pass, [M54] the replica's write-back, [M30] dense updates.
#include <stdexcept>

#include "kernels/cuda/tile.cuh"

namespace scapesim::kernels {

namespace {

/// A moment on the mask and the gradient behind it, after clipping.
struct Behind {
  float moment;
  float gradient;
};

__device__ inline Behind behind(const Coefficients<float>& c, const Clip* clip, float before,
                                float sent) {
  Behind it{sent, reference::gradient_behind(c, before, sent)};
  if (clip == nullptr || clip->fired == 0) return it;
  it.gradient *= clip->factor;
  it.moment = reference::moment(c, before, it.gradient);
  return it;
}

/// Not infinite, not NaN.
__device__ inline bool is_finite(float value) { return magnitude_bits(value) < 0x7f800000U; }

/// Off the mask: no moment, decay alone. The same bits as AdamS with moment and gradient 0, which
/// a moment before that is not finite turns into NaN.
__device__ inline float decayed(const Coefficients<float>& c, float weight, float before) {
  if (is_finite(before)) return c.kept * weight;
  return reference::weight(c, weight, 0.0F, reference::adams_second(c, before, 0.0F));
}

template <class Sent>
__device__ unsigned previous_bits(const ScatterAdamS<Sent>& a, const Group& group) {
  return a.previous_mask[group.element / 32] >> group.element % 32 & 0xfU;
}

/// A selected element: its moment and weight after the step.
template <class Sent>
__device__ void update_selected(const ScatterAdamS<Sent>& a, std::uint64_t position, float& moment,
                                float& weight) {
  const float before = moment;
  const Behind now = behind(a.coefficients, a.clip, before, to_float(a.payload[position]));
  moment = now.moment;
  weight = reference::weight(a.coefficients, weight, now.moment,
                             reference::adams_second(a.coefficients, before, now.gradient));
  if (a.sent_weights != nullptr) a.sent_weights[position] = weight;
}

// What is read whole is asked for before the mask is waited for.
template <class Sent>
__global__ void scatter_adams_kernel(const ScatterAdamS<Sent> a) {
  auto& tile = shared_memory<TileMask>();
  const bool everywhere = a.decay == Decay::all;
  Four moments[kRounds] = {};
  Four weights[kRounds] = {};
  SCAPESIM_UNROLL
  for (unsigned round = 0; round < kRounds && everywhere; ++round) {
    const Group group = group_of_thread(a.range, round);
    moments[round] = load_four(a.moment, 0, group);
    weights[round] = load_four(a.weights, a.range.first, group);
  }
  load_tile(tile, a.mask, tile_of(a.range));
  SCAPESIM_UNROLL
  for (unsigned round = 0; round < kRounds; ++round) {
    const Group group = group_of_thread(a.range, round);
    if (group.begin >= group.end) continue;
    const Selection selection = selection_of(tile, a.mask, group);
    const bool weights_change = everywhere || selection.bits != 0;
    if (!weights_change && previous_bits(a, group) == 0) continue;
    Four moment = everywhere ? moments[round] : load_four(a.moment, 0, group);
    Four weight = weights[round];
    if (!everywhere && weights_change) weight = load_four(a.weights, a.range.first, group);
    SCAPESIM_UNROLL
    for (unsigned i = 0; i < kPerThread; ++i) {
      if (!group.has(i)) continue;
      if (selection.has(i)) {
        update_selected(a, selection.position_of(i), moment.at[i], weight.at[i]);
        continue;
      }
      if (everywhere) weight.at[i] = decayed(a.coefficients, weight.at[i], moment.at[i]);
      moment.at[i] = 0;
    }
    if (a.moment_update == MomentUpdate::replace) store_four(a.moment, 0, group, moment);
    if (!weights_change) continue;
    store_four(a.weights, a.range.first, group, weight);
    if (a.copy != nullptr) store_four(a.copy, a.range.first, group, weight);
  }
}

template <class Sent>
__global__ void write_back_kernel(const WriteBack<Sent> a) {
  auto& tile = shared_memory<TileMask>();
  Four replicas[kRounds];
  SCAPESIM_UNROLL
  for (unsigned round = 0; round < kRounds; ++round)
    replicas[round] = load_four(a.replica, a.range.first, group_of_thread(a.range, round));
  load_tile(tile, a.mask, tile_of(a.range));
  // Without clipping the old moment is not read.
  const bool clipped = a.moment != nullptr && a.clip != nullptr && a.clip->fired != 0;
  SCAPESIM_UNROLL
  for (unsigned round = 0; round < kRounds; ++round) {
    const Group group = group_of_thread(a.range, round);
    if (group.begin >= group.end) continue;
    const Selection selection = selection_of(tile, a.mask, group);
    Four replica = replicas[round];
    const Four before = clipped ? load_four(a.moment, 0, group) : Four{};
    Four moment{};
    SCAPESIM_UNROLL
    for (unsigned i = 0; i < kPerThread; ++i) {
      if (!group.has(i)) continue;
      if (!selection.has(i)) {
        replica.at[i] = a.coefficients.kept * replica.at[i];
        continue;
      }
      const std::uint64_t position = selection.position_of(i);
      replica.at[i] = a.updated[position];
      if (a.moment != nullptr)
        moment.at[i] =
            behind(a.coefficients, a.clip, before.at[i], to_float(a.payload[position])).moment;
    }
    store_four(a.replica, a.range.first, group, replica);
    if (a.copy != nullptr) store_four(a.copy, a.range.first, group, replica);
    if (a.moment != nullptr) store_four(a.moment, 0, group, moment);
  }
}

template <class Gradient>
__global__ void dense_update_kernel(const DenseUpdate<Gradient> a) {
  const Coefficients<float>& c = a.coefficients;
  const float factor = a.clip != nullptr ? a.clip->factor : 1.0F;
  const bool adamw = a.method == DenseMethod::adamw;
  const Range all{0, a.elements};
  Four gradients[kRounds], moments[kRounds], seconds[kRounds], before_weights[kRounds];
  SCAPESIM_UNROLL
  for (unsigned round = 0; round < kRounds; ++round) {
    const Group group = group_of_thread(all, round);
    gradients[round] = load_four(a.gradient, 0, group);
    moments[round] = load_four(a.moment, 0, group);
    seconds[round] = adamw ? load_four(a.second, 0, group) : Four{};
    before_weights[round] = load_four(a.weights, 0, group);
  }
  SCAPESIM_UNROLL
  for (unsigned round = 0; round < kRounds; ++round) {
    const Group group = group_of_thread(all, round);
    if (group.begin >= group.end) continue;
    const Four gradient = gradients[round];
    Four moment = moments[round];
    Four second = seconds[round];
    Four weights = before_weights[round];
    SCAPESIM_UNROLL
    for (unsigned i = 0; i < kPerThread; ++i) {
      const float clipped = factor * gradient.at[i];
      const float before = moment.at[i];
      moment.at[i] = reference::moment(c, before, clipped);
      second.at[i] = adamw ? reference::adamw_second(c, second.at[i], clipped)
                           : reference::adams_second(c, before, clipped);
      weights.at[i] = reference::weight(c, weights.at[i], moment.at[i], second.at[i]);
    }
    store_four(a.moment, 0, group, moment);
    if (adamw) store_four(a.second, 0, group, second);
    store_four(a.weights, 0, group, weights);
    if (a.copy != nullptr) store_four(a.copy, 0, group, weights);
  }
}

}  // namespace

template <class Sent>
void scatter_adams(const ScatterAdamS<Sent>& arguments, Stream stream) {
  if (arguments.decay == Decay::selected && arguments.previous_mask == nullptr)
    throw std::invalid_argument("scatter_adams: the previous mask tells where moments are cleared");
  launch<TileMask>("scatter_adams", scatter_adams_kernel<Sent>, tile_blocks(arguments.range),
                   arguments, stream);
}
template void scatter_adams(const ScatterAdamS<float>&, Stream);
template void scatter_adams(const ScatterAdamS<Bf16>&, Stream);

template <class Sent>
void write_back(const WriteBack<Sent>& arguments, Stream stream) {
  launch<TileMask>("write_back", write_back_kernel<Sent>, tile_blocks(arguments.range), arguments,
                   stream);
}
template void write_back(const WriteBack<float>&, Stream);
template void write_back(const WriteBack<Bf16>&, Stream);

template <class Gradient>
void dense_update(const DenseUpdate<Gradient>& arguments, Stream stream) {
  launch("dense_update", dense_update_kernel<Gradient>, tile_blocks({0, arguments.elements}),
         arguments, stream);
}
template void dense_update(const DenseUpdate<float>&, Stream);
template void dense_update(const DenseUpdate<Bf16>&, Stream);

}  // namespace scapesim::kernels
