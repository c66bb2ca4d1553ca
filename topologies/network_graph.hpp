// SPDX-License-Identifier: Apache-2.0
// Networks from files: reading them, and their switches and nodes by number.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::topology {

/// GraphML (edges with a "bandwidth" of data) or CSV with the columns from, to, bandwidth and, if
/// parallel cables are counted, count. What is wrong goes to `problems` with its line.
spec::NetworkGraph read_network(std::string_view text, const std::string& file, Problems& problems);

struct NetworkParts {
  struct Cable {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    BytesPerSecond capacity;
  };
  std::vector<std::string> switches;  ///< names, in order of appearance
  std::vector<Cable> cables;          ///< between switches
  std::vector<std::vector<std::uint32_t>>
      nodes;  ///< switches of every node, in order of its cables

  /// Switches with a cable to one of the first `count` nodes.
  std::set<std::uint32_t> holders(int count) const;
};

/// Of a graph without violations.
NetworkParts network_parts(const spec::NetworkGraph& graph);

}  // namespace scapesim::topology
