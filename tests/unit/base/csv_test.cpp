// SPDX-License-Identifier: Apache-2.0
// Tables from files: what is read, and each fault with its place.
#include "sim/base/csv.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace scapesim {
namespace {

constexpr std::string_view kColumns[] = {"name", "gpus", "value"};

std::vector<std::vector<std::string>> cells(std::string_view text) {
  std::vector<std::vector<std::string>> out;
  for (const CsvRow& row : parse_csv(text, "t.csv", kColumns).rows) {
    out.emplace_back();
    for (const CsvCell& cell : row.cells) out.back().push_back(cell.text);
  }
  return out;
}

std::string refusal(std::string_view text) {
  try {
    parse_csv(text, "t.csv", kColumns);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

using Table = std::vector<std::vector<std::string>>;

TEST_CASE("rows are read as they stand; comments and empty lines are skipped") {
  REQUIRE(cells("# measured\nname,gpus,value\n\na,4,1.5\n# later\nb, 8,\n") ==
          Table{{"a", "4", "1.5"}, {"b", " 8", ""}});
}

TEST_CASE("a header alone is a table without rows") {
  REQUIRE(cells("name,gpus,value").empty());
  REQUIRE(cells("name,gpus,value\n").empty());
}

TEST_CASE("quoted cells hold commas and doubled quotes") {
  REQUIRE(cells("name,gpus,value\n\"a, b\",4,\"say \"\"x\"\"\"\n\"\",1,2\n") ==
          Table{{"a, b", "4", "say \"x\""}, {"", "1", "2"}});
}

TEST_CASE("a spreadsheet's byte order mark and line ends are understood") {
  REQUIRE(cells("\xEF\xBB\xBFname,gpus,value\r\na,4,1\r\n") == Table{{"a", "4", "1"}});
}

TEST_CASE("another header is refused with the one expected") {
  REQUIRE(refusal("# x\nname,value,gpus\n") ==
          "t.csv:2:1: unexpected header (expected: name,gpus,value)");
  REQUIRE(refusal("") == "t.csv:1:1: no header (expected: name,gpus,value)");
  REQUIRE(refusal("# only a comment\n") == "t.csv:1:1: no header (expected: name,gpus,value)");
}

TEST_CASE("every row with a wrong number of cells or a misplaced quote is named with its place") {
  REQUIRE(refusal("name,gpus,value\na,4\nb,4,5\nc,4,5,6\nd,4\"5,6\n\"e,4,5\n\"f\"g,4,5\n") ==
          "t.csv:2:1: 2 cells, expected 3\n"
          "t.csv:4:1: 4 cells, expected 3\n"
          "t.csv:5:4: misplaced quote (put the whole cell in quotes and double those inside)\n"
          "t.csv:6:7: misplaced quote (put the whole cell in quotes and double those inside)\n"
          "t.csv:7:4: misplaced quote (put the whole cell in quotes and double those inside)");
}

TEST_CASE("numbers are read whole; what is none, or not positive, is a problem at its cell") {
  const Csv csv =
      parse_csv("name,gpus,value\na,4,1.5e3\nb,0,-1\nc,4x,nan\nd,4.5,inf\n", "t.csv", kColumns);
  Problems problems;
  REQUIRE(positive_integer(csv, csv.rows[0].cells[1], "gpus", problems) == 4);
  REQUIRE(positive_number(csv, csv.rows[0].cells[2], "value", problems) == 1500);
  REQUIRE(problems.empty());
  for (std::size_t row = 1; row < csv.rows.size(); ++row) {
    REQUIRE(positive_integer(csv, csv.rows[row].cells[1], "gpus", problems) == 0);
    REQUIRE(positive_number(csv, csv.rows[row].cells[2], "value", problems) == 0);
  }
  REQUIRE(problems.list().size() == 6);
  REQUIRE(problems.list()[2].what == "\"4x\" is not an integer of 1 or more");
  REQUIRE(problems.list()[2].place.line == 4);
  REQUIRE(problems.list()[2].place.column == 3);
}

}  // namespace
}  // namespace scapesim
