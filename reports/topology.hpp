// SPDX-License-Identifier: Apache-2.0
// A fabric for people, for programs and for Graphviz.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "topologies/fabric.hpp"
#include "topologies/node_import.hpp"

namespace scapesim::reports {

/// What `topology show` is about.
struct TopologyView {
  const spec::Cluster& cluster;
  const topology::Fabric& fabric;
  std::optional<std::pair<topology::GpuId, topology::GpuId>> path = {};
};

std::string topology_text(const TopologyView& view);
std::string topology_json(const TopologyView& view);

/// An imported node, unknown values null.
std::string node_json(const topology::NodeDescription& node);

/// An undirected graph: one edge per duplex cable, labelled with its capacity per direction.
std::string topology_dot(const TopologyView& view);

/// The same as a drawing, with names and capacities as tool tips.
std::string topology_svg(const TopologyView& view);

}  // namespace scapesim::reports
