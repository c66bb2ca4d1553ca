// SPDX-License-Identifier: Apache-2.0
// Collective times as CSV, for numbers that come from nowhere else: the columns
// collective,ranks,nodes,size_B,time_s, where size is that of nccl-tests. Lines with # are
// comments.
#include <algorithm>

#include "calib/import.hpp"
#include "calib/import_text.hpp"
#include "sim/base/csv.hpp"

namespace scapesim::calib {

namespace {

constexpr std::string_view kColumns[] = {"collective", "ranks", "nodes", "size_B", "time_s"};
constexpr std::string_view kHeader = "collective,ranks,nodes,size_B,time_s";

}  // namespace

bool recognises_csv(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && line.front() != '#') return line == kHeader;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

Observations read_csv(std::string_view text, const std::string& file) {
  const Csv csv = parse_csv(text, file, kColumns);
  Problems problems;
  Observations out;
  for (const CsvRow& row : csv.rows) {
    std::string name = row.cells[0].text;
    std::ranges::replace(name, '_', '-');
    const auto kind = find_named<graph::CollectiveKind>(name);
    if (!kind)
      problems.add(place_of(csv, row.cells[0]), "collective", "unknown collective \"" + name + "\"",
                   did_you_mean(name, all_names<graph::CollectiveKind>()));
    const int ranks = positive_integer(csv, row.cells[1], "ranks", problems);
    const int nodes = positive_integer(csv, row.cells[2], "nodes", problems);
    if (ranks == 1 || nodes > ranks)
      problems.add(place_of(csv, row.cells[1]), "ranks",
                   "two or more, and as many as nodes, are needed");
    out.collectives.push_back(
        {.kind = kind.value_or(graph::CollectiveKind::all_reduce),
         .size = Bytes(positive_number(csv, row.cells[3], "size_B", problems)),
         .ranks = ranks,
         .nodes = nodes,
         .ranks_per_node =
             nodes > 0 && ranks % nodes == 0 ? std::optional(ranks / nodes) : std::nullopt,
         .time = Seconds(positive_number(csv, row.cells[4], "time_s", problems)),
         .place = place_of(csv, row.cells[0])});
  }
  problems.raise();
  require_samples(out, file, "row", "such as all-reduce,8,1,1048576,0.000123");
  return out;
}

}  // namespace scapesim::calib
