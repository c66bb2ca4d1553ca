// SPDX-License-Identifier: Apache-2.0
#include "sim/study/filter_nodes.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "sim/base/error.hpp"

namespace scapesim::study::detail {
namespace {

using Type = FilterNode::Type;
using S = const spec::Scenario&;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

struct NumberType {
  std::string_view name;
  Unit unit;
};
constexpr NumberType kNumberTypes[] = {
    {"integer", Unit::none},    {"number", Unit::none},
    {"share", Unit::none},      {"bytes", Unit::bytes},
    {"bytes/s", Unit::rate},    {"FLOP/s", Unit::flops},
    {"seconds", Unit::seconds}, {"watts", Unit::watts},
    {"dollars", Unit::dollars}, {"dollars per hour", Unit::hourly}};

std::string unquoted(std::string text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    return text.substr(1, text.size() - 2);
  return text;
}

double number_of(const std::string& text) {
  const std::string word = unquoted(text);
  double number = kNone;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc()) return kNone;
  if (end == word.data() + word.size()) return number;
  const auto measured = quantity(word);
  return measured ? measured->value : kNone;
}

/// "fp32, fp16": the words of an enumeration.
std::vector<std::string> words_in(std::string_view range) {
  std::vector<std::string> words;
  while (!range.empty()) {
    const std::size_t end = std::min(range.find(", "), range.size());
    words.emplace_back(range.substr(0, end));
    range.remove_prefix(std::min(end + 2, range.size()));
  }
  return words;
}

/// A node of two others; constant where both are.
template <class Combine>
Node joined(Type type, Unit unit, const Node& left, const Node& right, Combine combine) {
  FilterNode node{.type = type, .unit = unit, .column = left->column, .value = {}};
  node.value = [left, right, combine](S s) -> FilterValue {
    return combine(left->value(s), right->value(s));
  };
  if (left->constant && right->constant) node.constant = combine(*left->constant, *right->constant);
  return std::make_shared<FilterNode>(std::move(node));
}

template <class Test>
Node ordered(const Node& left, const Node& right, Test test) {
  return joined(Type::flag, Unit::none, left, right,
                [test](const FilterValue& a, const FilterValue& b) -> FilterValue {
                  return test(std::get<double>(a), std::get<double>(b));
                });
}

template <class Combine>
Node computed(Unit unit, const Node& left, const Node& right, Combine combine) {
  return joined(Type::number, unit, left, right,
                [combine](const FilterValue& a, const FilterValue& b) -> FilterValue {
                  return combine(std::get<double>(a), std::get<double>(b));
                });
}

}  // namespace

std::string_view words_of(Type type) {
  switch (type) {
    case Type::flag:
      return "a condition";
    case Type::number:
      return "a number";
    case Type::text:
      return "a word";
  }
  return "";
}

Node constant_node(Type type, Unit unit, FilterValue value, int column) {
  return std::make_shared<FilterNode>(FilterNode{.type = type,
                                                 .unit = unit,
                                                 .column = column,
                                                 .value = [value](S) { return value; },
                                                 .constant = value});
}

Node key_node(const scenario::Key& key, int column) {
  const auto text = key.field.text;
  FilterNode node{.column = column, .value = {}};
  node.name = scenario::key_text(key.section, key.name);
  const auto number = std::ranges::find(kNumberTypes, key.field.type, &NumberType::name);
  if (key.field.type == "flag") {
    node.type = Type::flag;
    node.value = [text](S s) -> FilterValue { return text(s) == "true"; };
  } else if (number != std::end(kNumberTypes)) {
    node.type = Type::number;
    node.unit = number->unit;
    node.value = [text](S s) -> FilterValue { return number_of(text(s)); };
  } else {
    node.type = Type::text;
    node.value = [text](S s) -> FilterValue { return unquoted(text(s)); };
    if (key.field.type == "one of") node.words = words_in(key.field.range);
  }
  return std::make_shared<FilterNode>(std::move(node));
}

std::optional<Node> special_node(std::string_view name, int column,
                                 const std::vector<std::string>& series) {
  const auto node = [&](Type type, auto value, std::vector<std::string> words = {}) -> Node {
    return std::make_shared<FilterNode>(FilterNode{.type = type,
                                                   .column = column,
                                                   .value = value,
                                                   .words = std::move(words),
                                                   .name = std::string(name)});
  };
  if (name == "dp")
    return node(Type::number,
                [](S s) -> FilterValue { return double{1} * spec::data_parallel_size(s); });
  if (name == "micro_batches")
    return node(Type::number, [](S s) -> FilterValue {
      if (spec::data_parallel_size(s) < 1) return 0.0;
      return static_cast<double>(spec::micro_batches(s));
    });
  if (name == "series")
    return node(
        Type::text, [](S s) -> FilterValue { return s.series; }, series);
  if (name == "model.preset" || name == "model.huggingface")
    return node(Type::text, [](S s) -> FilterValue { return s.model.name; });
  if (name == "cluster.preset")
    return node(Type::text, [](S s) -> FilterValue { return s.cluster.name; });
  if (name == "name") return node(Type::text, [](S s) -> FilterValue { return s.name; });
  return std::nullopt;
}

Node negation(const Node& inner, int column) {
  return std::make_shared<FilterNode>(
      FilterNode{.type = Type::flag, .column = column, .value = [inner](S s) -> FilterValue {
                   return !std::get<bool>(inner->value(s));
                 }});
}

Node conjunction(std::string_view word, const Node& left, const Node& right) {
  const bool both = word == "and" || word == "&&";
  return joined(Type::flag, Unit::none, left, right,
                [both](const FilterValue& a, const FilterValue& b) -> FilterValue {
                  const bool x = std::get<bool>(a), y = std::get<bool>(b);
                  return both ? x && y : x || y;
                });
}

Node comparison(std::string_view sign, const Node& left, const Node& right) {
  const auto same = [&](bool wanted) {
    return joined(Type::flag, Unit::none, left, right,
                  [wanted](const FilterValue& a, const FilterValue& b) -> FilterValue {
                    return (a == b) == wanted;
                  });
  };
  if (sign == "==") return same(true);
  if (sign == "!=") return same(false);
  if (sign == "<") return ordered(left, right, std::less<>());
  if (sign == "<=") return ordered(left, right, std::less_equal<>());
  if (sign == ">") return ordered(left, right, std::greater<>());
  return ordered(left, right, std::greater_equal<>());
}

Node arithmetic(char sign, Unit unit, const Node& left, const Node& right) {
  switch (sign) {
    case '+':
      return computed(unit, left, right, std::plus<>());
    case '-':
      return computed(unit, left, right, std::minus<>());
    case '*':
      return computed(unit, left, right, std::multiplies<>());
    case '/':
      return computed(unit, left, right, std::divides<>());
    case '%':
      return computed(unit, left, right, [](double a, double b) { return std::fmod(a, b); });
    default:
      throw InternalError("sign of arithmetic");
  }
}

}  // namespace scapesim::study::detail
