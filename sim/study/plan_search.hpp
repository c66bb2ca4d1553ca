// SPDX-License-Identifier: Apache-2.0
// Plans over the splits that a search finds: at every number of GPUs the fastest legal one that
// fits.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sim/study/capacity.hpp"
#include "sim/study/search.hpp"

namespace scapesim::study {

struct PlanSearch {
  std::vector<int> gpus = {};  ///< counts to search; empty: powers of two, and the goal's most
  Held held = {};              ///< keys that stay as the scenario, or a choice, has them
  int jobs = 1;                ///< threads; the result does not depend on them
  std::function<void()> searched = [] {};  ///< called after each search
};

/// What is searched one by one: a series under one combination of the choices, on one number of
/// GPUs. Keys of the choices are held. Throws InputError where no count is left.
std::vector<Series> to_search(std::span<const Series> series, std::span<const Choice> choices,
                              const Goal& goal, const PlanSearch& how);

struct SearchedPlans {
  std::vector<Series> best = {};        ///< where a split fits
  std::vector<RunPlan> unfit = {};      ///< where legal ones do not
  std::vector<std::string> notes = {};  ///< where none is legal
  SplitCounts counts = {};
};

/// [M460] The fastest split of each: at a number of GPUs it is the cheapest and the one with the
/// least energy too. Held are the keys of `how` and of the choices.
SearchedPlans search_plans(std::span<const Series> list, std::span<const Choice> choices,
                           const PlanSearch& how);

}  // namespace scapesim::study
