// SPDX-License-Identifier: Apache-2.0
// Selected elements with their indices: how many, how they travel, what touching them costs.
#pragma once

#include "sim/strategy/bucketed.hpp"
#include "sim/strategy/selection.hpp"

namespace scapesim::strategy {

/// Elements that a rank selects of a bucket.
struct Sparse {
  double elements = 0;  ///< to select from
  double count = 0;
  /// 4-byte index and 4-byte value each.
  double bytes() const { return 8 * count; }
  double density() const { return elements > 0 ? count / elements : 0; }
  /// [M200] Bytes of the 32-byte sectors of an array that a read or write of the selected touches.
  double touched(double element_bytes) const;
};

/// [M41] max(1, floor(d numel)) of each tensor, norm weights and biases whole.
Sparse sparse_of(const Bucket& bucket, double density);

/// [M302] All ranks' lists to all; then the buffer of the sum is zeroed and every list is added to
/// it, which touches its sectors once per rank.
Waits gather_sparse(Program& program, const Context& context, const Sparse& sent,
                    graph::OpId packed);

}  // namespace scapesim::strategy
