// SPDX-License-Identifier: Apache-2.0
// Comma-separated values, strictly (RFC 4180): a header that must be as expected, quoted cells, one
// record per line. Lines that begin with # and empty lines are skipped.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.hpp"

namespace scapesim {

struct CsvCell {
  std::string text;
  int line = 0;
  int column = 0;  ///< byte in the line, from 1
};

struct CsvRow {
  std::vector<CsvCell> cells;  ///< as many as the header has
};

struct Csv {
  std::string file;
  CsvRow header;
  std::vector<CsvRow> rows;
};

/// Throws InputError when the header differs from `columns`, a row has more or fewer cells, or a
/// quote is misplaced.
Csv parse_csv(std::string_view text, const std::string& file,
              std::span<const std::string_view> columns);

/// The same with any header of distinct names.
Csv parse_table(std::string_view text, const std::string& file);

Place place_of(const Csv& csv, const CsvCell& cell);

/// The cell as an integer of 1 or more, or as a finite number above 0; 0 and a problem otherwise.
int positive_integer(const Csv& csv, const CsvCell& cell, const std::string& key,
                     Problems& problems);
double positive_number(const Csv& csv, const CsvCell& cell, const std::string& key,
                       Problems& problems);

}  // namespace scapesim
