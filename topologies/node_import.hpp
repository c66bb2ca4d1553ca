// SPDX-License-Identifier: Apache-2.0
// A node as NCCL (NCCL_TOPO_DUMP_FILE, XML) or `nvidia-smi topo -m` describes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::topology {

struct NodeDescription {
  int gpus = 0;
  int nics = 0;
  std::optional<BytesPerSecond> nic_bandwidth;  ///< the slowest adapter's
  spec::NodeFabric fabric = spec::NodeFabric::pcie;
  std::optional<BytesPerSecond> node_link_bandwidth;
  std::vector<int> nic_affinity;            ///< empty without adapters
  std::vector<spec::PcieBranch> pcie_tree;  ///< without NVLink
  std::optional<spec::HostLink> host_link;
  std::vector<std::string> notes;    ///< what was assumed
  std::vector<std::string> unknown;  ///< what the file does not tell
};

/// The format is detected. Throws InputError for text that is neither, or is cut.
NodeDescription read_node(std::string_view text, const std::string& file);

/// The node's keys of a [cluster] table, with notes and what is missing as comments.
std::string node_toml(const NodeDescription& node, const std::string& file);

}  // namespace scapesim::topology
