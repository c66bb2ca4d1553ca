// SPDX-License-Identifier: Apache-2.0
// Fields of a cluster that describe nodes and networks in words of their own.
#pragma once

#include "sim/scenario/field.hpp"

namespace scapesim::scenario {

/// The adapter of every GPU of a node: "0,0,1,1", or "none".
Field nic_affinity();
/// Branches of a PCIe tree: ["socket 0: switch 0, NIC 0", "switch 0: GPU 0, GPU 1"].
Field pcie_tree();
/// Slow and failed cables: ["NIC 3 = 0.5", "leaf switch 0 - spine switch 1 = failed"].
Field degraded_cables();
namespace detail {

/// "2500USD" or "none".
Read<std::optional<Dollars>> read_dollars(const Value& value);
std::string dollars_text(const std::optional<Dollars>& price);
inline constexpr const char* kDollarRange = "0USD to 1e+09USD, or none";

}  // namespace detail

/// A price, "2500USD", or "none"; the member is a std::optional.
template <class Get>
Field dollars(Get get) {
  return detail::field("dollars", detail::kDollarRange, get, detail::read_dollars,
                       detail::dollars_text);
}

/// A file with the network's cables, read at once.
Field network_file();

}  // namespace scapesim::scenario
