// SPDX-License-Identifier: Apache-2.0
// What a prediction depends on as numbers that can be made larger or smaller: hardware in the
// scenario, numbers and curves of the profile, and whole resources made faster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/named.hpp"
#include "sim/cost/profile.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::study {

/// Scenario and calibration: all that predict() takes.
struct Inputs {
  spec::Scenario scenario;
  cost::Profile profile;
};

enum class ParameterKind {
  resource,  ///< all that says how fast one thing is; a larger factor is faster
  scenario,  ///< a quantity or number of the scenario
  profile,   ///< a number of the profile
  curve      ///< a curve of the profile, all its points
};
inline std::span<const Named<ParameterKind>> names_of(ParameterKind*) {
  using enum ParameterKind;
  static constexpr Named<ParameterKind> kRows[] = {
      {resource, "resource"}, {scenario, "scenario"}, {profile, "profile"}, {curve, "curve"}};
  return kRows;
}

struct Parameter {
  std::string name = {};  ///< "cluster.nic_bandwidth", "hbm.bandwidth_Bps", "links between nodes"
  ParameterKind kind = ParameterKind::resource;
  std::optional<double> value = {};  ///< of a number, in `unit`
  std::string unit = {};             ///< empty: a pure number, or the profile key's own suffix
};

/// One resource of a machine. [M367] Together they hold every rate and every latency: all of them
/// twice as fast make the step half as long.
struct Machine {
  std::string_view name = {};
  std::string_view help = {};
  void (*faster)(Inputs& inputs, double factor);
};
std::span<const Machine> machines();

/// Resources, quantities of the cluster and the recipe, and the numbers and curves of the profile.
std::vector<Parameter> parameters_of(const Inputs& inputs);

/// The inputs with one parameter multiplied; none where the scenario's rules do not allow it.
std::optional<Inputs> multiplied(const Inputs& inputs, const Parameter& parameter, double factor);

}  // namespace scapesim::study
