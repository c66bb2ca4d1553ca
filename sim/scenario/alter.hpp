// SPDX-License-Identifier: Apache-2.0
// A sound scenario read back by its keys, and changed in one of them: what studies vary.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/scenario/value.hpp"
#include "sim/spec/spec.hpp"

namespace scapesim::scenario {

/// The value of one key that is simulated, as TOML.
struct KeyValue {
  std::string key;  ///< "training.micro_batch"
  std::string_view type;
  std::string range;
  std::string text;
};
std::vector<KeyValue> key_values(const spec::Scenario& scenario);

/// A key whose values are not the same in all of several scenarios; one text per scenario.
struct Difference {
  std::string key;
  std::vector<std::string> texts;
};
std::vector<Difference> differences(const std::vector<const spec::Scenario*>& scenarios);

/// The scenario with another value of one key, or the first rule that it breaks.
using Altered = std::variant<spec::Scenario, std::string>;
Altered altered(const spec::Scenario& scenario, std::string_view key, const Value& value);

/// Sets a key to a text as after --set; rules are not checked. Throws InputError for an unknown key
/// and a value it does not take.
void assign(spec::Scenario& scenario, std::string_view key, const std::string& text);

/// The scenario with a quantity ("50GB/s") or number multiplied. Not a key of that kind, and a
/// value of 0 or none, are reasons not to.
Altered multiplied(const spec::Scenario& scenario, std::string_view key, double factor);

/// The profile that a cluster preset (or the path of one) says describes it; empty: none.
std::string usual_profile(const std::string& cluster);

/// The number of a quantity's text and what follows it: {5e10, "B/s"}.
struct NumberText {
  double number = 0;
  std::string unit;
};
std::variant<NumberText, std::string> number_of(std::string_view toml_text);

}  // namespace scapesim::scenario
