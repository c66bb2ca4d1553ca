// SPDX-License-Identifier: Apache-2.0
// Links that carry the same flows of every collective are one class: one resource of the max-min
// problem stands for all of them, since each of them would give the same rates.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "sim/cost/network_terms.hpp"
#include "sim/graph/graph.hpp"
#include "topologies/fabric.hpp"

namespace scapesim::plan {

/// Whether a link belongs to the inside of a node.
inline bool is_inside(topology::LinkKind kind) { return topology::inside_node(kind); }

/// What of a link's capacity a call can use alone.
BytesPerSecond usable(topology::LinkKind kind, BytesPerSecond capacity,
                      const cost::NetworkTerms& terms);

/// A partition of the fabric's links, refined by one column of flow counts at a time.
class LinkClasses {
 public:
  explicit LinkClasses(const topology::Fabric& fabric);

  /// Splits classes whose links differ in this column (flows per link); returns its number.
  std::size_t refine(const std::vector<std::uint64_t>& flows);

  struct Class {
    topology::Link link;               ///< any of them
    std::vector<std::uint64_t> flows;  ///< per column
  };
  /// Classes that carry flows and are limited, in order of their first links.
  std::vector<Class> used() const;

 private:
  struct Split {
    std::uint32_t parent = 0;
    std::uint64_t flows = 0;
  };
  const topology::Fabric& fabric_;
  std::vector<std::uint32_t> class_of_;      ///< per link
  std::vector<std::vector<Split>> columns_;  ///< per column and class after it
};

/// Turns classes into resources, a line rate and, per transport cap, what a NIC's transport passes.
class ResourceTable {
 public:
  explicit ResourceTable(const LinkClasses& classes) : classes_(classes.used()) {}

  /// [M27] Loads of one flow of a column's pattern, which counts as `lead` there. A flow that
  /// reaches a share e of the line rate occupies 1/e of itself on the line, so that calls of
  /// different efficiency may share it.
  std::vector<graph::Load> loads(std::size_t column, const cost::NetworkTerms& terms, double lead);
  std::vector<graph::Resource> take() { return std::move(resources_); }

 private:
  graph::ResourceId resource(std::size_t link_class, std::optional<BytesPerSecond> transport);

  std::vector<LinkClasses::Class> classes_;
  std::vector<graph::Resource> resources_;
  std::map<std::pair<std::size_t, std::optional<BytesPerSecond>>, graph::ResourceId> ids_;
};

}  // namespace scapesim::plan
