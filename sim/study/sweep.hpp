// SPDX-License-Identifier: Apache-2.0
// One scenario over the points of some axes: each point is predicted by itself, in any order and
// process, and depends on nothing but its number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/cost/profile.hpp"
#include "sim/result/result.hpp"
#include "sim/scenario/template.hpp"
#include "sim/study/axis.hpp"
#include "sim/study/filter.hpp"
#include "sim/study/journal.hpp"

namespace scapesim::study {

/// What is asked for: the options of `sweep`, or the [study] table of a file.
struct SweepRequest {
  std::filesystem::path scenario;
  std::vector<std::string> set;
  std::string series;             ///< empty: all
  std::vector<std::string> axes;  ///< as parse_axis reads them
  std::string axes_origin = "--axis";
  Combine combine = Combine::cartesian;
  std::string filter;  ///< empty: all points
  std::string filter_origin = "--filter";
  int interval_draws = 0;
};

/// A point whose keys go against each other: indivisible sizes, more GPUs than there are.
struct Refused {
  std::string reason;
  std::string hint;
};

struct SweepPoint {
  std::uint64_t number = 0;  ///< series by series, in each the grid's order, filtered ones counted
  std::string scenario;
  std::string series;  ///< empty without variants
  std::vector<std::pair<std::string, scenario::Value>> axes;
  int gpus = 0;
  std::variant<result::Run, result::Infeasible, Refused> outcome;
};

class Sweep {
 public:
  /// Reads the scenario, every profile and every value of every axis. Throws InputError with every
  /// problem.
  explicit Sweep(const SweepRequest& request);

  /// Points, those that the filter leaves out counted.
  std::uint64_t size() const { return series_.size() * grid_.size(); }

  /// Whether the filter, if there is any, keeps a point. Looks no further than the first kept one.
  bool leaves_points();

  /// Predicts a point; none when the filter leaves it out.
  std::optional<SweepPoint> point(std::uint64_t number);

  /// Series, axes, filter, and the contents of the files that they name.
  const Identity& identity() const { return identity_; }
  const Grid& grid() const { return grid_; }

 private:
  std::vector<scenario::Setting> settings_at(std::uint64_t grid_point) const;
  bool keeps(const scenario::Draft& draft) const;
  const cost::Profile& profile(const std::string& id);
  void check_values(const std::string& origin);
  void check_value(const Axis& axis, const scenario::Setting& value, Problems& problems);
  void make_identity(const SweepRequest& request);

  scenario::ScenarioTemplate scenarios_;
  std::filesystem::path folder_;
  Grid grid_;
  std::optional<Filter> filter_;
  std::vector<std::size_t> series_;  ///< positions among those of the file
  int interval_draws_ = 0;
  std::map<std::string, cost::Profile> profiles_;
  Identity identity_;
};

}  // namespace scapesim::study
