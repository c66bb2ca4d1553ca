// SPDX-License-Identifier: Apache-2.0
// What the importers of line-oriented logs share: lines without launcher prefixes and colours,
// words, numbers, labelled values, and the record of what could not be read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calib/observations.hpp"

namespace scapesim::calib {

struct TextLine {
  int number = 0;
  std::string_view text;  ///< without prefixes such as "[1,0]<stdout>:", "[rank0]:", "3: "
};

/// Lines of a text; a carriage return ends a line too, but is not counted.
std::vector<TextLine> lines_of(std::string_view text);

/// The text without terminal colours (ESC [ ... m).
std::string without_colours(std::string_view text);

std::vector<std::string_view> words_of(std::string_view text);

/// The whole word as a finite number ("12.3", "2e+09"); none for anything else, N/A included.
std::optional<double> number_of(std::string_view word);

/// As number_of(), above 0.
std::optional<double> positive_of(std::string_view word);

/// An integer from 1 to 2^31 - 1, also written 2e+09.
std::optional<int> count_of(std::string_view word);

/// Half a unit in the last place of a printed number: "12.3" is 0.05, "2e+09" is 5e8.
double half_unit(std::string_view printed);

/// The word after the first `label` in the line; it ends at a blank, '|', ',' followed by a blank,
/// or the line's end.
std::optional<std::string_view> word_after(std::string_view line, std::string_view label);

/// The value of a field "label: value | ..."; none unless a bar closes it, as in a line cut off.
std::optional<std::string_view> field_of(std::string_view line, std::string_view label);

std::string lower_case(std::string_view text);

/// Whether the value of an environment variable may be kept: NCCL_* and CUDA_*.
bool may_keep(std::string_view variable);

/// Keeps the NAME=value words of a line whose name may be kept.
void keep_environment(std::string_view line, Observations& into);

enum class Looks { like_data, like_something_else };

/// Counts a line that gave nothing and keeps it as an example while there are few.
void add_unparsed(int number, std::string_view text, Looks looks, Observations& into);

void warn(Observations& into, const Place& place, std::string what, std::string hint = {});

/// Adds a GPU's name if it is new.
void add_gpu_name(std::string_view name, Machine& machine);

/// Throws InputError saying that a file of this format holds no sample; names malformed lines.
void require_samples(const Observations& found, const std::string& file, std::string_view what,
                     std::string_view hint);

}  // namespace scapesim::calib
