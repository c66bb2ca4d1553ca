// SPDX-License-Identifier: Apache-2.0
#include "sim/study/scale.hpp"

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/scenario/load.hpp"

namespace scapesim::study {
namespace {

/// Series share most of their keys, so that the same rule breaks for each of them.
void add_once(std::vector<Problem>& problems, const Problem& problem) {
  const auto same = [&](const Problem& p) {
    return p.key == problem.key && p.what == problem.what;
  };
  if (std::ranges::none_of(problems, same)) problems.push_back(problem);
}

/// The scenarios of one series on every count; broken rules are added to `problems`.
std::vector<spec::Scenario> on_counts(const spec::Scenario& scenario, std::span<const int> gpus,
                                      Scaling scaling, std::vector<Problem>& problems) {
  std::vector<spec::Scenario> list;
  for (const int count : gpus) {
    try {
      list.push_back(scenario::with_gpus(scenario, count, scaling == Scaling::weak));
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems()) add_once(problems, problem);
    }
  }
  return list;
}

}  // namespace

std::vector<Series> with_profiles(std::vector<spec::Scenario> scenarios,
                                  const std::filesystem::path& folder) {
  std::vector<Series> list;
  for (spec::Scenario& scenario : scenarios) {
    const auto same = [&](const Series& other) {
      return other.scenario.calibration.profile == scenario.calibration.profile;
    };
    const auto found = std::ranges::find_if(list, same);
    cost::Profile profile = found != list.end()
                                ? found->profile
                                : cost::load_profile(scenario.calibration.profile, folder);
    profile.others.clear();
    for (const spec::OtherGpus& other : scenario.cluster.other_gpus)
      profile.others.push_back(cost::load_profile(other.profile, folder));
    list.push_back({std::move(scenario), std::move(profile)});
  }
  return list;
}

// [M76] Strong scaling: efficiency(P) = T(P0) P0 / (T(P) P); weak scaling: T(P0) / T(P). P0 is the
// smallest count of the call that fits.
void set_efficiency(std::span<Point> points, Scaling scaling) {
  const auto first =
      std::ranges::find_if(points, [](const Point& p) { return run_of(p) != nullptr; });
  if (first == points.end()) return;
  const Seconds base_time = run_of(*first)->step_time;
  const double base_gpus = first->gpus;
  for (Point& point : points)
    if (auto* run = std::get_if<result::Run>(&point.outcome)) {
      const double work = scaling == Scaling::strong ? base_gpus / point.gpus : 1;
      run->efficiency = base_time / run->step_time * work;
    }
}

// [M76]
std::vector<std::optional<double>> measured_efficiencies(const Scale& scale,
                                                         std::span<const Comparison> against) {
  const auto is_step_time = [](const Comparison& c) { return c.measured.metric == "step_time_s"; };
  std::vector<std::optional<double>> list;
  for (const Comparison& one : against) {
    const auto first = std::ranges::find_if(scale.points, [&](const Point& p) {
      return run_of(p) != nullptr && belongs(one.measured, p);
    });
    const auto base = std::ranges::find_if(against, [&](const Comparison& c) {
      return is_step_time(c) && c.measured.series == one.measured.series &&
             first != scale.points.end() && c.measured.gpus == first->gpus;
    });
    list.emplace_back();
    if (!is_step_time(one) || base == against.end()) continue;
    const double base_gpus = base->measured.gpus;
    const double work = scale.scaling == Scaling::strong ? base_gpus / one.measured.gpus : 1;
    list.back() = base->measured.value / one.measured.value * work;
  }
  return list;
}

Scale scale(std::span<const Series> series, std::vector<int> gpus, Scaling scaling,
            const PredictOptions& options) {
  std::ranges::sort(gpus);
  gpus.erase(std::ranges::unique(gpus).begin(), gpus.end());
  std::vector<std::vector<spec::Scenario>> scenarios;
  std::vector<Problem> problems;
  for (const Series& s : series)
    scenarios.push_back(on_counts(s.scenario, gpus, scaling, problems));
  if (!problems.empty()) throw InputError(std::move(problems));
  Scale result{.scaling = scaling, .points = {}};
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::size_t begin = result.points.size();
    for (const spec::Scenario& scenario : scenarios[i])
      result.points.push_back({scenario.name, scenario.series, scenario.cluster.gpus,
                               predict(scenario, series[i].profile, options).outcome});
    set_efficiency(std::span(result.points).subspan(begin), scaling);
  }
  return result;
}

}  // namespace scapesim::study
