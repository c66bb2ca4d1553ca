// SPDX-License-Identifier: Apache-2.0
// A hand-written reader: every problem has its line and column, and nothing is guessed.
#include "sim/base/csv.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

namespace scapesim {
namespace {

/// One cell from `at` on; leaves `at` on the comma behind it or at the end of the line.
/// Nothing when a quote is misplaced.
std::optional<std::string> read_cell(std::string_view line, std::size_t& at) {
  std::string text;
  if (at >= line.size() || line[at] != '"') {
    while (at < line.size() && line[at] != ',')
      if (line[at] == '"')
        return std::nullopt;
      else
        text += line[at++];
    return text;
  }
  for (++at; at < line.size(); ++at) {
    if (line[at] != '"') {
      text += line[at];
    } else if (at + 1 < line.size() && line[at + 1] == '"') {
      text += line[at++];
    } else {
      ++at;
      return at == line.size() || line[at] == ',' ? std::optional(text) : std::nullopt;
    }
  }
  return std::nullopt;
}

CsvRow read_row(std::string_view line, int number, const std::string& file, Problems& problems) {
  CsvRow row;
  std::size_t at = 0;
  while (true) {
    const int column = static_cast<int>(at) + 1;
    const std::optional<std::string> text = read_cell(line, at);
    if (!text) {
      problems.add({file, number, static_cast<int>(at) + 1}, "", "misplaced quote",
                   "put the whole cell in quotes and double those inside");
      return {};
    }
    row.cells.push_back({*text, number, column});
    if (at >= line.size()) return row;
    ++at;
  }
}

void check_header(const CsvRow& header, std::span<const std::string_view> columns,
                  const std::string& file, Problems& problems) {
  bool same = header.cells.size() == columns.size();
  for (std::size_t i = 0; same && i < columns.size(); ++i)
    same = header.cells[i].text == columns[i];
  if (same || header.cells.empty()) return;
  problems.add({file, header.cells[0].line, 1}, "", "unexpected header",
               fmt::format("expected: {}", fmt::join(columns, ",")));
}

template <class Number>
std::optional<Number> number_of(const std::string& text) {
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// `expected` is for the message when there is no header at all; check tells what is wrong with
/// one.
template <class CheckHeader>
Csv parse(std::string_view text, const std::string& file, std::string_view expected,
          CheckHeader check) {
  Csv csv{.file = file, .header = {}, .rows = {}};
  Problems problems;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // spreadsheets begin with one
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    CsvRow row = read_row(line, number, file, problems);
    if (csv.header.cells.empty()) {
      check(row, problems);
      csv.header = std::move(row);
      if (!problems.empty()) break;
    } else if (row.cells.size() == csv.header.cells.size()) {
      csv.rows.push_back(std::move(row));
    } else if (!row.cells.empty()) {
      problems.add({file, number, 1}, "",
                   fmt::format("{} cells, expected {}", row.cells.size(), csv.header.cells.size()));
    }
  }
  if (csv.header.cells.empty() && problems.empty())
    problems.add({file, 1, 1}, "", "no header", fmt::format("expected: {}", expected));
  problems.raise();
  return csv;
}

}  // namespace

Csv parse_csv(std::string_view text, const std::string& file,
              std::span<const std::string_view> columns) {
  return parse(text, file, fmt::format("{}", fmt::join(columns, ",")),
               [&](const CsvRow& header, Problems& problems) {
                 check_header(header, columns, file, problems);
               });
}

Csv parse_table(std::string_view text, const std::string& file) {
  return parse(text, file, "names of columns", [&](const CsvRow& header, Problems& problems) {
    for (std::size_t i = 0; i < header.cells.size(); ++i) {
      const CsvCell& cell = header.cells[i];
      if (cell.text.empty())
        problems.add({file, cell.line, cell.column}, "", "a column without a name");
      for (std::size_t j = 0; j < i; ++j)
        if (header.cells[j].text == cell.text)
          problems.add({file, cell.line, cell.column}, cell.text, "two columns of this name");
    }
  });
}

Place place_of(const Csv& csv, const CsvCell& cell) { return {csv.file, cell.line, cell.column}; }

int positive_integer(const Csv& csv, const CsvCell& cell, const std::string& key,
                     Problems& problems) {
  const std::optional<int> value = number_of<int>(cell.text);
  if (value && *value >= 1) return *value;
  problems.add(place_of(csv, cell), key,
               fmt::format("\"{}\" is not an integer of 1 or more", cell.text));
  return 0;
}

double positive_number(const Csv& csv, const CsvCell& cell, const std::string& key,
                       Problems& problems) {
  const std::optional<double> value = number_of<double>(cell.text);
  if (value && std::isfinite(*value) && *value > 0) return *value;
  problems.add(place_of(csv, cell), key, fmt::format("\"{}\" is not a number above 0", cell.text));
  return 0;
}

}  // namespace scapesim
