// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/sheet.hpp"

#include <algorithm>

namespace scapesim::plan {

Sheet::Sheet(const topology::Fabric& fabric, Keep keep)
    : fabric_(fabric), keep_(keep), flows_(static_cast<std::size_t>(fabric.links())) {}

TransferId Sheet::send(topology::GpuId from, topology::GpuId to, std::uint64_t units,
                       std::span<const TransferId> after) {
  path_.clear();
  fabric_.append_path(from, to, path_);
  const bool between = fabric_.node_of(from) != fabric_.node_of(to);
  return record(units, between ? fabric_.latency(from, to) : Seconds(0), between, after);
}

TransferId Sheet::spread(std::span<const topology::LinkId> links, std::uint64_t units,
                         Seconds fabric_latency, std::span<const TransferId> after) {
  path_.assign(links.begin(), links.end());
  return record(units, fabric_latency, fabric_latency > Seconds(0), after);
}

TransferId Sheet::record(std::uint64_t units, Seconds latency, bool between,
                         std::span<const TransferId> after) {
  for (const topology::LinkId link : path_) flows_[index(link)] += units;
  fabric_latency_ = std::max(fabric_latency_, latency);
  if (keep_ != Keep::flows)
    transfers_.push_back({path_, units, latency, between, {after.begin(), after.end()}});
  return count_++;
}

}  // namespace scapesim::plan
