// SPDX-License-Identifier: Apache-2.0
// Predictions side by side: every term of a step and of its memory, so that the differences of the
// terms sum to the difference of the whole.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/named.hpp"
#include "sim/scenario/alter.hpp"
#include "sim/study/point.hpp"
#include "sim/study/scale.hpp"

namespace scapesim::study {

/// What a time is for: one step, or a million tokens, where steps are of different size.
enum class Per { step, million_tokens };
inline std::span<const Named<Per>> names_of(Per*) {
  static constexpr Named<Per> kRows[] = {{Per::step, "step"},
                                         {Per::million_tokens, "million-tokens"}};
  return kRows;
}

/// How finely a step is divided: into its breakdown, every collective apart, or into the terms of
/// --explain.
enum class Detail { breakdown, terms };

/// A term in every column; none where the column has no such number.
struct ComparedTerm {
  std::string name = {};
  std::string kind = {};  ///< a part of the breakdown ("compute"); "memory"
  std::vector<std::optional<double>> values = {};
};

/// The difference to the first column, with its interval: both under the same draws of the profile.
struct StepDifference {
  std::optional<Seconds> difference = {};
  std::optional<Seconds> low = {};
  std::optional<Seconds> high = {};
};

struct SideBySide {
  Per per = Per::step;
  std::vector<Point> points = {};  ///< the columns, the first is what others are compared with
  std::vector<std::string> labels = {};            ///< a name of each, different ones
  std::vector<std::optional<double>> time = {};    ///< seconds
  std::vector<StepDifference> differences = {};    ///< one per column, the first is zero
  std::vector<ComparedTerm> terms = {};            ///< seconds; sum to the time
  std::vector<std::optional<double>> memory = {};  ///< bytes, context included
  std::vector<ComparedTerm> memory_terms = {};     ///< bytes; sum to the memory
  std::vector<scenario::Difference> changed = {};
};

struct SideBySideOptions {
  Per per = Per::step;
  Detail detail = Detail::breakdown;
};

/// Predicts every series and lays the results side by side.
SideBySide side_by_side(std::span<const Series> series, const SideBySideOptions& options,
                        const PredictOptions& how);

/// The parts of one step, [M365]; `kind` is part of the breakdown.
struct StepPart {
  std::string name = {};
  std::string kind = {};
  Seconds time = {};
};
std::vector<StepPart> parts_of(const result::Run& run);

}  // namespace scapesim::study
