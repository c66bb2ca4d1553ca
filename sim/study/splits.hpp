// SPDX-License-Identifier: Apache-2.0
// Ways to split a scenario's model over some GPUs: all that the rules allow.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/spec/spec.hpp"

namespace scapesim::study {

/// What a search varies. Data parallelism follows from the rest.
struct Split {
  int gpus = 1;
  int tp = 1;
  int pp = 1;
  int cp = 1;
  int ep = 1;
  bool sequence_parallel = false;
  bool tensor_overlap = true;
  std::int64_t micro_batch = 1;
  spec::Recompute recompute = spec::Recompute::none;
  std::optional<int> recompute_layers = {};  ///< none: all
  spec::Schedule schedule = spec::Schedule::one_f_one_b;
  int virtual_stages = 1;
  spec::Sharding sharding = spec::Sharding::none;
  auto operator<=>(const Split&) const = default;
};

/// A key that is varied, and its value as `--set` takes it. cluster.gpus comes first.
using KeyValue = std::pair<std::string_view, std::string>;
std::vector<KeyValue> keys_of(const Split& split);

Split split_of(const spec::Scenario& scenario);

/// The scenario so split. Layers that do not divide into stages leave the first and the last stages
/// one short [M421]; parallelism.stage_layers stays where it fits.
spec::Scenario with_split(const spec::Scenario& scenario, const Split& split);

/// Keys that keep the scenario's value, "parallelism.tp".
using Held = std::set<std::string, std::less<>>;

/// Splits with the model's shares in common: these vary first.
struct Frame {
  int gpus = 1, tp = 1, pp = 1, cp = 1, ep = 1;
  bool sequence_parallel = false;
  bool tensor_overlap = true;
};
/// Every frame of divisors of `gpus`, legal or not.
std::vector<Frame> frames(const spec::Scenario& scenario, int gpus, const Held& held);

/// Every split of a frame, legal or not, those that differ in schedule and sharding only side by
/// side; none where the batch does not divide over the frame's copies of the model.
std::vector<Split> splits(const spec::Scenario& scenario, const Frame& frame, const Held& held);

}  // namespace scapesim::study
