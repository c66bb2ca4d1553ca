// SPDX-License-Identifier: Apache-2.0
// Text and order of problems; the nearest known word.
#include "sim/base/error.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <tuple>
#include <utility>

namespace scapesim {
namespace {

constexpr std::size_t kFewWords = 12;  // more than this in one hint is a wall, not a help

// User text may hold anything; a problem stays one line.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      out += "\\n";
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out;
}

std::string text_of(const Problem& problem) {
  std::string text;
  const Place& place = problem.place;
  if (!place.file.empty()) {
    text += place.file;
    if (place.line > 0) text += fmt::format(":{}", place.line);
    if (place.line > 0 && place.column > 0) text += fmt::format(":{}", place.column);
    text += ": ";
  }
  if (!problem.key.empty()) text += problem.key + ": ";
  text += problem.what;
  if (!problem.hint.empty()) text += " (" + problem.hint + ")";
  return printable(text);
}

std::string text_of(const std::vector<Problem>& problems) {
  std::string text;
  for (const Problem& problem : problems) {
    if (!text.empty()) text += '\n';
    text += text_of(problem);
  }
  return text;
}

// Files in the order they first gave a problem; inside a file by place, unknown places last.
std::vector<Problem> ordered(std::vector<Problem> problems) {
  std::vector<std::string> files;
  for (const Problem& problem : problems)
    if (std::ranges::find(files, problem.place.file) == files.end())
      files.push_back(problem.place.file);
  const auto known = [](int n) { return n > 0 ? n : std::numeric_limits<int>::max(); };
  const auto rank = [&](const Problem& problem) {
    return std::tuple(std::ranges::find(files, problem.place.file) - files.begin(),
                      known(problem.place.line), known(problem.place.column));
  };
  std::ranges::stable_sort(problems,
                           [&](const Problem& a, const Problem& b) { return rank(a) < rank(b); });
  return problems;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Fewest insertions, deletions, replacements and swaps of neighbours from a to b, case ignored
// (optimal string alignment, Damerau 1964).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  const auto same = [&](std::size_t i, std::size_t j) { return lower(a[i]) == lower(b[j]); };
  for (std::size_t i = 1; i <= a.size(); ++i)
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = d[i - 1][j - 1] + (same(i - 1, j - 1) ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1))
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

}  // namespace

InputError::InputError(std::vector<Problem> problems)
    : std::runtime_error(text_of(problems)), problems_(std::move(problems)) {}

InputError::InputError(Problem problem) : InputError(std::vector<Problem>(1, std::move(problem))) {}

void Problems::add(Place place, std::string key, std::string what, std::string hint) {
  list_.push_back({std::move(place), std::move(key), std::move(what), std::move(hint)});
}

void Problems::raise() const {
  if (!list_.empty()) throw InputError(ordered(list_));
}

std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> known) {
  constexpr std::size_t kLongest = 200;  // longer than any word of ours: no table of that size
  if (word.size() > kLongest) return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t best_distance = std::numeric_limits<std::size_t>::max();
  for (const std::string_view candidate : known) {
    const std::size_t allowed = std::max(word.size(), candidate.size()) / 3;
    const std::size_t d = distance(word, candidate);
    if (d > allowed || d >= best_distance) continue;
    best = candidate;
    best_distance = d;
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  if (const auto best = nearest(word, known)) return fmt::format("did you mean \"{}\"?", *best);
  if (known.empty() || known.size() > kFewWords) return {};
  return fmt::format("known: {}", fmt::join(known, ", "));
}

}  // namespace scapesim
