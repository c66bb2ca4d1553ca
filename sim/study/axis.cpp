// SPDX-License-Identifier: Apache-2.0
// Parting the text of an axis and counting out its ranges, in decimals so that 0.1:0.3:0.1 ends at
// 0.3.
#include "sim/study/axis.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <optional>
#include <string_view>

#include "sim/scenario/toml_text.hpp"

namespace scapesim::study {
namespace {

constexpr std::size_t kMostValues = 1'000'000;
constexpr std::uint64_t kMostPoints = 100'000'000;  // bounds the list of points that are left
constexpr double kRoundOff = 1e-9;                  // of a step, when a range meets its end

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The parts between commas that stand outside quotes and brackets.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

/// "100Gbps" as 100, its decimals and its unit.
struct Amount {
  double number = 0;
  int decimals = 0;
  std::string_view unit;
};

std::optional<Amount> amount_of(std::string_view text) {
  text = trimmed(text);
  const bool sign = !text.empty() && text.front() == '-';
  if (text.size() <= (sign ? 1U : 0U)) return std::nullopt;
  const char first = text[sign ? 1 : 0];
  if (!(first >= '0' && first <= '9') && first != '.') return std::nullopt;
  Amount amount;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), amount.number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view digits(text.data(), static_cast<std::size_t>(end - text.data()));
  amount.unit = trimmed(text.substr(digits.size()));
  const std::size_t point = digits.find('.');
  const std::size_t exponent = std::min(digits.find_first_of("eE"), digits.size());
  if (point != std::string_view::npos && point < exponent)
    amount.decimals = static_cast<int>(exponent - point - 1);
  if (exponent < digits.size()) {
    int power = 0;
    std::from_chars(digits.data() + exponent + 1, digits.data() + digits.size(), power);
    amount.decimals = std::max(0, amount.decimals - power);
  }
  return amount;
}

struct RangeText {
  Amount first, last, step;
  char kind = '+';  ///< or '*' or '/'
};

/// What a value says when it is a range: three amounts between two colons.
std::optional<RangeText> range_of(std::string_view text) {
  const std::size_t one = text.find(':');
  const std::size_t two = one == std::string_view::npos ? one : text.find(':', one + 1);
  if (two == std::string_view::npos) return std::nullopt;
  RangeText range;
  std::string_view step = trimmed(text.substr(two + 1));
  if (!step.empty() && (step.front() == '*' || step.front() == '/')) {
    range.kind = step.front();
    step.remove_prefix(1);
  }
  const auto first = amount_of(text.substr(0, one));
  const auto last = amount_of(text.substr(one + 1, two - one - 1));
  const auto by = amount_of(step);
  if (!first || !last || !by) return std::nullopt;
  range.first = *first;
  range.last = *last;
  range.step = *by;
  return range;
}

/// "2:8": two amounts, where a range has three.
bool is_without_step(std::string_view text) {
  const std::size_t colon = text.find(':');
  return colon != std::string_view::npos && amount_of(text.substr(0, colon)).has_value() &&
         text.find(':', colon + 1) == std::string_view::npos &&
         amount_of(text.substr(colon + 1)).has_value();
}

/// Why the range cannot be counted out; empty when it can.
std::string fault_of(const RangeText& range) {
  const bool factor = range.kind != '+';
  if (range.first.unit != range.last.unit ||
      (factor ? !range.step.unit.empty() : range.step.unit != range.first.unit))
    return "its units differ";
  if (factor && (range.first.number <= 0 || range.last.number <= 0 || range.step.number <= 1))
    return "a range by a factor needs numbers above 0 and a factor above 1";
  if (!factor && range.step.number == 0) return "its step is 0";
  const bool down = range.kind == '/' || (!factor && range.step.number < 0);
  if (down ? range.last.number > range.first.number : range.last.number < range.first.number)
    return "it leads away from its end";
  return {};
}

std::string decimal(double number, int decimals) {
  std::string text = fmt::format("{:.{}f}", number, decimals);
  if (text.find('.') == std::string::npos) return text;
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

/// How many values the range has, by arithmetic: nothing is listed.
double count_of(const RangeText& range) {
  const double first = range.first.number, last = range.last.number, step = range.step.number;
  if (range.kind == '+') return std::floor((last - first) / step + kRoundOff) + 1;
  return std::floor(std::abs(std::log(last) - std::log(first)) / std::log(step) + kRoundOff) + 1;
}

std::vector<std::string> counted_out(const RangeText& range) {
  constexpr int kDigits = 12;  // of a factor's powers
  const int decimals = std::max(range.first.decimals, range.step.decimals);
  const auto number = [&](std::size_t i) {
    const double steps = static_cast<double>(i);
    if (range.kind == '+') return range.first.number + steps * range.step.number;
    return range.first.number * std::pow(range.step.number, range.kind == '*' ? steps : -steps);
  };
  const double size = range.kind == '+' ? std::abs(range.step.number) : range.last.number;
  const auto inside = [&](double value) {
    const bool down = range.kind == '/' || (range.kind == '+' && range.step.number < 0);
    return (down ? range.last.number - value : value - range.last.number) <= kRoundOff * size;
  };
  std::vector<std::string> texts;
  for (std::size_t i = 0; static_cast<double>(i) < count_of(range) && inside(number(i)); ++i)
    texts.push_back((range.kind == '+' ? decimal(number(i), decimals)
                                       : fmt::format("{:.{}g}", number(i), kDigits)) +
                    std::string(range.first.unit));
  return texts;
}

class AxisReader {
 public:
  AxisReader(const std::string& text, std::string origin, int ordinal, Problems& problems)
      : text_(text), origin_(std::move(origin)), ordinal_(ordinal), problems_(problems) {}

  Axis read() {
    const std::size_t equals = text_.find('=');
    axis_.key = trimmed(std::string_view(text_).substr(0, equals));
    if (equals == std::string::npos || axis_.key.empty() ||
        axis_.key.find_first_of(" \t\"'") != std::string::npos) {
      add(text_, fmt::format("\"{}\" is no KEY=VALUE,...", text_),
          "such as parallelism.tp=1,2,4 or cluster.gpus=64:1024:*2");
      return axis_;
    }
    for (const std::string_view part : parts_of(std::string_view(text_).substr(equals + 1)))
      add_part(part);
    if (too_many_ || axis_.values.size() > kMostValues)
      add(text_, fmt::format("more than {} values", kMostValues), "");
    return axis_;
  }

 private:
  void add(std::string_view at, std::string what, std::string hint) {
    problems_.add(place(at), axis_.key, std::move(what), std::move(hint));
  }
  Place place(std::string_view at) const {
    return {origin_, ordinal_, static_cast<int>(at.data() - text_.data()) + 1};
  }

  void add_part(std::string_view part) {
    const std::string_view value = trimmed(part);
    if (value.empty()) return add(part, "an empty value", "values are parted by single commas");
    if (is_without_step(value))
      return add(value, fmt::format("the range {} has no step", value),
                 fmt::format("{0}:STEP or {0}:*FACTOR, or single values: A,B", value));
    const auto range = range_of(value);
    if (!range) return add_value(std::string(value), value);
    const std::string fault = fault_of(*range);
    if (!fault.empty())
      return add(value, fmt::format("the range {} is none: {}", value, fault),
                 "FIRST:LAST:STEP or FIRST:LAST:*FACTOR, such as 4:64:4 or 64:1024:*2");
    if (count_of(*range) > static_cast<double>(kMostValues)) {
      too_many_ = true;
      return;
    }
    for (const std::string& text : counted_out(*range)) add_value(text, value);
  }

  void add_value(const std::string& text, std::string_view at) {
    if (axis_.values.size() > kMostValues) return;
    Problems found;
    auto setting = scenario::parse_set(axis_.key + "=" + text, ordinal_, found);
    for (const Problem& problem : found.list()) add(at, problem.what, problem.hint);
    if (!setting) return;
    setting->given.clear();
    setting->key_place = place(text_);
    setting->place = place(at);
    axis_.values.push_back(std::move(*setting));
    axis_.texts.push_back(text);
  }

  const std::string& text_;
  std::string origin_;
  int ordinal_;
  Problems& problems_;
  Axis axis_;
  bool too_many_ = false;  ///< a range that was not counted out
};

std::uint64_t zipped_size(std::span<const Axis> axes, Problems& problems) {
  for (const Axis& axis : axes)
    if (axis.values.size() != axes[0].values.size())
      problems.add({}, axis.key,
                   fmt::format("{} values beside {} of {}", axis.values.size(),
                               axes[0].values.size(), axes[0].key),
                   "zipped axes are equally long");
  return axes.empty() ? 1 : axes[0].values.size();
}

std::uint64_t cartesian_size(std::span<const Axis> axes, Problems& problems) {
  std::uint64_t size = 1;
  for (const Axis& axis : axes) {
    std::vector<std::string> texts = axis.texts;
    std::ranges::sort(texts);
    if (const auto twice = std::ranges::adjacent_find(texts); twice != texts.end())
      problems.add({}, axis.key, fmt::format("{} twice on this axis", *twice));
    size *= axis.values.size();
    if (size > kMostPoints) {
      problems.add({}, axis.key, fmt::format("more than {} points with this axis", kMostPoints),
                   "fewer values, or several sweeps");
      return 0;
    }
  }
  return size;
}

}  // namespace

Axis parse_axis(const std::string& text, const std::string& origin, int ordinal,
                Problems& problems) {
  return AxisReader(text, origin, ordinal, problems).read();
}

Grid::Grid(std::vector<Axis> axes, Combine combine) : axes_(std::move(axes)), combine_(combine) {
  Problems problems;
  for (std::size_t i = 0; i < axes_.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (axes_[i].key == axes_[j].key) problems.add({}, axes_[i].key, "on two axes");
  size_ =
      combine_ == Combine::zipped ? zipped_size(axes_, problems) : cartesian_size(axes_, problems);
  problems.raise();
}

std::vector<std::size_t> Grid::at(std::uint64_t point) const {
  std::vector<std::size_t> which(axes_.size(), point);
  if (combine_ == Combine::zipped) return which;
  for (std::size_t i = axes_.size(); i-- > 0;) {
    const std::uint64_t length = axes_[i].values.size();
    which[i] = point % length;
    point /= length;
  }
  return which;
}

}  // namespace scapesim::study
