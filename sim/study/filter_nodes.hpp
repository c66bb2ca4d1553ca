// SPDX-License-Identifier: Apache-2.0
// What a filter computes: a tree of values, each of a type and unit that is known before any
// scenario is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/scenario/keys.hpp"
#include "sim/study/filter_words.hpp"

namespace scapesim::study::detail {

using FilterValue = std::variant<bool, double, std::string>;

struct FilterNode {
  enum class Type { flag, number, text };
  Type type = Type::flag;
  Unit unit = Unit::none;
  int column = 0;
  std::function<FilterValue(const spec::Scenario&)> value;
  std::optional<FilterValue> constant = {};  ///< where no scenario changes it
  std::vector<std::string> words = {};       ///< all that a text can be; empty: anything
  std::string name = {};                     ///< of a key
};
using Node = std::shared_ptr<const FilterNode>;

/// "a condition", "a number", "a word".
std::string_view words_of(FilterNode::Type type);

Node constant_node(FilterNode::Type type, Unit unit, FilterValue value, int column);
Node key_node(const scenario::Key& key, int column);
/// Names that are no row of the key table: what follows from keys, and those a table row has no
/// simulated text for. `series` are all there are; empty: not known.
std::optional<Node> special_node(std::string_view name, int column,
                                 const std::vector<std::string>& series);

Node negation(const Node& inner, int column);
/// "and", "or" (and && and ||) of conditions.
Node conjunction(std::string_view word, const Node& left, const Node& right);
/// == != < <= > >= of sides that the parser found to fit.
Node comparison(std::string_view sign, const Node& left, const Node& right);
/// + - * / % of numbers; `unit` is that of the result.
Node arithmetic(char sign, Unit unit, const Node& left, const Node& right);

}  // namespace scapesim::study::detail
