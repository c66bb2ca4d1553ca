// SPDX-License-Identifier: Apache-2.0
// A parser of one function per level of precedence; types and units are checked as it reads.
#include "sim/study/filter.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"
#include "sim/study/filter_nodes.hpp"

namespace scapesim::study {
namespace {

using detail::Failure;
using detail::FilterNode;
using detail::Node;
using detail::Token;
using detail::Unit;
using Type = FilterNode::Type;

class Parser {
 public:
  Parser(std::vector<Token> tokens, const Failure& failure, const std::vector<std::string>& series)
      : tokens_(std::move(tokens)), failure_(failure), series_(series) {}

  Node parse() {
    if (peek().kind == Token::Kind::end) failure_.at(1, "no condition");
    Node node = either();
    if (peek().kind != Token::Kind::end)
      failure_.at(peek().column, fmt::format("unexpected \"{}\"", shown(peek())));
    need(node, Type::flag, "compare it, such as tp <= 8");
    return node;
  }

 private:
  const Token& peek() const { return tokens_[position_]; }
  static std::string shown(const Token& token) {
    return token.kind == Token::Kind::number ? fmt::format("{}", token.number.value) : token.text;
  }

  /// The next word when it is one of these signs or names.
  std::optional<Token> take(std::initializer_list<std::string_view> words) {
    const Token& token = peek();
    const bool word = token.kind == Token::Kind::sign || token.kind == Token::Kind::name;
    if (!word || std::ranges::find(words, token.text) == words.end()) return std::nullopt;
    ++position_;
    return token;
  }

  void need(const Node& node, Type type, std::string hint = {}) const {
    if (node->type != type)
      failure_.at(node->column,
                  fmt::format("{} where {} is needed", words_of(node->type), words_of(type)),
                  std::move(hint));
  }

  Node either() {
    Node left = both();
    while (const auto word = take({"||", "or"})) left = of_conditions(*word, left, both());
    return left;
  }

  Node both() {
    Node left = negated();
    while (const auto word = take({"&&", "and"})) left = of_conditions(*word, left, negated());
    return left;
  }

  Node of_conditions(const Token& word, const Node& left, const Node& right) const {
    need(left, Type::flag);
    need(right, Type::flag);
    return detail::conjunction(word.text, left, right);
  }

  Node negated() {
    const auto sign = take({"!", "not"});
    if (!sign) return comparison();
    const Deeper deeper(*this);
    const Node inner = negated();
    need(inner, Type::flag);
    return detail::negation(inner, sign->column);
  }

  Node comparison() {
    const Node left = sum();
    const auto sign = take({"==", "!=", "<", "<=", ">", ">="});
    if (!sign) return left;
    const Node right = sum();
    if (take({"==", "!=", "<", "<=", ">", ">="}))
      failure_.at(tokens_[position_ - 1].column, "a second comparison in a row",
                  "join them with and");
    const bool equality = sign->text == "==" || sign->text == "!=";
    if (equality)
      need(right, left->type);
    else
      need(left, Type::number), need(right, Type::number);
    if (left->type == Type::number) need_same_unit("compared with", left, right);
    need_known(left, right);
    need_known(right, left);
    return detail::comparison(sign->text, left, right);
  }

  /// Nothing and 0 have any unit.
  static bool is_zero(const Node& node) {
    return node->constant && std::get<double>(*node->constant) == 0;
  }
  void need_same_unit(std::string_view verb, const Node& left, const Node& right) const {
    if (left->unit == right->unit || is_zero(left) || is_zero(right)) return;
    if (left->unit == Unit::any || right->unit == Unit::any) return;
    const Node& wrong = right->unit == Unit::none || left->constant == std::nullopt ? right : left;
    const Node& other = wrong == right ? left : right;
    failure_.at(wrong->column,
                fmt::format("{} {} {}", words_of(wrong->unit), verb,
                            other->name.empty() ? words_of(other->unit) : other->name),
                fmt::format("{} needs {}", other->name.empty() ? "the other side" : other->name,
                            words_of(other->unit)));
  }

  /// A text that the key on the other side can never be.
  void need_known(const Node& text, const Node& key) const {
    if (text->type != Type::text || !text->constant || key->words.empty()) return;
    const std::string& word = std::get<std::string>(*text->constant);
    const std::vector<std::string_view> known(key->words.begin(), key->words.end());
    if (std::ranges::find(known, word) == known.end())
      failure_.at(text->column, fmt::format("\"{}\" is never {}", word, key->name),
                  did_you_mean(word, known));
  }

  Node sum() {
    Node left = product();
    while (const auto sign = take({"+", "-"})) left = computed(*sign, left, product());
    return left;
  }

  Node product() {
    Node left = factor();
    while (const auto sign = take({"*", "/", "%"})) left = computed(*sign, left, factor());
    return left;
  }

  Node computed(const Token& sign, const Node& left, const Node& right) const {
    need(left, Type::number);
    need(right, Type::number);
    const char c = sign.text[0];
    if ((c == '/' || c == '%') && is_zero(right))
      failure_.at(right->column, c == '/' ? "a division by 0" : "a remainder by 0");
    return detail::arithmetic(c, unit_of(c, left, right), left, right);
  }

  Unit unit_of(char sign, const Node& left, const Node& right) const {
    const Unit a = left->unit, b = right->unit;
    if (sign == '*') return a == Unit::none ? b : b == Unit::none ? a : Unit::any;
    if (sign == '/') return b == Unit::none ? a : a == b ? Unit::none : Unit::any;
    need_same_unit(sign == '%'   ? "divided by"
                   : sign == '+' ? "added to"
                                 : "taken from",
                   left, right);
    return is_zero(left) ? b : a;
  }

  Node factor() {
    if (const auto sign = take({"-"})) {
      const Deeper deeper(*this);
      const Node zero = detail::constant_node(Type::number, Unit::none, 0.0, sign->column);
      return computed(*sign, zero, factor());
    }
    if (const auto open = take({"("})) {
      const Deeper deeper(*this);
      const Node inner = either();
      if (!take({")"})) failure_.at(open->column, "a parenthesis that is not closed");
      return inner;
    }
    const Token token = peek();
    if (token.kind == Token::Kind::end) failure_.at(token.column, "nothing after the last word");
    ++position_;
    if (token.kind == Token::Kind::number)
      return detail::constant_node(Type::number, token.number.unit, token.number.value,
                                   token.column);
    if (token.kind == Token::Kind::text)
      return detail::constant_node(Type::text, Unit::none, token.text, token.column);
    if (token.kind == Token::Kind::name) return named(token);
    failure_.at(token.column, fmt::format("unexpected \"{}\"", token.text));
  }

  Node named(const Token& token) const {
    if (token.text == "true" || token.text == "false")
      return detail::constant_node(Type::flag, Unit::none, token.text == "true", token.column);
    if (const auto node = detail::special_node(token.text, token.column, series_)) return *node;
    std::vector<const scenario::Key*> found;
    std::vector<std::string> full, known = {"dp", "micro_batches", "series"};
    for (const scenario::Key& key : scenario::keys()) {
      const std::string name = scenario::key_text(key.section, key.name);
      if (token.text == name) return whole_key(key, token);
      known.push_back(name);
      if (key.name != token.text) {
        known.emplace_back(key.name);
        continue;
      }
      found.push_back(&key);
      full.push_back(name);
    }
    if (found.size() == 1) return whole_key(*found[0], token);
    if (found.size() > 1)
      failure_.at(token.column, fmt::format("\"{}\" is a key of several sections", token.text),
                  fmt::format("write {}", fmt::join(full, " or ")));
    const std::vector<std::string_view> views(known.begin(), known.end());
    failure_.at(token.column, fmt::format("\"{}\" is no key", token.text),
                hint_for(token.text, views));
  }

  static std::string hint_for(const std::string& word, std::span<const std::string_view> known) {
    const std::string near = did_you_mean(word, known);
    return near.empty() ? "words stand in quotes; keys: scapesim list keys" : near;
  }

  Node whole_key(const scenario::Key& key, const Token& token) const {
    if (!key.field.text)
      failure_.at(token.column, fmt::format("\"{}\" cannot be asked", token.text));
    return detail::key_node(key, token.column);
  }

  /// Bounds the depth of the tree, so that no text exhausts the stack.
  class Deeper {
   public:
    explicit Deeper(Parser& parser) : parser_(parser) {
      constexpr int kDeepest = 100;
      if (++parser_.depth_ > kDeepest)
        parser_.failure_.at(parser_.peek().column, "too many parentheses");
    }
    ~Deeper() { --parser_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Parser& parser_;
  };

  std::vector<Token> tokens_;
  const Failure& failure_;
  const std::vector<std::string>& series_;
  std::size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace

Filter::Filter(std::string_view text, const std::string& origin,
               const std::vector<std::string>& series) {
  constexpr std::size_t kLongest = 10'000;
  const Failure failure(text.substr(0, kLongest), origin);
  if (text.size() > kLongest) failure.at(1, fmt::format("more than {} characters", kLongest));
  root_ = Parser(detail::words(text, failure), failure, series).parse();
}

bool Filter::keeps(const spec::Scenario& scenario) const {
  return std::get<bool>(root_->value(scenario));
}

}  // namespace scapesim::study
