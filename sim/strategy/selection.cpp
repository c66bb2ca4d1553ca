// SPDX-License-Identifier: Apache-2.0
#include "sim/strategy/selection.hpp"

#include <algorithm>
#include <cmath>

namespace scapesim::strategy {

Ownership ownership(const std::vector<workload::Tensor>& tensors, int ranks, spec::Owners owners) {
  std::int64_t total = 0;
  for (const workload::Tensor& tensor : tensors) total += tensor.numel;
  const std::int64_t part = std::max<std::int64_t>(1, (total + ranks - 1) / ranks);

  Ownership parts(static_cast<std::size_t>(ranks));
  std::int64_t offset = 0;
  for (const workload::Tensor& tensor : tensors) {
    std::int64_t left = tensor.numel;
    while (left > 0) {
      const std::int64_t room = part - offset % part;
      const std::int64_t taken = owners == spec::Owners::even ? std::min(left, room) : left;
      parts[static_cast<std::size_t>(offset / part)].push_back({taken, tensor.always_selected});
      offset += taken;
      left -= taken;
    }
  }
  return parts;
}

std::int64_t largest_part(const Ownership& parts) {
  std::int64_t largest = 0;
  for (const auto& pieces : parts) {
    std::int64_t sum = 0;
    for (const Piece& piece : pieces) sum += piece.numel;
    largest = std::max(largest, sum);
  }
  return largest;
}

std::int64_t selected(const Ownership& parts, double density) {
  std::int64_t sum = 0;
  for (const auto& pieces : parts)
    for (const Piece& piece : pieces) {
      const auto share = static_cast<std::int64_t>(density * static_cast<double>(piece.numel));
      sum += piece.always_selected ? piece.numel : std::max<std::int64_t>(1, share);
    }
  return sum;
}

std::int64_t mask_bytes(std::int64_t elements, spec::MaskFormat format) {
  return format == spec::MaskFormat::packed ? (elements + 7) / 8 : elements;
}

std::int64_t gathered_mask_bytes(const Ownership& parts, spec::MaskFormat format) {
  return static_cast<std::int64_t>(parts.size()) * mask_bytes(largest_part(parts), format);
}

double union_density(double density, int ranks, double overlap) {
  const double independent = 1 - std::pow(1 - density, ranks);
  return overlap * density + (1 - overlap) * independent;
}

double density_at(const spec::Strategy& strategy) {
  if (strategy.at_step < 0 || strategy.at_step >= strategy.density_warmup) return strategy.density;
  return std::pow(strategy.density,
                  static_cast<double>(strategy.at_step) / strategy.density_warmup);
}

}  // namespace scapesim::strategy
