// SPDX-License-Identifier: Apache-2.0
#include "sim/predict/used_keys.hpp"

#include <algorithm>
#include <string_view>

namespace scapesim {

namespace {

bool matches(std::string_view pattern, std::string_view key) {
  if (pattern.ends_with('*')) return key.starts_with(pattern.substr(0, pattern.size() - 1));
  return key == pattern;
}

}  // namespace

std::vector<std::string> patterns_in(std::string_view list) {
  std::vector<std::string> patterns;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    std::string_view pattern = list.substr(0, end);
    pattern.remove_prefix(std::min(pattern.find_first_not_of(' '), pattern.size()));
    if (!pattern.empty()) patterns.emplace_back(pattern);
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return patterns;
}

ProfileKeys keys_named(const cost::Profile& profile, std::string_view list) {
  ProfileKeys keys;
  for (const std::string& pattern : patterns_in(list)) {
    for (const auto& [key, number] : profile.numbers)
      if (matches(pattern, key)) keys.insert(key);
    for (const auto& [key, curve] : profile.curves)
      if (matches(pattern, key)) keys.insert(key);
  }
  return keys;
}

ProfileKeys used_keys(const cost::Profile& profile, const graph::StepGraph& graph) {
  std::set<std::string_view> lists = {"memory.context_B, model.discrepancy"};
  for (const graph::RankClass& rank_class : graph.classes)
    for (const graph::Operation& operation : rank_class.operations)
      lists.insert(operation.calibration);
  ProfileKeys keys;
  for (const std::string_view list : lists) keys.merge(keys_named(profile, list));
  return keys;
}

cost::Provenance weakest(const cost::Profile& profile, const ProfileKeys& keys) {
  cost::Provenance worst = cost::Provenance::measured;
  for (const std::string& key : keys) {
    if (const auto number = profile.numbers.find(key); number != profile.numbers.end())
      worst = std::max(worst, number->second.origin.kind);
    if (const auto curve = profile.curves.find(key); curve != profile.curves.end())
      worst = std::max(worst, curve->second.origin.kind);
  }
  return worst;
}

}  // namespace scapesim
