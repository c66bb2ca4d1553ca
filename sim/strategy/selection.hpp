// SPDX-License-Identifier: Apache-2.0
// Who owns which parameters and how many elements a mask selects: integer counts, no time.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/spec/spec.hpp"
#include "sim/workload/workload.hpp"

namespace scapesim::strategy {

/// Consecutive elements of one tensor that one rank owns.
struct Piece {
  std::int64_t numel = 0;
  bool always_selected = false;
};

/// Parts of all ranks in rank order; a part may be empty.
using Ownership = std::vector<std::vector<Piece>>;

/// [M40] even: part i is elements [i c, (i+1) c) of the flat parameters, c = ceil(N/P), cutting
/// tensors where it falls. tensor: the owner of a whole tensor is the rank whose even part holds
/// its first element.
Ownership ownership(const std::vector<workload::Tensor>& tensors, int ranks, spec::Owners owners);

/// Elements of the largest part.
std::int64_t largest_part(const Ownership& parts);

/// [M41] Elements that a mask of this density selects: max(1, floor(d numel)) of each piece, norm
/// and bias tensors whole.
std::int64_t selected(const Ownership& parts, double density);

/// [M42] Bytes of the gathered masks: every rank sends a buffer of the largest part's mask.
std::int64_t gathered_mask_bytes(const Ownership& parts, spec::MaskFormat format);

/// Bytes of a mask of that many elements.
std::int64_t mask_bytes(std::int64_t elements, spec::MaskFormat format);

/// [M45] Density of the OR of P masks of density d. overlap 0: independent, 1-(1-d)^P;
/// 1: all the same, d; linear between.
double union_density(double density, int ranks, double overlap);

/// [M46] Density in step t of a geometric warm-up from 1 to d over W steps; at_step < 0: d.
double density_at(const spec::Strategy& strategy);

}  // namespace scapesim::strategy
