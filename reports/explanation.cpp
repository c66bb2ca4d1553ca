// SPDX-License-Identifier: Apache-2.0
#include "reports/explanation.hpp"

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
  std::set<std::string> keys;
  for (const result::Term& term : run->terms)
    for (std::string& key : keys_in(term.calibration)) keys.insert(std::move(key));
  for (const std::string& key : keys) {
    if (const auto number = profile.numbers.find(key); number != profile.numbers.end()) {
      CalibrationRow row = row_of(key, "number", number->second);
      row.value = number->second.value;
      row.low = number->second.low;
      row.high = number->second.high;
      explanation.calibration.push_back(row);
    } else if (const auto curve = profile.curves.find(key); curve != profile.curves.end()) {
      CalibrationRow row = row_of(key, "curve", curve->second);
      row.low = curve->second.low_factor;
      row.high = curve->second.high_factor;
      explanation.calibration.push_back(row);
    }
  }
  return explanation;
}

}  // namespace scapesim::reports
