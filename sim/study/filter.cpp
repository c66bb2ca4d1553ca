// SPDX-License-Identifier: Apache-2.0
// Words, then a parser of one function per level of precedence; types are checked when it is read.
#include "sim/study/filter.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/unit_text.hpp"
#include "sim/scenario/keys.hpp"

namespace scapesim::study {

namespace detail {

using FilterValue = std::variant<bool, double, std::string>;

struct FilterNode {
  enum class Type { flag, number, text };
  Type type = Type::flag;
  int column = 0;
  std::function<FilterValue(const spec::Scenario&)> value;
};

}  // namespace detail

namespace {

using detail::FilterNode;
using detail::FilterValue;
using Type = FilterNode::Type;
using Node = std::shared_ptr<const FilterNode>;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

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

struct Token {
  enum class Kind { number, text, name, sign, end };
  Kind kind = Kind::end;
  std::string text;
  double number = 0;
  int column = 1;
};

class Failure {
 public:
  Failure(std::string_view text, std::string origin) : text_(text), origin_(std::move(origin)) {}
  [[noreturn]] void at(int column, std::string what, std::string hint = {}) const {
    throw InputError(Problem{{.file = origin_, .line = 1, .column = column},
                             {},
                             fmt::format("{} in \"{}\"", what, text_),
                             std::move(hint)});
  }

 private:
  std::string text_;
  std::string origin_;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The SI value of "400Gbps", "80GiB", "2.5USD/h"; prices per hour count in dollars per hour.
std::optional<double> quantity(const std::string& text) {
  const auto read = [](const auto& parsed) -> std::optional<double> {
    if (const auto* value = std::get_if<0>(&parsed)) return value->si();
    return std::nullopt;
  };
  if (const auto value = read(parse_bytes(text))) return value;
  if (const auto value = read(parse_seconds(text))) return value;
  if (const auto value = read(parse_bytes_per_second(text))) return value;
  if (const auto value = read(parse_flops_per_second(text))) return value;
  if (const auto value = read(parse_watts(text))) return value;
  for (const std::string_view unit : {"USD/h", "USD"})
    if (text.ends_with(unit)) return std::stod(text);
  return std::nullopt;
}

class Words {
 public:
  Words(std::string_view text, const Failure& failure) : text_(text), failure_(failure) {}

  std::vector<Token> all() {
    std::vector<Token> tokens;
    while (tokens.empty() || tokens.back().kind != Token::Kind::end) tokens.push_back(next());
    return tokens;
  }

 private:
  char at(std::size_t offset) const { return offset < text_.size() ? text_[offset] : '\0'; }

  Token next() {
    while (at(position_) == ' ' || at(position_) == '\t') ++position_;
    Token token;
    token.column = static_cast<int>(position_) + 1;
    if (position_ >= text_.size()) return token;
    const char c = text_[position_];
    if (is_digit(c) || (c == '.' && is_digit(at(position_ + 1)))) return number(token);
    if (is_letter(c)) return name(token);
    if (c == '"' || c == '\'') return quoted(token, c);
    return sign(token);
  }

  Token number(Token token) {
    token.kind = Token::Kind::number;
    const std::string_view rest = text_.substr(position_);
    const auto [stop, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), token.number);
    const std::size_t digits = static_cast<std::size_t>(stop - rest.data());
    if (error != std::errc()) failure_.at(token.column, "a number out of range");
    std::size_t letters = digits;
    while (letters < rest.size() && is_letter(rest[letters])) ++letters;
    std::size_t end = letters;
    if (letters > digits && letters < rest.size() && rest[letters] == '/') {
      ++end;  // GB/s, unless it is GB divided by something
      while (end < rest.size() && is_letter(rest[end])) ++end;
    }
    for (const std::size_t length : {end, letters})
      if (length > digits)
        if (const auto value = quantity(std::string(rest.substr(0, length)))) {
          token.number = *value;
          position_ += length;
          return token;
        }
    if (letters > digits)
      failure_.at(token.column + static_cast<int>(digits),
                  fmt::format("unknown unit \"{}\"", rest.substr(digits, letters - digits)),
                  "such as 80GiB, 400Gbps, 25GB/s, 1.5s, 2.5USD/h");
    position_ += digits;
    return token;
  }

  Token name(Token token) {
    token.kind = Token::Kind::name;
    while (is_letter(at(position_)) || is_digit(at(position_)) || at(position_) == '.')
      token.text += text_[position_++];
    return token;
  }

  Token quoted(Token token, char quote) {
    token.kind = Token::Kind::text;
    const std::size_t end = text_.find(quote, position_ + 1);
    if (end == std::string_view::npos) failure_.at(token.column, "a quote that is not closed");
    token.text = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return token;
  }

  Token sign(Token token) {
    static constexpr std::array<std::string_view, 17> kSigns = {
        "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "(", ")", "!", "="};
    token.kind = Token::Kind::sign;
    for (const std::string_view known : kSigns)
      if (text_.substr(position_).starts_with(known)) {
        token.text = known;
        position_ += known.size();
        if (known == "=") failure_.at(token.column, "\"=\"", "equality is ==");
        return token;
      }
    failure_.at(token.column, fmt::format("\"{}\" has no meaning", text_[position_]));
  }

  std::string_view text_;
  const Failure& failure_;
  std::size_t position_ = 0;
};

bool is_number_type(std::string_view type) {
  static constexpr std::array<std::string_view, 9> kTypes = {
      "integer", "number", "bytes",   "bytes/s",         "FLOP/s",
      "seconds", "watts",  "dollars", "dollars per hour"};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

std::string unquoted(std::string text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    return text.substr(1, text.size() - 2);
  return text;
}

Node key_node(const scenario::Key& key, int column) {
  const auto text = key.field.text;
  if (key.field.type == "flag")
    return std::make_shared<FilterNode>(
        FilterNode{Type::flag, column,
                   [text](const spec::Scenario& s) -> FilterValue { return text(s) == "true"; }});
  if (is_number_type(key.field.type))
    return std::make_shared<FilterNode>(FilterNode{
        Type::number, column, [text](const spec::Scenario& s) -> FilterValue {
          const std::string word = unquoted(text(s));
          double number = kNone;
          const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
          if (error != std::errc()) return kNone;
          if (end == word.data() + word.size()) return number;
          return quantity(word).value_or(kNone);
        }});
  return std::make_shared<FilterNode>(
      FilterNode{Type::text, column,
                 [text](const spec::Scenario& s) -> FilterValue { return unquoted(text(s)); }});
}

/// Names that are no row of the key table: what follows from keys, and those a table row has no
/// simulated text for.
std::optional<Node> special_node(std::string_view name, int column) {
  const auto node = [column](Type type, auto value) -> Node {
    return std::make_shared<FilterNode>(FilterNode{type, column, value});
  };
  using S = const spec::Scenario&;
  if (name == "dp")
    return node(Type::number,
                [](S s) -> FilterValue { return double{1} * spec::data_parallel_size(s); });
  if (name == "micro_batches")
    return node(Type::number, [](S s) -> FilterValue {
      if (spec::data_parallel_size(s) < 1) return 0.0;
      return static_cast<double>(spec::micro_batches(s));
    });
  if (name == "series") return node(Type::text, [](S s) -> FilterValue { return s.series; });
  if (name == "model.preset" || name == "model.huggingface")
    return node(Type::text, [](S s) -> FilterValue { return s.model.name; });
  if (name == "cluster.preset")
    return node(Type::text, [](S s) -> FilterValue { return s.cluster.name; });
  if (name == "name") return node(Type::text, [](S s) -> FilterValue { return s.name; });
  return std::nullopt;
}

class Parser {
 public:
  Parser(std::vector<Token> tokens, const Failure& failure)
      : tokens_(std::move(tokens)), failure_(failure) {}

  Node parse() {
    if (peek().kind == Token::Kind::end) failure_.at(1, "no condition");
    Node node = either();
    if (peek().kind != Token::Kind::end)
      failure_.at(peek().column, fmt::format("unexpected \"{}\"", shown(peek())));
    need(node, Type::flag, "compare it, such as tp <= 8");
    return node;
  }

 private:
  using Value = FilterValue;

  const Token& peek() const { return tokens_[position_]; }
  static std::string shown(const Token& token) {
    return token.kind == Token::Kind::number ? fmt::format("{}", token.number) : token.text;
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

  template <class F>
  static Node joined(Type type, int column, const Node& left, const Node& right, F combine) {
    return std::make_shared<FilterNode>(
        FilterNode{type, column, [left, right, combine](const spec::Scenario& s) -> Value {
                     return combine(left->value(s), right->value(s));
                   }});
  }

  Node either() {
    Node left = both();
    while (take({"||", "or"})) {
      const Node right = both();
      need(left, Type::flag);
      need(right, Type::flag);
      left = joined(Type::flag, left->column, left, right,
                    [](const Value& a, const Value& b) -> Value {
                      return std::get<bool>(a) || std::get<bool>(b);
                    });
    }
    return left;
  }

  Node both() {
    Node left = negated();
    while (take({"&&", "and"})) {
      const Node right = negated();
      need(left, Type::flag);
      need(right, Type::flag);
      left = joined(Type::flag, left->column, left, right,
                    [](const Value& a, const Value& b) -> Value {
                      return std::get<bool>(a) && std::get<bool>(b);
                    });
    }
    return left;
  }

  Node negated() {
    const auto sign = take({"!", "not"});
    if (!sign) return comparison();
    const Deeper deeper(*this);
    const Node inner = negated();
    need(inner, Type::flag);
    return std::make_shared<FilterNode>(FilterNode{
        Type::flag, sign->column,
        [inner](const spec::Scenario& s) -> Value { return !std::get<bool>(inner->value(s)); }});
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
    return compared(sign->text, left, right);
  }

  static Node compared(const std::string& sign, const Node& left, const Node& right) {
    const auto node = [&](auto test) {
      return joined(Type::flag, left->column, left, right,
                    [test](const Value& a, const Value& b) -> Value { return test(a, b); });
    };
    const auto order = [&](auto test) {
      return node([test](const Value& a, const Value& b) {
        return test(std::get<double>(a), std::get<double>(b));
      });
    };
    if (sign == "==") return node([](const Value& a, const Value& b) { return a == b; });
    if (sign == "!=") return node([](const Value& a, const Value& b) { return a != b; });
    if (sign == "<") return order(std::less<>());
    if (sign == "<=") return order(std::less_equal<>());
    if (sign == ">") return order(std::greater<>());
    return order(std::greater_equal<>());
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
    const auto node = [&](auto combine) {
      return joined(Type::number, left->column, left, right,
                    [combine](const Value& a, const Value& b) -> Value {
                      return combine(std::get<double>(a), std::get<double>(b));
                    });
    };
    switch (sign.text[0]) {
      case '+':
        return node(std::plus<>());
      case '-':
        return node(std::minus<>());
      case '*':
        return node(std::multiplies<>());
      case '/':
        return node(std::divides<>());
      default:
        return node([](double a, double b) { return std::fmod(a, b); });
    }
  }

  Node factor() {
    if (const auto sign = take({"-"})) {
      const Deeper deeper(*this);
      const Node zero = constant(Type::number, 0.0, sign->column);
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
      return constant(Type::number, token.number, token.column);
    if (token.kind == Token::Kind::text) return constant(Type::text, token.text, token.column);
    if (token.kind == Token::Kind::name) return named(token);
    failure_.at(token.column, fmt::format("unexpected \"{}\"", token.text));
  }

  template <class T>
  static Node constant(Type type, T value, int column) {
    return std::make_shared<FilterNode>(
        FilterNode{type, column, [value](const spec::Scenario&) -> Value { return value; }});
  }

  Node named(const Token& token) const {
    if (token.text == "true" || token.text == "false")
      return constant(Type::flag, token.text == "true", token.column);
    if (const auto node = special_node(token.text, token.column)) return *node;
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
    return key_node(key, token.column);
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
  std::size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace

Filter::Filter(std::string_view text, const std::string& origin) {
  constexpr std::size_t kLongest = 10'000;
  const Failure failure(text.substr(0, kLongest), origin);
  if (text.size() > kLongest) failure.at(1, fmt::format("more than {} characters", kLongest));
  root_ = Parser(Words(text, failure).all(), failure).parse();
}

bool Filter::keeps(const spec::Scenario& scenario) const {
  return std::get<bool>(root_->value(scenario));
}

}  // namespace scapesim::study
