// SPDX-License-Identifier: Apache-2.0
#include "reports/explanation.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace scapesim::reports {
namespace {

template <class Entry>
CalibrationRow row_of(const std::string& key, const char* kind, const Entry& entry) {
  return {.key = key,
          .kind = kind,
          .provenance = std::string(name_of(entry.origin.kind)),
          .source = entry.origin.source};
}

CalibrationRow row_of(const std::string& key, const cost::Number& number) {
  CalibrationRow row = row_of(key, "number", number);
  row.value = number.value, row.low = number.low, row.high = number.high;
  return row;
}

CalibrationRow row_of(const std::string& key, const cost::Curve& curve) {
  CalibrationRow row = row_of(key, "curve", curve);
  row.low = curve.low_factor, row.high = curve.high_factor;
  return row;
}

/// "gemm.*" names every key that begins with "gemm.".
bool names(const std::string& pattern, const std::string& key) {
  if (!pattern.ends_with('*')) return pattern == key;
  return key.starts_with(pattern.substr(0, pattern.size() - 1));
}

template <class Entries>
void add_rows(const std::set<std::string>& patterns, const Entries& entries,
              std::vector<CalibrationRow>& rows) {
  for (const auto& [key, entry] : entries)
    if (std::ranges::any_of(patterns, [&](const std::string& p) { return names(p, key); }))
      rows.push_back(row_of(key, entry));
}

}  // namespace

std::vector<std::string> keys_in(const std::string& calibration) {
  std::vector<std::string> keys;
  std::string key;
  for (const char c : calibration + ",") {
    if (c == ' ') continue;
    if (c != ',')
      key += c;
    else if (!key.empty())
      keys.push_back(std::exchange(key, {}));
  }
  return keys;
}

Explanation explain_step_time(const result::Outcome& outcome, const cost::Profile& profile) {
  Explanation explanation;
  const auto* run = std::get_if<result::Run>(&outcome);
  if (run == nullptr) return explanation;
  explanation.terms = run->terms;
  std::set<std::string> patterns;
  for (const result::Term& term : run->terms)
    for (std::string& key : keys_in(term.calibration)) patterns.insert(std::move(key));
  add_rows(patterns, profile.numbers, explanation.calibration);
  add_rows(patterns, profile.curves, explanation.calibration);
  std::ranges::sort(explanation.calibration, {}, &CalibrationRow::key);
  return explanation;
}

}  // namespace scapesim::reports
