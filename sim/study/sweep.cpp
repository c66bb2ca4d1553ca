// SPDX-License-Identifier: Apache-2.0
#include "sim/study/sweep.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <set>

#include "sim/base/file.hpp"
#include "sim/base/version.hpp"
#include "sim/predict/predict.hpp"

namespace scapesim::study {
namespace {

void append(const InputError& error, Problems& problems) {
  for (const Problem& p : error.problems()) problems.add(p.place, p.key, p.what, p.hint);
}

Grid grid_of(const SweepRequest& request) {
  Problems problems;
  std::vector<Axis> axes;
  int ordinal = 0;
  for (const std::string& text : request.axes)
    axes.push_back(parse_axis(text, request.axes_origin, ++ordinal, problems));
  if (axes.empty())
    problems.add({}, request.axes_origin, "no axis", "such as cluster.gpus=64:1024:*2");
  problems.raise();
  return {std::move(axes), request.combine};
}

std::vector<std::size_t> chosen_series(const std::vector<std::string>& names,
                                       const std::string& wanted) {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (wanted.empty() || names[i] == wanted) list.push_back(i);
  if (!list.empty()) return list;
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw InputError(Problem{{},
                           "--series",
                           fmt::format("\"{}\" is not a series of the scenario", wanted),
                           known[0].empty() ? "it has no variants" : did_you_mean(wanted, known)});
}

/// Without places: the same words wherever the scenario lies.
Refused refused(const std::vector<Problem>& problems) {
  Refused refused;
  for (const Problem& problem : problems) {
    if (!refused.reason.empty()) refused.reason += "; ";
    refused.reason += problem.key.empty() ? problem.what : problem.key + ": " + problem.what;
    if (refused.hint.empty()) refused.hint = problem.hint;
  }
  return refused;
}

/// Keys whose values name files: what is in them belongs to the study.
bool names_a_file(const std::string& key) {
  static const std::set<std::string> kKeys = {"model.preset", "model.huggingface", "cluster.preset",
                                              "cluster.graph", "calibration.profile"};
  return kKeys.contains(key);
}

}  // namespace

Sweep::Sweep(const SweepRequest& request)
    : scenarios_(request.scenario, request.set),
      folder_(request.scenario.parent_path()),
      grid_(grid_of(request)),
      series_(chosen_series(scenarios_.series(), request.series)),
      interval_draws_(request.interval_draws) {
  if (!request.filter.empty())
    filter_.emplace(request.filter, request.filter_origin, scenarios_.series());
  check_values(request.axes_origin);
  make_identity(request);
}

std::vector<scenario::Setting> Sweep::settings_at(std::uint64_t grid_point) const {
  const std::vector<std::size_t> which = grid_.at(grid_point);
  std::vector<scenario::Setting> settings;
  for (std::size_t i = 0; i < which.size(); ++i)
    settings.push_back(grid_.axes()[i].values[which[i]]);
  return settings;
}

const cost::Profile& Sweep::profile(const std::string& id) {
  const auto found = profiles_.find(id);
  if (found != profiles_.end()) return found->second;
  return profiles_.emplace(id, cost::load_profile(id, folder_)).first->second;
}

// What is wrong with the file, in the words of the first point of each series, and with every
// value of an axis by itself. Broken rules are of single points and no fault of the study.
void Sweep::check_values(const std::string& origin) {
  Problems problems;
  for (const Axis& axis : grid_.axes())
    for (const scenario::Setting& value : axis.values) check_value(axis, value, problems);
  for (const std::size_t series : series_) {
    const scenario::Draft draft = scenarios_.draft(series, settings_at(0));
    for (const Problem& p : draft.bad_values)
      if (p.place.file != origin) problems.add(p.place, p.key, p.what, p.hint);
    if (!draft.bad_values.empty()) break;  // series share most keys
    try {
      profile(draft.scenario.calibration.profile);
    } catch (const InputError& error) {
      append(error, problems);
      break;
    }
  }
  problems.raise();
}

void Sweep::check_value(const Axis& axis, const scenario::Setting& value, Problems& problems) {
  Problems found;
  scenarios_.check(value, found);
  try {
    if (found.empty() && axis.key == "calibration.profile")
      profile(std::get<std::string>(value.value));
  } catch (const InputError& error) {
    append(error, found);
  }
  const auto told = [&](const Problem& p) {
    return std::ranges::any_of(problems.list(), [&](const Problem& other) {
      return other.place.file == value.place.file && other.place.line == value.place.line &&
             other.key == p.key && other.what == p.what;
    });
  };
  for (const Problem& p : found.list())
    if (!told(p)) problems.add(value.place, p.key, p.what, p.hint);
}

void Sweep::make_identity(const SweepRequest& request) {
  std::string axes, files;
  for (const Axis& axis : grid_.axes()) {
    axes += fmt::format("{}{}={}", axes.empty() ? "" : " ", axis.key, fmt::join(axis.texts, ","));
    if (names_a_file(axis.key))
      for (const scenario::Setting& value : axis.values)
        for (const std::size_t series : series_)
          files += scenarios_.draft(series, {&value, 1}).scenario.hash;
  }
  for (const std::size_t series : series_) {
    const scenario::Draft draft = scenarios_.draft(series, {});
    files +=
        fmt::format("{} {} {}\n", draft.scenario.name, draft.scenario.series, draft.scenario.hash);
  }
  std::string profiles;
  for (const auto& [id, profile] : profiles_)
    profiles += fmt::format("{} {}\n", id, content_hash(cost::profile_json(profile)));
  identity_ = {{"program", fmt::format("scapesim {}", version())},
               {"scenario", content_hash(files)},
               {"series", request.series.empty() ? "all" : request.series},
               {"axes", grid_.combine() == Combine::zipped ? axes + " (zipped)" : axes},
               {"filter", request.filter.empty() ? "none" : request.filter},
               {"interval", request.interval_draws > 0 ? "on" : "off"},
               {"calibration", content_hash(profiles)}};
}

// What has bad values is kept: the point says so.
bool Sweep::keeps(const scenario::Draft& draft) const {
  return !draft.bad_values.empty() || !filter_ || filter_->keeps(draft.scenario);
}

bool Sweep::leaves_points() {
  if (!filter_) return true;
  for (std::uint64_t number = 0; number < size(); ++number)
    if (keeps(scenarios_.draft(series_[number / grid_.size()], settings_at(number % grid_.size()))))
      return true;
  return false;
}

std::optional<SweepPoint> Sweep::point(std::uint64_t number) {
  const std::size_t series = series_[number / grid_.size()];
  const std::vector<scenario::Setting> settings = settings_at(number % grid_.size());
  const scenario::Draft draft = scenarios_.draft(series, settings);
  const spec::Scenario& scenario = draft.scenario;
  if (!keeps(draft)) return std::nullopt;
  SweepPoint point{.number = number,
                   .scenario = scenario.name,
                   .series = scenario.series,
                   .axes = {},
                   .gpus = scenario.cluster.gpus,
                   .outcome = Refused{}};
  for (std::size_t i = 0; i < settings.size(); ++i)
    point.axes.emplace_back(grid_.axes()[i].key, settings[i].value);
  std::vector<Problem> wrong = draft.bad_values;
  wrong.insert(wrong.end(), draft.broken_rules.begin(), draft.broken_rules.end());
  if (!wrong.empty()) {
    point.outcome = refused(wrong);
    return point;
  }
  try {
    result::Outcome outcome =
        predict(scenario, profile(scenario.calibration.profile),
                {.driver = engine::Driver::standalone, .interval_draws = interval_draws_})
            .outcome;
    std::visit([&](auto& value) { point.outcome = std::move(value); }, outcome);
  } catch (const InputError& error) {
    point.outcome = refused(error.problems());
  }
  return point;
}

}  // namespace scapesim::study
