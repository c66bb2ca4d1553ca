// SPDX-License-Identifier: Apache-2.0
#include "calib/import_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace scapesim::calib {

namespace {

constexpr std::string_view kBlanks = " \t";
constexpr std::size_t kExamples = 5;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || is_digit(c) || c == '_';
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// mpirun --tag-output, srun --label, torchrun.
std::string_view without_launcher_prefix(std::string_view line) {
  for (const std::string_view end : {"<stdout>:", "<stderr>:"})
    if (const std::size_t found = line.find(end);
        found != line.npos && line.starts_with('[') && found < 32)
      line.remove_prefix(found + end.size());
  if (const std::size_t found = line.find("]:");
      found != line.npos && found < 32 && line.starts_with("[") && line.find("rank") < found)
    line.remove_prefix(found + 2);
  const std::string_view shown = trimmed(line);
  std::size_t digits = 0;
  while (digits < shown.size() && is_digit(shown[digits])) ++digits;
  if (digits > 0 && shown.substr(digits, 2) == ": ") return shown.substr(digits + 2);
  return line;
}

/// The line with the values of NAME=value masked where they may not be kept, printable, short.
std::string example_of(std::string_view line) {
  constexpr std::size_t kLongest = 160;
  std::string shown;
  for (std::size_t i = 0; i < line.size() && shown.size() < kLongest; ++i) {
    const auto c = static_cast<unsigned char>(line[i]);
    shown += c < 0x20 || c > 0x7e ? '?' : line[i];
    if (line[i] != '=') continue;
    std::size_t begin = i;
    while (begin > 0 && is_name(line[begin - 1])) --begin;
    if (begin == i || may_keep(line.substr(begin, i - begin))) continue;
    shown += "...";
    // A quoted value may hold blanks.
    const char quote = i + 1 < line.size() ? line[i + 1] : ' ';
    const std::size_t end =
        quote == '"' || quote == '\'' ? line.find(quote, i + 2) : line.find_first_of(kBlanks, i);
    i = std::min(end, line.size()) - 1;
    if (quote == '"' || quote == '\'') ++i;
  }
  return shown;
}

}  // namespace

std::vector<TextLine> lines_of(std::string_view text) {
  std::vector<TextLine> lines;
  int number = 1;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\r\n"), text.size());
    const std::string_view line = without_launcher_prefix(text.substr(0, end));
    if (!trimmed(line).empty()) lines.push_back({number, line});
    if (end < text.size() && text[end] == '\n') ++number;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string without_colours(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b') {
      plain += text[i];
      continue;
    }
    std::size_t end = i + 1;
    while (end < text.size() && (text[end] == '[' || text[end] == ';' || is_digit(text[end])))
      ++end;
    if (end < text.size() && text[end] == 'm') i = end;
  }
  return plain;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(kBlanks); at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    words.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlanks, end);
  }
  return words;
}

std::optional<double> number_of(std::string_view word) {
  double value = 0;
  const auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failure != std::errc{} || end != word.data() + word.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<double> positive_of(std::string_view word) {
  const std::optional<double> value = number_of(word);
  return value && *value > 0 ? value : std::nullopt;
}

std::optional<int> count_of(std::string_view word) {
  const std::optional<double> value = number_of(word);
  if (!value || *value < 1 || *value > std::numeric_limits<int>::max() ||
      *value != std::floor(*value))
    return std::nullopt;
  return static_cast<int>(*value);
}

double half_unit(std::string_view printed) {
  const std::size_t exponent = printed.find_first_of("eE");
  const std::string_view mantissa = printed.substr(0, exponent);
  const std::size_t point = mantissa.find('.');
  const double decimals =
      point == mantissa.npos ? 0 : static_cast<double>(mantissa.size() - point - 1);
  double power = 0;
  if (exponent != printed.npos) {
    std::string_view digits = printed.substr(exponent + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    power = number_of(digits).value_or(0);
  }
  return 0.5 * std::pow(10, power - decimals);
}

std::optional<std::string_view> word_after(std::string_view line, std::string_view label) {
  const std::size_t found = line.find(label);
  if (found == line.npos) return std::nullopt;
  const std::string_view rest = trimmed(line.substr(found + label.size()));
  std::size_t end = std::min(rest.find_first_of(" \t|"), rest.size());
  if (end > 0 && rest[end - 1] == ',') --end;
  if (end == 0) return std::nullopt;
  return rest.substr(0, end);
}

std::optional<std::string_view> field_of(std::string_view line, std::string_view label) {
  const std::size_t found = line.find(label);
  if (found == line.npos || line.find('|', found) == line.npos) return std::nullopt;
  return word_after(line, label);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

bool may_keep(std::string_view variable) {
  return variable.starts_with("NCCL_") || variable.starts_with("CUDA_");
}

void keep_environment(std::string_view line, Observations& into) {
  for (const std::string_view word : words_of(line)) {
    const std::size_t equals = word.find('=');
    if (equals == word.npos || equals + 1 == word.size()) continue;
    const std::string_view name = word.substr(0, equals);
    if (may_keep(name) && std::ranges::all_of(name, is_name))
      into.environment.emplace(name, word.substr(equals + 1));
  }
}

void add_unparsed(int number, std::string_view text, Looks looks, Observations& into) {
  Unparsed& unparsed = into.unparsed;
  ++unparsed.count;
  if (looks == Looks::like_data) ++unparsed.malformed;
  auto& examples = looks == Looks::like_data ? unparsed.malformed_examples : unparsed.examples;
  if (examples.size() < kExamples) examples.push_back({number, example_of(trimmed(text))});
}

void warn(Observations& into, const Place& place, std::string what, std::string hint) {
  into.warnings.push_back({place, "", std::move(what), std::move(hint)});
}

void add_gpu_name(std::string_view name, Machine& machine) {
  const auto& known = machine.gpu_names;
  if (!name.empty() && std::find(known.begin(), known.end(), name) == known.end())
    machine.gpu_names.emplace_back(name);
}

void require_samples(const Observations& found, const std::string& file, std::string_view what,
                     std::string_view hint) {
  if (!found.empty()) return;
  const auto& lines = found.unparsed.malformed_examples;
  if (lines.empty())
    throw InputError(
        Problem{{.file = file}, "", fmt::format("no {} in it", what), std::string(hint)});
  throw InputError(
      Problem{{file, lines.front().number, 0},
              "",
              fmt::format("no {} that can be read, {} lines that look like one, such as \"{}\"",
                          what, found.unparsed.malformed, lines.front().text),
              std::string(hint)});
}

}  // namespace scapesim::calib
