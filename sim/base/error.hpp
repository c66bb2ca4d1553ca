// SPDX-License-Identifier: Apache-2.0
// What a user did wrong, all of it at once: every problem with its place, its key and a way out.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace scapesim {

/// Where in the user's input something stands. Line and column count from 1; 0 is unknown.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
};

/// One thing that is wrong: place, key ("training.micro_batch", may be empty), what, and how to fix
/// it.
struct Problem {
  Place place;
  std::string key;
  std::string what;
  std::string hint;
};

/// Bad input: ends the command with exit code 2. what() lists every problem, one per line, as
/// `file:line:column: key: what (hint)`.
class InputError : public std::runtime_error {
 public:
  explicit InputError(std::vector<Problem> problems);
  explicit InputError(Problem problem);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

/// Collects problems, so that a user sees all of them in one run.
class Problems {
 public:
  void add(Place place, std::string key, std::string what, std::string hint = {});
  bool empty() const { return list_.empty(); }
  const std::vector<Problem>& list() const { return list_; }
  /// Throws InputError with everything collected, ordered by place; returns if there is nothing.
  void raise() const;

 private:
  std::vector<Problem> list_;
};

/// The nearest of the known words, case ignored: Damerau-Levenshtein distance at most a third of
/// the longer word's length; the first of equals.
std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> known);

/// `did you mean "X"?` for the nearest of the known words, else `known: A, B, C` when they are
/// at most twelve, else empty.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known);

}  // namespace scapesim
