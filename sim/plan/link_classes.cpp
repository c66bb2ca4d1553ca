// SPDX-License-Identifier: Apache-2.0
#include "sim/plan/link_classes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "sim/base/check.hpp"
#include "topologies/summary.hpp"

namespace scapesim::plan {

namespace {

using topology::LinkKind;

/// Numbers keys 0, 1, ... in order of appearance; most keys equal the one before.
template <class Key>
class Numbering {
 public:
  std::uint32_t operator()(const Key& key) {
    if (!numbers_.empty() && key == last_key_) return last_;
    last_key_ = key;
    return last_ =
               numbers_.try_emplace(key, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }

 private:
  std::map<Key, std::uint32_t> numbers_;
  Key last_key_{};
  std::uint32_t last_ = 0;
};

}  // namespace

BytesPerSecond usable(LinkKind kind, BytesPerSecond capacity, const cost::NetworkTerms& terms) {
  if (is_inside(kind)) return terms.node_efficiency * capacity;
  const BytesPerSecond line = terms.efficiency * capacity;
  const bool capped = kind == LinkKind::nic && terms.transport_cap.si() > 0;
  return capped ? std::min(line, terms.transport_cap) : line;
}

LinkClasses::LinkClasses(const topology::Fabric& fabric)
    : fabric_(fabric), class_of_(static_cast<std::size_t>(fabric.links())) {
  Numbering<std::pair<LinkKind, BytesPerSecond>> number;
  for (std::uint32_t i = 0; i < class_of_.size(); ++i) {
    const topology::Link& link = fabric.link({i});
    class_of_[i] = number({link.kind, link.capacity});
  }
}

std::size_t LinkClasses::refine(const std::vector<std::uint64_t>& flows) {
  std::vector<Split>& splits = columns_.emplace_back();
  Numbering<std::pair<std::uint32_t, std::uint64_t>> number;
  for (std::size_t i = 0; i < class_of_.size(); ++i) {
    const Split split{class_of_[i], flows[i]};
    class_of_[i] = number({split.parent, split.flows});
    if (class_of_[i] == splits.size()) splits.push_back(split);
  }
  return columns_.size() - 1;
}

std::vector<LinkClasses::Class> LinkClasses::used() const {
  std::vector<Class> list;
  std::vector<bool> seen(columns_.empty() ? 0 : columns_.back().size());
  for (std::uint32_t i = 0; i < class_of_.size() && !seen.empty(); ++i) {
    if (seen[class_of_[i]]) continue;
    seen[class_of_[i]] = true;
    Class row{fabric_.link({i}), std::vector<std::uint64_t>(columns_.size())};
    bool carries = false;
    std::uint32_t at = class_of_[i];
    for (std::size_t column = columns_.size(); column-- > 0;) {
      row.flows[column] = columns_[column][at].flows;
      carries |= row.flows[column] > 0;
      at = columns_[column][at].parent;
    }
    if (carries && std::isfinite(row.link.capacity.si())) list.push_back(std::move(row));
  }
  return list;
}

std::vector<graph::Load> ResourceTable::loads(std::size_t column, const cost::NetworkTerms& terms,
                                              double lead) {
  std::vector<graph::Load> list;
  for (std::size_t i = 0; i < classes_.size(); ++i) {
    const double flows = static_cast<double>(classes_[i].flows[column]) / lead;
    if (flows == 0) continue;
    const LinkKind kind = classes_[i].link.kind;
    const double efficiency = is_inside(kind) ? terms.node_efficiency : terms.efficiency;
    SCAPESIM_CHECK(efficiency > 0, "efficiency {}", efficiency);
    list.push_back({resource(i, std::nullopt), flows / efficiency});
    if (kind == LinkKind::nic && terms.transport_cap.si() > 0)
      list.push_back({resource(i, terms.transport_cap), flows});
  }
  return list;
}

graph::ResourceId ResourceTable::resource(std::size_t link_class,
                                          std::optional<BytesPerSecond> transport) {
  const graph::ResourceId next{static_cast<std::uint32_t>(resources_.size())};
  const auto [entry, is_new] = ids_.try_emplace({link_class, transport}, next);
  if (is_new) {
    const topology::Link& link = classes_[link_class].link;
    const std::string_view name = transport ? "NIC transport" : name_of(link.kind);
    resources_.push_back({std::string(name), transport.value_or(link.capacity)});
  }
  return entry->second;
}

}  // namespace scapesim::plan
