// SPDX-License-Identifier: Apache-2.0
// bfloat16 as stored: the upper half of an IEEE single, rounded to nearest, ties to even; NaN stays
// NaN. The same integer arithmetic on host and device.
#pragma once

#include <cstdint>
#include <cstring>

// Functions that kernels and reference share, so that both do the same arithmetic.
#ifdef __CUDACC__
#define SCAPESIM_SHARED __host__ __device__
#else
#define SCAPESIM_SHARED
#endif

namespace scapesim::reference {

struct Bf16 {
  std::uint16_t bits;
  bool operator==(const Bf16&) const = default;
};

SCAPESIM_SHARED inline std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

SCAPESIM_SHARED inline float float_of(std::uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// The bits without the sign: the order of magnitudes, infinity above every number, NaN on top.
SCAPESIM_SHARED inline std::uint32_t magnitude_bits(float value) {
  return bits_of(value) & 0x7fffffffU;
}

SCAPESIM_SHARED inline Bf16 to_bf16(float value) {
  const std::uint32_t bits = bits_of(value);
  if (magnitude_bits(value) > 0x7f800000U)
    return {static_cast<std::uint16_t>((bits >> 16U) | 0x40U)};
  const std::uint32_t odd = (bits >> 16U) & 1U;
  return {static_cast<std::uint16_t>((bits + 0x7fffU + odd) >> 16U)};
}

/// Numbers as kernels load and store them.
SCAPESIM_SHARED inline float to_float(float value) { return value; }
SCAPESIM_SHARED inline float to_float(Bf16 value) {
  return float_of(static_cast<std::uint32_t>(value.bits) << 16U);
}

SCAPESIM_SHARED inline void store(float& place, float value) { place = value; }
SCAPESIM_SHARED inline void store(Bf16& place, float value) { place = to_bf16(value); }

}  // namespace scapesim::reference
