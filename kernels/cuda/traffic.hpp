// SPDX-License-Identifier: Apache-2.0
// Bytes that each kernel moves between HBM and the chip, per element of the range, counted from its
// source. Contiguous arrays count whole; what a mask selects counts by the 32-byte sectors it
// touches when its elements are independent (clustered ones touch fewer). Small tables (tile
// offsets, pieces, chunks, states) are left out: under 0.01 bytes per element each.
#pragma once

#include "kernels/cuda/launch.hpp"

namespace scapesim::kernels::traffic {

inline constexpr double kFloat = 4;
inline constexpr double kBf16 = 2;
inline constexpr double kMaskBit = 1.0 / 8;  ///< one pass over a packed mask
inline constexpr double kSector = 32;        ///< bytes that HBM moves at least

/// [M200] Share of an array's sectors that a random mask touches: 1 - (1-d)^(elements per sector).
constexpr double touched(double density, double element_bytes) {
  double untouched = 1;
  for (double bytes = 0; bytes < kSector; bytes += element_bytes) untouched *= 1 - density;
  return 1 - untouched;
}

/// m, g and r in, r out, mask and payload; the scores of the owned share are written on top.
constexpr double accumulate(double density, double gradient_bytes, double sent_bytes,
                            double scored_share = 0, double score_bytes = kFloat) {
  return 3 * kFloat + gradient_bytes + kMaskBit + density * sent_bytes + scored_share * score_bytes;
}
/// The same without a mask: r takes all.
constexpr double accumulate_unmasked(double gradient_bytes, double scored_share = 0,
                                     double score_bytes = kFloat) {
  return 3 * kFloat + gradient_bytes + scored_share * score_bytes;
}

/// Touched sectors of the values, in and (cleared) out, and the payload.
constexpr double gather(double density, double sent_bytes, Gathered gathered) {
  const double values = touched(density, kFloat) * kFloat;
  return kMaskBit + (gathered == Gathered::cleared ? 2 : 1) * values + density * sent_bytes;
}
/// With 4-byte indices, values kept.
constexpr double gather_pairs(double density) {
  return gather(density, kFloat, Gathered::kept) + density * sizeof(std::uint32_t);
}

/// Per element of the part: three passes over fp32 scores or one over bf16, and the mask's pass.
/// Histograms (8 KiB or 128 KiB a piece, cleared, added to and read) and pieces with more ties than
/// wanted (one more pass) come on top. Pieces that are selected whole are not read.
constexpr double select_threshold(double score_bytes) {
  return (score_bytes == kFloat ? 3 : 1) * score_bytes;
}
constexpr double select_mask(double score_bytes) { return score_bytes + kMaskBit; }

/// Received bits in, words and 4 bytes per tile out.
constexpr double stitch_masks() { return 2 * kMaskBit + 4.0 / kTile; }
constexpr double or_masks(double count) { return (count + 1) * kMaskBit + 4.0 / kTile; }
/// Counts in twice, 8-byte offsets out.
constexpr double scan_tiles() { return (2 * 4.0 + 8.0) / kTile; }

/// Mask, payload and the touched sectors of m.
constexpr double selected_norm(double density, double sent_bytes) {
  return kMaskBit + density * sent_bytes + touched(density, kFloat) * kFloat;
}
constexpr double dense_norm(double gradient_bytes) { return gradient_bytes; }

/// m and w in and out, the copy out, mask and payload; the second payload is written on top.
constexpr double scatter_adams(double density, double sent_bytes, double copy_bytes,
                               MomentUpdate moment_update = MomentUpdate::replace,
                               double second_payload_bytes = 0) {
  const double moment = moment_update == MomentUpdate::replace ? 2 * kFloat : kFloat;
  return moment + 2 * kFloat + copy_bytes + kMaskBit +
         density * (sent_bytes + second_payload_bytes);
}
/// Weights decay on the mask only: two masks, the touched sectors of w, and those of m where one of
/// two independent masks has a bit.
constexpr double scatter_adams_selected(double density, double sent_bytes, double copy_bytes) {
  const double either = 1 - (1 - density) * (1 - density);
  return 2 * kMaskBit + density * sent_bytes + touched(density, kFloat) * 2 * kFloat +
         (copy_bytes > 0 ? touched(density, copy_bytes) * copy_bytes : 0) +
         touched(either, kFloat) * 2 * kFloat;
}
/// Replica in and out, the copy out, m out, mask and both payloads. Clipped, m is read too; kept,
/// it is not touched and its payload not read.
constexpr double write_back(double density, double sent_bytes, double copy_bytes,
                            MomentUpdate moment_update = MomentUpdate::replace) {
  const double moment = moment_update == MomentUpdate::replace ? kFloat + density * sent_bytes : 0;
  return 2 * kFloat + copy_bytes + kMaskBit + density * kFloat + moment;
}

/// g in, m and w (and v) in and out, the copy out.
constexpr double dense_update(DenseMethod method, double gradient_bytes, double copy_bytes) {
  return gradient_bytes + (method == DenseMethod::adamw ? 6 : 4) * kFloat + copy_bytes;
}

constexpr double code_bytes(Code code) { return code == Code::int8 ? 1.0 : 0.5; }
/// Values on one side, codes and a 4-byte scale per block on the other.
constexpr double quantise(Code code, double value_bytes) {
  return value_bytes + code_bytes(code) + kFloat / kQuantBlock;
}
constexpr double dequantise(Code code, double value_bytes, double contributions = 1) {
  return value_bytes + contributions * (code_bytes(code) + kFloat / kQuantBlock);
}

}  // namespace scapesim::kernels::traffic
