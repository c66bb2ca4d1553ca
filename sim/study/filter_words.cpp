// SPDX-License-Identifier: Apache-2.0
#include "sim/study/filter_words.hpp"

#include <array>
#include <charconv>
#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/base/unit_text.hpp"

namespace scapesim::study::detail {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

template <class Q>
std::optional<Measured> read(const Parsed<Q>& parsed, Unit unit) {
  if (const auto* value = std::get_if<Q>(&parsed)) return Measured{value->si(), unit};
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
        std::from_chars(rest.data(), rest.data() + rest.size(), token.number.value);
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

}  // namespace

std::optional<Measured> quantity(const std::string& text) {
  if (const auto value = read(parse_bytes(text), Unit::bytes)) return value;
  if (const auto value = read(parse_seconds(text), Unit::seconds)) return value;
  if (const auto value = read(parse_bytes_per_second(text), Unit::rate)) return value;
  if (const auto value = read(parse_flops_per_second(text), Unit::flops)) return value;
  if (const auto value = read(parse_watts(text), Unit::watts)) return value;
  if (text.ends_with("USD/h")) return Measured{std::stod(text), Unit::hourly};
  if (text.ends_with("USD")) return Measured{std::stod(text), Unit::dollars};
  return std::nullopt;
}

std::string_view words_of(Unit unit) {
  switch (unit) {
    case Unit::none:
      return "a number without a unit";
    case Unit::bytes:
      return "bytes, such as 80GiB";
    case Unit::rate:
      return "bytes per second, such as 400Gbps or 25GB/s";
    case Unit::flops:
      return "FLOP/s, such as 989TFLOP/s";
    case Unit::seconds:
      return "seconds, such as 5us";
    case Unit::watts:
      return "watts, such as 700W";
    case Unit::dollars:
      return "dollars, such as 500USD";
    case Unit::hourly:
      return "dollars per hour, such as 2.5USD/h";
    case Unit::any:
      return "a product of units";
  }
  return "";
}

void Failure::at(int column, std::string what, std::string hint) const {
  throw InputError(Problem{{.file = origin_, .line = 1, .column = column},
                           {},
                           fmt::format("{} in \"{}\"", what, text_),
                           std::move(hint)});
}

std::vector<Token> words(std::string_view text, const Failure& failure) {
  return Words(text, failure).all();
}

}  // namespace scapesim::study::detail
