// SPDX-License-Identifier: Apache-2.0
#include "reports/explanation.hpp"

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

}  // namespace

ProfileKeys all_keys(const cost::Profile& profile) {
  ProfileKeys keys;
  for (const auto& [key, number] : profile.numbers) keys.insert(key);
  for (const auto& [key, curve] : profile.curves) keys.insert(key);
  return keys;
}

std::vector<CalibrationRow> calibration_rows(const cost::Profile& profile,
                                             const ProfileKeys& keys) {
  std::vector<CalibrationRow> rows;
  for (const std::string& key : keys) {
    if (const auto number = profile.numbers.find(key); number != profile.numbers.end())
      rows.push_back(row_of(key, number->second));
    else
      rows.push_back(row_of(key, profile.curve(key)));
  }
  return rows;
}

Explanation explain_step_time(const result::Outcome& outcome, const cost::Profile& profile) {
  Explanation explanation;
  const auto* run = std::get_if<result::Run>(&outcome);
  if (run == nullptr) return explanation;
  explanation.terms = run->terms;
  ProfileKeys keys;
  for (const result::Term& term : run->terms) keys.merge(keys_named(profile, term.calibration));
  explanation.calibration = calibration_rows(profile, keys);
  return explanation;
}

}  // namespace scapesim::reports
