// SPDX-License-Identifier: Apache-2.0
// int8 and int4 codes in blocks of 256, a warp per block and eight elements per lane.
#include "kernels/cuda/tile.cuh"
#include "kernels/reference/quantisation.hpp"

namespace scapesim::kernels {

namespace {

constexpr unsigned kPerLane = kQuantBlock / kWarp;
static_assert(kPerLane == 8 && kTile == kQuantBlock * kWarps);

__device__ inline float largest_code(Code code) { return code == Code::int8 ? 127.0F : 7.0F; }

/// A lane's elements, and how many of them there are.
struct LaneElements {
  std::size_t first;
  unsigned count;
};

__device__ inline LaneElements lane_elements(std::size_t elements) {
  const std::size_t first = static_cast<std::size_t>(blockIdx.x) * kTile + threadIdx.x * kPerLane;
  const std::size_t left = first < elements ? elements - first : 0;
  return {first, static_cast<unsigned>(left < kPerLane ? left : kPerLane)};
}

/// Eight codes as they are stored: a byte each in int8, half a byte in int4.
struct alignas(8) Packed {
  std::uint8_t bytes[kPerLane];
};
struct alignas(4) HalfPacked {
  std::uint8_t bytes[kPerLane / 2];
};

template <class Whole>
__device__ bool stored_at_once(const std::uint8_t* place, unsigned count) {
  return count == kPerLane && reinterpret_cast<std::uintptr_t>(place) % sizeof(Whole) == 0;
}

__device__ inline unsigned stored_bytes(Code code, unsigned count) {
  return code == Code::int8 ? count : (count + 1) / 2;
}

__device__ inline void store_packed(Code code, std::uint8_t* place, unsigned count,
                                    const Packed& packed) {
  if (code == Code::int8 && stored_at_once<Packed>(place, count)) {
    *reinterpret_cast<Packed*>(place) = packed;
  } else if (code == Code::int4 && stored_at_once<HalfPacked>(place, count)) {
    HalfPacked half;
    for (unsigned i = 0; i < kPerLane / 2; ++i) half.bytes[i] = packed.bytes[i];
    *reinterpret_cast<HalfPacked*>(place) = half;
  } else {
    for (unsigned i = 0; i < kPerLane; ++i)
      if (i < stored_bytes(code, count)) place[i] = packed.bytes[i];
  }
}

__device__ inline Packed load_packed(Code code, const std::uint8_t* place, unsigned count) {
  Packed packed{};
  if (code == Code::int8 && stored_at_once<Packed>(place, count))
    return *reinterpret_cast<const Packed*>(place);
  if (code == Code::int4 && stored_at_once<HalfPacked>(place, count)) {
    const HalfPacked half = *reinterpret_cast<const HalfPacked*>(place);
    for (unsigned i = 0; i < kPerLane / 2; ++i) packed.bytes[i] = half.bytes[i];
    return packed;
  }
  for (unsigned i = 0; i < kPerLane; ++i)
    if (i < stored_bytes(code, count)) packed.bytes[i] = place[i];
  return packed;
}

__device__ inline int code_at(Code code, const Packed& packed, unsigned i) {
  if (code == Code::int8) return static_cast<std::int8_t>(packed.bytes[i]);
  const int half = packed.bytes[i / 2] >> (i % 2 * 4) & 0xf;
  return half < 8 ? half : half - 16;
}

__device__ inline std::size_t place_of(Code code, std::size_t element) {
  return code == Code::int8 ? element : element / 2;
}

template <class Value>
__global__ void quantise_kernel(const Quantise<Value> a) {
  const LaneElements lane = lane_elements(a.elements);
  const Range all{0, a.elements};
  const Four low = load_four(a.values, 0, group_of(lane.first, all));
  const Four high = load_four(a.values, 0, group_of(lane.first + kPerThread, all));
  std::uint32_t largest = 0;
  for (unsigned i = 0; i < kPerThread; ++i) {
    const std::uint32_t a_bits = magnitude_bits(low.at[i]);
    const std::uint32_t b_bits = magnitude_bits(high.at[i]);
    largest = largest > a_bits ? largest : a_bits;
    largest = largest > b_bits ? largest : b_bits;
  }
  for (unsigned step = 1; step < kWarp; step *= 2) {
    const std::uint32_t other = __shfl_xor_sync(kFull, largest, step);
    largest = largest > other ? largest : other;
  }
  if (lane.count == 0) return;
  const float limit = largest_code(a.code);
  const float scale = reference::scale_of(largest, limit);
  if (threadIdx.x % kWarp == 0) a.scales[lane.first / kQuantBlock] = scale;
  Packed packed{};
  for (unsigned i = 0; i < kPerLane; ++i) {
    const float value = i < kPerThread ? low.at[i] : high.at[i - kPerThread];
    const auto code = static_cast<unsigned>(reference::code_of(value, scale, limit));
    if (a.code == Code::int8)
      packed.bytes[i] = static_cast<std::uint8_t>(code & 0xffU);
    else
      packed.bytes[i / 2] |= static_cast<std::uint8_t>((code & 0xfU) << i % 2 * 4);
  }
  store_packed(a.code, a.codes + place_of(a.code, lane.first), lane.count, packed);
}

template <class Value>
__global__ void dequantise_kernel(const Dequantise<Value> a) {
  const LaneElements lane = lane_elements(a.elements);
  if (lane.count == 0) return;
  Four sum[2] = {};
  for (std::size_t i = 0; i < a.count; ++i) {
    const std::uint8_t* place = a.codes + i * a.code_stride + place_of(a.code, lane.first);
    const Packed packed = load_packed(a.code, place, lane.count);
    const float scale = a.scales[i * a.scale_stride + lane.first / kQuantBlock];
    for (unsigned j = 0; j < kPerLane; ++j)
      sum[j / kPerThread].at[j % kPerThread] +=
          reference::value_of(code_at(a.code, packed, j), scale);
  }
  for (unsigned half = 0; half < 2; ++half) {
    for (unsigned i = 0; i < kPerThread; ++i) sum[half].at[i] *= a.factor;
    store_four(a.values, 0, group_of(lane.first + half * kPerThread, {0, a.elements}), sum[half]);
  }
}

}  // namespace

template <class Value>
void quantise(const Quantise<Value>& arguments, Stream stream) {
  launch("quantise", quantise_kernel<Value>, tiles_of(arguments.elements), arguments, stream);
}
template void quantise(const Quantise<float>&, Stream);
template void quantise(const Quantise<Bf16>&, Stream);

template <class Value>
void dequantise(const Dequantise<Value>& arguments, Stream stream) {
  launch("dequantise", dequantise_kernel<Value>, tiles_of(arguments.elements), arguments, stream);
}
template void dequantise(const Dequantise<float>&, Stream);
template void dequantise(const Dequantise<Bf16>&, Stream);

}  // namespace scapesim::kernels
