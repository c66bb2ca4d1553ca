// SPDX-License-Identifier: Apache-2.0
// The words of a filter: numbers with their units, texts in quotes, names, signs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scapesim::study::detail {

/// What a number counts. `any`: a product that has no name here, not checked.
enum class Unit { none, bytes, rate, flops, seconds, watts, dollars, hourly, any };

struct Measured {
  double value = 0;  ///< SI; prices per hour in dollars per hour
  Unit unit = Unit::none;
};
/// "400Gbps", "80GiB", "2.5USD/h".
std::optional<Measured> quantity(const std::string& text);

/// "bytes, such as 80GiB".
std::string_view words_of(Unit unit);

struct Token {
  enum class Kind { number, text, name, sign, end };
  Kind kind = Kind::end;
  std::string text;
  Measured number;
  int column = 1;
};

/// Throws InputError at columns of one filter.
class Failure {
 public:
  Failure(std::string_view text, std::string origin) : text_(text), origin_(std::move(origin)) {}
  [[noreturn]] void at(int column, std::string what, std::string hint = {}) const;

 private:
  std::string text_;
  std::string origin_;
};

/// All words, an end behind them.
std::vector<Token> words(std::string_view text, const Failure& failure);

}  // namespace scapesim::study::detail
